/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stacks of 32-bit tasks, built by hand: words of 4 bytes, and the rules that compilers and the
 * kernel write for them. One function a page, each with another rule.
 */
#include "unwind.h"

#include "unwind_story.h"

#define START_32     UINT64_C(0xffff0000)
#define AT32(word)   (START_32 + 4 * (uint64_t)(word))
#define C32(number)  ((uint64_t)(number) << 12 | 0x105)
#define FROM32(...)  FROM(__VA_ARGS__, .sp = START_32, .lookup = look_up)
#define RULE(of, at) .kind = CFI_##of, .cfa_register = ARCH_DWARF_##at

enum function {
    ROOT = 16,
    LEAF,  /* CFA = esp + 4 */
    FRAME, /* push %ebp; mov %esp, %ebp */
    MAIN,  /* CFA = *(ebp - 4), which is ecx as it was pushed */
    ECX,   /* CFA = ecx, before that */
    PLT,   /* CFA = esp + 4, and a word more behind the push */
    SIGNAL_FRAME,
    BARE, /* executable, without a rule */
    END,
};

static const struct cfi_rule rules[END] = {
    [ROOT] = {.kind = CFI_ROOT},
    [LEAF] = {CFA_AT(SP, 4), AT_CFA(ra, -4)},
    [FRAME] = {CFA_AT(BP, 8), AT_CFA(ra, -4), AT_CFA(bp, -8)},
    [MAIN] = {RULE(DEREF, BP), .cfa_offset = -4, AT_CFA(ra, -4), .bp_saved = CFI_AT_BP},
    [ECX] = {.kind = CFI_OFFSET, .cfa_register = CODE_DWARF_CX, AT_CFA(ra, -4)},
    [PLT] = {RULE(PLT, SP), .cfa_offset = 4, .cfa_addend = 5, AT_CFA(ra, -4)},
    [SIGNAL_FRAME] = {RULE(DEREF, SP), .cfa_offset = 28, .signal_frame = 1, AT_SP(ra, 56),
                      AT_SP(bp, 24), AT_SP(bx, 32)},
};

static enum unwind_code look_up(uint64_t pc, const struct cfi_rule **ret, void *userdata)
{
    (void)userdata;
    uint64_t number = pc >> 12;
    if (number < ROOT || number >= END) {
        return UNWIND_CODE_NONE;
    }
    *ret = &rules[number];
    return number == BARE ? UNWIND_CODE_NO_RULE : UNWIND_CODE_RULE;
}

TEST(follows_the_rules_of_32_bits)
{
    CHECK({"a leaf, a frame pointer, the root", FROM32(C32(LEAF), .bp = AT32(2)),
           WORDS(C32(FRAME), 7, 0, C32(ROOT)), CALLERS(C32(FRAME), C32(ROOT)),
           ENDS(COMPLETE, 2, 0)},
          {"main() that aligned its stack, and keeps the old one below its frame pointer",
           FROM32(C32(LEAF), .bp = AT32(3)), WORDS(C32(MAIN), 7, AT32(7), 0, 7, 7, C32(ROOT)),
           CALLERS(C32(MAIN), C32(ROOT)), ENDS(COMPLETE, 2, 0)},
          {"while the old stack pointer is in ecx", FROM32(C32(ECX), .cx = AT32(3)),
           WORDS(7, 7, C32(ROOT)), CALLERS(C32(ROOT)), ENDS(COMPLETE, 1, 0)},
          {"which no caller of others knows", FROM32(C32(LEAF), .cx = AT32(3)),
           WORDS(C32(ECX), 7, C32(ROOT)), CALLERS(C32(ECX)), ENDS(NO_RULE, 1, 0)},
          {"an entry of a linkage table, behind its push", FROM32(C32(PLT)), WORDS(7, C32(ROOT)),
           CALLERS(C32(ROOT)), ENDS(COMPLETE, 1, 0)},
          {"a handler, and the frame pointer of what it interrupted",
           FROM32(C32(LEAF), .whole = true),
           WORDS(C32(SIGNAL_FRAME), 7, 7, 7, 7, 7, 7, AT32(20), AT32(18), 7, 7, 7, 7, 7, 7,
                 C32(FRAME), 7, 7, 7, 7, 7),
           CALLERS(C32(SIGNAL_FRAME) + 1, C32(FRAME) + 1), ENDS(BAD_MEMORY, 2, 0)});
}

TEST(ends_where_nothing_is_proved)
{
    CHECK({"code without a rule", FROM32(C32(BARE), .bp = AT32(1)), WORDS(7, 0, C32(ROOT)),
           CALLERS(C32(ROOT)), ENDS(UNPROVED, 0, 1)},
          {"the last word is half copied: it is not there", FROM32(C32(LEAF), .bp = AT32(2)),
           WORDS(C32(FRAME), 7, 0), CALLERS(C32(FRAME)), ENDS(SHORT_COPY, 1, 0)},
          {"the kernel's chain goes on, by words of 4 bytes", FROM32(C32(LEAF), .bp = AT32(1)),
           WORDS(C32(FRAME), AT32(9), C32(FRAME)),
           CHAIN(C32(LEAF), C32(FRAME), C32(FRAME), C32(ROOT)),
           CALLERS(C32(FRAME), C32(FRAME), C32(FRAME), C32(ROOT)), ENDS(COMPLETE, 2, 2)},
          {"a frame pointer in the middle of a word", FROM32(C32(BARE), .bp = AT32(1) + 2),
           WORDS(7, 7, 7, C32(ROOT)), ENDS(BAD_MEMORY, 0, 0)},
          {"no stack goes beyond 32 bits", FROM32(C32(FRAME), .bp = UINT32_MAX - 3), WORDS(0),
           ENDS(BAD_MEMORY, 0, 0)});
}
