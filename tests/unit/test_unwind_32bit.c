/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stacks of 32-bit tasks, built by hand: words of 4 bytes, and the rules that compilers and the
 * kernel write for them. One function a page, each with another rule.
 */
#include "unwind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STACK_START  UINT64_C(0xffff0000)
#define AT(word)     ((uint32_t)STACK_START + 4 * (uint32_t)(word))
#define CODE(number) ((uint32_t)(number) << 12 | 0x105)
#define WORDS_MAX    ((size_t)24)
#define FRAMES_MAX   ((size_t)8)

enum function {
    ROOT = 16,
    LEAF,  /* CFA = esp + 4 */
    FRAME, /* push %ebp; mov %esp, %ebp */
    MAIN,  /* CFA = *(ebp - 4), which is ecx as it was pushed */
    ECX,   /* CFA = ecx, before that */
    PLT,   /* CFA = esp + 4, and a word more behind the push */
    SIGNAL,
    BARE, /* executable, without a rule */
    END,
};

#define AT_CFA(register, offset) .register##_saved = CFI_AT_CFA, .register##_offset = (offset)
#define AT_SP(register, offset)  .register##_saved = CFI_AT_SP, .register##_offset = (offset)
#define DWARF_CX                 2

static const struct cfi_rule rules[END] = {
    [ROOT] = {.kind = CFI_ROOT},
    [LEAF] = {.kind = CFI_OFFSET, .cfa_register = ARCH_DWARF_SP, .cfa_offset = 4, AT_CFA(ra, -4)},
    [FRAME] = {.kind = CFI_OFFSET,
               .cfa_register = ARCH_DWARF_BP,
               .cfa_offset = 8,
               AT_CFA(ra, -4),
               AT_CFA(bp, -8)},
    [MAIN] = {.kind = CFI_DEREF,
              .cfa_register = ARCH_DWARF_BP,
              .cfa_offset = -4,
              AT_CFA(ra, -4),
              .bp_saved = CFI_AT_BP},
    [ECX] = {.kind = CFI_OFFSET, .cfa_register = DWARF_CX, AT_CFA(ra, -4)},
    [PLT] = {.kind = CFI_PLT,
             .cfa_register = ARCH_DWARF_SP,
             .cfa_offset = 4,
             .cfa_addend = 5,
             AT_CFA(ra, -4)},
    [SIGNAL] = {.kind = CFI_DEREF,
                .cfa_register = ARCH_DWARF_SP,
                .cfa_offset = 28,
                .signal_frame = 1,
                AT_SP(ra, 56),
                AT_SP(bp, 24),
                AT_SP(bx, 32)},
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

struct story {
    const char *name;
    uint32_t ip, bp, cx;
    uint32_t words[WORDS_MAX];
    size_t word_count;
    uint64_t chain[FRAMES_MAX];
    size_t chain_count;
    uint64_t callers[FRAMES_MAX]; /* ended by 0 */
    enum stack_quality quality;
    bool whole;
};

/* The copy is on the heap, just so long and not aligned: reading outside of it is seen. */
static void check(const struct story *story)
{
    size_t stack_bytes = story->word_count * sizeof story->words[0];
    uint8_t *stack = malloc(stack_bytes + 1);
    assert_non_null(stack);
    memcpy(stack + 1, story->words, stack_bytes);
    struct unwind_input input = {
        .max_depth = FRAMES_MAX,
        .lookup = look_up,
        .ip = story->ip,
        .stack = stack + 1,
        .stack_bytes = stack_bytes,
        .stack_cut = !story->whole,
        .chain = story->chain,
        .chain_count = story->chain_count,
        .is_32bit = true,
    };
    input.registers[ARCH_DWARF_SP] = STACK_START;
    input.registers[ARCH_DWARF_BP] = story->bp;
    input.registers[DWARF_CX] = story->cx;
    uint64_t frames[FRAMES_MAX] = {0};
    uint64_t places[FRAMES_MAX];
    struct unwind_result result;
    unwind_stack(&input, frames, places, &result);
    free(stack);
    print_message("  %s\n", story->name);
    size_t count = 1;
    while (story->callers[count - 1] != 0) {
        count++;
    }
    assert_int_equal(result.quality, story->quality);
    assert_int_equal(result.frame_count, count);
    assert_memory_equal(frames + 1, story->callers, (count - 1) * sizeof *frames);
}

static void follows_the_rules_of_32_bits(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "a leaf, a frame pointer, the root",
         .ip = CODE(LEAF),
         .bp = AT(2),
         .words = {CODE(FRAME), 7, 0, CODE(ROOT)},
         .word_count = 4,
         .callers = {CODE(FRAME), CODE(ROOT)},
         .quality = STACK_COMPLETE},
        {.name = "main() that aligned its stack, and keeps the old one below its frame pointer",
         .ip = CODE(LEAF),
         .bp = AT(3),
         .words = {CODE(MAIN), 7, AT(7), 0, 7, 7, CODE(ROOT)},
         .word_count = 7,
         .callers = {CODE(MAIN), CODE(ROOT)},
         .quality = STACK_COMPLETE},
        {.name = "while the old stack pointer is in ecx",
         .ip = CODE(ECX),
         .cx = AT(3),
         .words = {7, 7, CODE(ROOT)},
         .word_count = 3,
         .callers = {CODE(ROOT)},
         .quality = STACK_COMPLETE},
        {.name = "which no caller of others knows",
         .ip = CODE(LEAF),
         .cx = AT(3),
         .words = {CODE(ECX), 7, CODE(ROOT)},
         .word_count = 3,
         .callers = {CODE(ECX)},
         .quality = STACK_NO_RULE},
        {.name = "an entry of a linkage table, behind its push",
         .ip = CODE(PLT),
         .words = {7, CODE(ROOT)},
         .word_count = 2,
         .callers = {CODE(ROOT)},
         .quality = STACK_COMPLETE},
        {.name = "a handler, and the frame pointer of what it interrupted",
         .ip = CODE(LEAF),
         .words = {CODE(SIGNAL), 7, 7, 7, 7, 7, 7, AT(20), AT(18), 7, 7, 7, 7, 7, 7,
                   CODE(FRAME),  7, 7, 7, 7, 7},
         .word_count = 21,
         .callers = {CODE(SIGNAL) + 1, CODE(FRAME) + 1},
         .quality = STACK_BAD_MEMORY,
         .whole = true},
    };
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        check(&stories[i]);
    }
}

static void ends_where_nothing_is_proved(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "code without a rule",
         .ip = CODE(BARE),
         .bp = AT(1),
         .words = {7, 0, CODE(ROOT)},
         .word_count = 3,
         .callers = {CODE(ROOT)},
         .quality = STACK_UNPROVED},
        {.name = "the last word is half copied: it is not there",
         .ip = CODE(LEAF),
         .bp = AT(2),
         .words = {CODE(FRAME), 7, 0},
         .word_count = 3,
         .callers = {CODE(FRAME)},
         .quality = STACK_SHORT_COPY},
        {.name = "the kernel's chain goes on, by words of 4 bytes",
         .ip = CODE(LEAF),
         .bp = AT(1),
         .words = {CODE(FRAME), AT(9), CODE(FRAME)},
         .word_count = 3,
         .chain = {CODE(LEAF), CODE(FRAME), CODE(FRAME), CODE(ROOT)},
         .chain_count = 4,
         .callers = {CODE(FRAME), CODE(FRAME), CODE(FRAME), CODE(ROOT)},
         .quality = STACK_COMPLETE},
        {.name = "a frame pointer in the middle of a word",
         .ip = CODE(BARE),
         .bp = AT(1) + 2,
         .words = {7, 7, 7, CODE(ROOT)},
         .word_count = 4,
         .quality = STACK_BAD_MEMORY},
        {.name = "no stack goes beyond 32 bits",
         .ip = CODE(FRAME),
         .bp = UINT32_MAX - 3,
         .word_count = 1,
         .quality = STACK_BAD_MEMORY},
    };
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        check(&stories[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_rules_of_32_bits),
        cmocka_unit_test(ends_where_nothing_is_proved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
