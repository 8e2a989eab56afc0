/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stacks of all kinds of rules, of frame pointers, and of both; and where they end.
 */
#include "unwind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unwind_story.h"

#define CHECK(stories) check_stories(stories, sizeof(stories) / sizeof *(stories))

static void follows_each_kind_of_rule(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "a root alone", .ip = CODE(CODE_ROOT), .quality = STACK_COMPLETE},
        {.name = "a leaf",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_ROOT)},
         .word_count = 1,
         .callers = {CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1},
        {.name = "rbp, restored by each frame",
         .ip = CODE(CODE_FRAME),
         .bp = AT(1),
         .words = {0, AT(4), CODE(CODE_FRAME), 0, 0, CODE(CODE_ROOT)},
         .word_count = 6,
         .callers = {CODE(CODE_FRAME), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 2},
        {.name = "rbp, kept by frames that do not use it",
         .ip = CODE(CODE_LEAF),
         .bp = AT(4),
         .words = {CODE(CODE_WIDE), 0, 0, CODE(CODE_FRAME), 0, CODE(CODE_ROOT)},
         .word_count = 6,
         .callers = {CODE(CODE_WIDE), CODE(CODE_FRAME), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 3},
        {.name = "rbx, restored and then needed",
         .ip = CODE(CODE_WIDE),
         .words = {0, AT(4), CODE(CODE_BY_BX), 0, 0, CODE(CODE_ROOT)},
         .word_count = 6,
         .callers = {CODE(CODE_BY_BX), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 2},
    };
    CHECK(stories);
}

static void follows_rules_of_the_odd_kinds(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "a register that only the leaf has",
         .ip = CODE(CODE_BY_R10),
         .r10 = AT(2),
         .words = {0, 0, CODE(CODE_ROOT)},
         .word_count = 3,
         .callers = {CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1},
        {.name = "and that it keeps for its caller",
         .ip = CODE(CODE_KEEPER),
         .r10 = AT(3),
         .words = {CODE(CODE_KEEPER), CODE(CODE_BY_R10), 0, CODE(CODE_ROOT)},
         .word_count = 4,
         .callers = {CODE(CODE_KEEPER), CODE(CODE_BY_R10), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 3},
        {.name = "but something between them may not",
         .ip = CODE(CODE_KEEPER),
         .r10 = AT(3),
         .words = {CODE(CODE_LEAF), CODE(CODE_BY_R10), 0, CODE(CODE_ROOT)},
         .word_count = 4,
         .callers = {CODE(CODE_LEAF), CODE(CODE_BY_R10)},
         .quality = STACK_NO_RULE,
         .cfi_count = 2},
        {.name = "a CFA that is in memory",
         .ip = CODE(CODE_REALIGN),
         .bp = AT(1),
         .words = {AT(3), 0, 0, CODE(CODE_ROOT)},
         .word_count = 4,
         .callers = {CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1},
        {.name = "a CFA that is in an array",
         .ip = CODE(CODE_INDEXED),
         .r10 = 2,
         .words = {0, 0, 0, AT(4), CODE(CODE_ROOT)},
         .word_count = 5,
         .callers = {CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1},
        {.name = "an array whose index is not known",
         .ip = CODE(CODE_LEAF),
         .r10 = 2,
         .words = {CODE(CODE_INDEXED), 0, 0, 0, AT(5), CODE(CODE_ROOT)},
         .word_count = 6,
         .callers = {CODE(CODE_INDEXED)},
         .quality = STACK_NO_RULE,
         .cfi_count = 1},
        {.name = "a frame pointer saved where the frame pointer is",
         .ip = CODE(CODE_REALIGN_BP),
         .bp = AT(1),
         .words = {AT(3), AT(4), 0, CODE(CODE_JIT), 0, CODE(CODE_ROOT)},
         .word_count = 6,
         .callers = {CODE(CODE_JIT), CODE(CODE_ROOT)},
         .quality = STACK_UNPROVED,
         .cfi_count = 1,
         .fp_count = 1},
        {.name = "and it is not known there",
         .ip = CODE(CODE_SPOILER),
         .bp = AT(3),
         .words = {CODE(CODE_BP_AT_BP), 0, CODE(CODE_JIT), AT(5), 0, 0, CODE(CODE_ROOT)},
         .word_count = 7,
         .callers = {CODE(CODE_BP_AT_BP), CODE(CODE_JIT)},
         .quality = STACK_NO_RULE,
         .cfi_count = 2},
    };
    CHECK(stories);
}

static void follows_rules_of_plt_slots(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "a slot of a PLT before its push",
         .ip = CODE(CODE_PLT),
         .words = {CODE(CODE_ROOT)},
         .word_count = 1,
         .callers = {CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1},
        {.name = "a slot of a PLT after its push",
         .ip = CODE(CODE_PLT) + 6,
         .words = {7, CODE(CODE_ROOT)},
         .word_count = 2,
         .callers = {CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1},
    };
    CHECK(stories);
}

static void takes_what_was_popped_from_its_register(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "rbp, popped before a return",
         .ip = CODE(CODE_POPPED),
         .bp = AT(1),
         .words = {CODE(CODE_FRAME), 0, CODE(CODE_ROOT)},
         .word_count = 3,
         .callers = {CODE(CODE_FRAME), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 2},
        {.name = "rbx, popped before a return",
         .ip = CODE(CODE_POPPED),
         .bx = AT(1),
         .words = {CODE(CODE_BY_BX), 0, CODE(CODE_ROOT)},
         .word_count = 3,
         .callers = {CODE(CODE_BY_BX), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 2},
        {.name = "a register that was lost cannot be popped",
         .ip = CODE(CODE_SPOILER),
         .bp = AT(2),
         .words = {CODE(CODE_POPPED), CODE(CODE_FRAME), 0, CODE(CODE_ROOT)},
         .word_count = 4,
         .callers = {CODE(CODE_POPPED), CODE(CODE_FRAME)},
         .quality = STACK_NO_RULE,
         .cfi_count = 2},
        {.name = "saved registers that are out of reach and not needed",
         .ip = CODE(CODE_FAR),
         .words = {0, 0, CODE(CODE_LEAF), CODE(CODE_ROOT)},
         .word_count = 4,
         .callers = {CODE(CODE_LEAF), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 2},
    };
    CHECK(stories);
}

static void looks_calls_up_before_their_return_address(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "a call that ends its function",
         .ip = CODE(CODE_LEAF),
         .words = {(uint64_t)(CODE_ROOT + 1) << CODE_PAGE_BITS},
         .word_count = 1,
         .callers = {(uint64_t)(CODE_ROOT + 1) << CODE_PAGE_BITS},
         .quality = STACK_COMPLETE,
         .cfi_count = 1},
        {.name = "the sampled instruction is where it is",
         .ip = (uint64_t)CODE_ROOT << CODE_PAGE_BITS,
         .quality = STACK_COMPLETE},
    };
    CHECK(stories);
}

static void steps_over_signal_frames(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "the handler of a signal that came at a function's first instruction",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_RESTORER), [1 + CODE_SIGNAL_BP / 8] = AT(25),
                   [1 + CODE_SIGNAL_BX / 8] = 5, [1 + CODE_SIGNAL_SP / 8] = AT(24),
                   [1 + CODE_SIGNAL_IP / 8] = (uint64_t)CODE_LEAF << CODE_PAGE_BITS,
                   [24] = CODE(CODE_FRAME), [25] = 0, [26] = CODE(CODE_ROOT)},
         .word_count = 27,
         .callers = {EXACT(CODE(CODE_RESTORER)), EXACT((uint64_t)CODE_LEAF << CODE_PAGE_BITS),
                     CODE(CODE_FRAME), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 4},
    };
    CHECK(stories);
}

static void marks_what_it_cannot_follow_above_a_signal_frame(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "a signal stack above the interrupted one, and nothing of that is copied",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_RESTORER), [1 + CODE_SIGNAL_SP / 8] = AT(-100),
                   [1 + CODE_SIGNAL_IP / 8] = CODE(CODE_LEAF)},
         .word_count = 24,
         .callers = {EXACT(CODE(CODE_RESTORER)), EXACT(CODE(CODE_LEAF))},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 2},
        {.name = "the same, and all of the signal stack is",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_RESTORER), [1 + CODE_SIGNAL_SP / 8] = AT(1000),
                   [1 + CODE_SIGNAL_IP / 8] = CODE(CODE_LEAF)},
         .word_count = 24,
         .whole = true,
         .callers = {EXACT(CODE(CODE_RESTORER)), EXACT(CODE(CODE_LEAF))},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 2},
        {.name = "a signal frame that leads to the kernel's half",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_RESTORER), [1 + CODE_SIGNAL_SP / 8] = UINT64_MAX - 4095,
                   [1 + CODE_SIGNAL_IP / 8] = CODE(CODE_LEAF)},
         .word_count = 24,
         .callers = {EXACT(CODE(CODE_RESTORER)), EXACT(CODE(CODE_LEAF))},
         .quality = STACK_BAD_MEMORY,
         .cfi_count = 2},
        {.name = "a signal on the same stack, and what lies below the copy",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_RESTORER), [1 + CODE_SIGNAL_BP / 8] = AT(0),
                   [1 + CODE_SIGNAL_SP / 8] = AT(22),
                   [1 + CODE_SIGNAL_IP / 8] = CODE(CODE_REALIGN)},
         .word_count = 24,
         .callers = {EXACT(CODE(CODE_RESTORER)), EXACT(CODE(CODE_REALIGN))},
         .quality = STACK_BAD_MEMORY,
         .cfi_count = 2},
        {.name = "a signal stack below the interrupted one",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_RESTORER), [1 + CODE_SIGNAL_SP / 8] = AT(1000),
                   [1 + CODE_SIGNAL_IP / 8] = CODE(CODE_LEAF)},
         .word_count = 24,
         .callers = {EXACT(CODE(CODE_RESTORER)), EXACT(CODE(CODE_LEAF))},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 2},
        {.name = "other registers are not known above one",
         .ip = CODE(CODE_LEAF),
         .r10 = AT(24),
         .words = {CODE(CODE_RESTORER), [1 + CODE_SIGNAL_SP / 8] = AT(24),
                   [1 + CODE_SIGNAL_IP / 8] = CODE(CODE_BY_R10), [24] = CODE(CODE_ROOT)},
         .word_count = 25,
         .callers = {EXACT(CODE(CODE_RESTORER)), EXACT(CODE(CODE_BY_R10))},
         .quality = STACK_NO_RULE,
         .cfi_count = 2},
        {.name = "signal frames in a circle",
         .ip = CODE(CODE_RESTORER),
         .words = {[CODE_SIGNAL_SP / 8] = AT(0), [CODE_SIGNAL_IP / 8] = CODE(CODE_RESTORER)},
         .word_count = 24,
         .max_depth = 3,
         .callers = {EXACT(CODE(CODE_RESTORER)), EXACT(CODE(CODE_RESTORER))},
         .quality = STACK_DEPTH,
         .cfi_count = 2},
    };
    CHECK(stories);
}

static void follows_frame_pointers_where_no_rule_is(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "code without rules, called by code with rules",
         .ip = CODE(CODE_JIT),
         .bp = AT(1),
         .words = {0, AT(4), CODE(CODE_JIT), 0, AT(6), CODE(CODE_FRAME), 0, CODE(CODE_ROOT)},
         .word_count = 8,
         .callers = {CODE(CODE_JIT), CODE(CODE_FRAME), CODE(CODE_ROOT)},
         .quality = STACK_UNPROVED,
         .cfi_count = 1,
         .fp_count = 2},
        {.name = "rules only",
         .ip = CODE(CODE_LEAF),
         .bp = AT(1),
         .words = {CODE(CODE_JIT), 0, CODE(CODE_ROOT)},
         .word_count = 3,
         .mode = UNWIND_CFI,
         .callers = {CODE(CODE_JIT)},
         .quality = STACK_NO_RULE,
         .cfi_count = 1},
        {.name = "a frame pointer says nothing of rbx",
         .ip = CODE(CODE_JIT),
         .bp = AT(0),
         .bx = AT(2),
         .words = {0, CODE(CODE_BY_BX), 0, CODE(CODE_ROOT)},
         .word_count = 4,
         .callers = {CODE(CODE_BY_BX)},
         .quality = STACK_NO_RULE,
         .fp_count = 1},
        {.name = "a lost frame pointer",
         .ip = CODE(CODE_SPOILER),
         .bp = AT(1),
         .words = {CODE(CODE_JIT), 0, CODE(CODE_ROOT)},
         .word_count = 3,
         .callers = {CODE(CODE_JIT)},
         .quality = STACK_NO_RULE,
         .cfi_count = 1},
        {.name = "a chain that ends with rbp 0",
         .ip = CODE(CODE_JIT),
         .bp = AT(0),
         .words = {0, CODE(CODE_JIT)},
         .word_count = 2,
         .callers = {CODE(CODE_JIT)},
         .quality = STACK_NO_RULE,
         .fp_count = 1},
        {.name = "a chain that ends with return address 0",
         .ip = CODE(CODE_JIT),
         .bp = AT(0),
         .words = {AT(2), 0},
         .word_count = 2,
         .quality = STACK_NO_RULE},
    };
    CHECK(stories);
}

static void stops_rather_than_guess(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "an ip that is nowhere", .ip = CODE(CODE_NOWHERE), .quality = STACK_BAD_MEMORY},
        {.name = "a return address that is nowhere",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_NOWHERE)},
         .word_count = 1,
         .quality = STACK_BAD_MEMORY},
        {.name = "a return address of 0",
         .ip = CODE(CODE_LEAF),
         .words = {0},
         .word_count = 1,
         .quality = STACK_NO_RULE},
        {.name = "a CFA on a register that was lost, though rbp leads on",
         .ip = CODE(CODE_SPOILER),
         .bp = AT(1),
         .words = {CODE(CODE_FRAME), 0, CODE(CODE_ROOT)},
         .word_count = 3,
         .callers = {CODE(CODE_FRAME)},
         .quality = STACK_NO_RULE,
         .cfi_count = 1},
        {.name = "a CFA on a register that was lost two frames below",
         .ip = CODE(CODE_SPOILER),
         .bx = AT(2),
         .words = {CODE(CODE_LEAF), CODE(CODE_BY_BX), 0, CODE(CODE_ROOT)},
         .word_count = 4,
         .callers = {CODE(CODE_LEAF), CODE(CODE_BY_BX)},
         .quality = STACK_NO_RULE,
         .cfi_count = 2},
        {.name = "a CFA on a saved register that could not be read",
         .ip = CODE(CODE_FAR),
         .bp = AT(3),
         .words = {0, 0, CODE(CODE_FRAME), 0, CODE(CODE_ROOT)},
         .word_count = 5,
         .callers = {CODE(CODE_FRAME)},
         .quality = STACK_NO_RULE,
         .cfi_count = 1},
    };
    CHECK(stories);
}

static void stops_where_the_stack_does_not_rise(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "a CFA that does not rise",
         .ip = CODE(CODE_LIAR),
         .words = {CODE(CODE_LIAR)},
         .word_count = 1,
         .quality = STACK_BAD_MEMORY},
        {.name = "frame pointers in a circle",
         .ip = CODE(CODE_JIT),
         .bp = AT(0),
         .words = {AT(0), CODE(CODE_JIT)},
         .word_count = 2,
         .callers = {CODE(CODE_JIT)},
         .quality = STACK_BAD_MEMORY,
         .fp_count = 1},
        {.name = "rules in a circle",
         .ip = CODE(CODE_FRAME),
         .bp = AT(0),
         .words = {AT(0), CODE(CODE_FRAME)},
         .word_count = 2,
         .callers = {CODE(CODE_FRAME)},
         .quality = STACK_BAD_MEMORY,
         .cfi_count = 1},
        {.name = "a frame pointer below the stack",
         .ip = CODE(CODE_JIT),
         .bp = AT(-1),
         .words = {CODE(CODE_ROOT), CODE(CODE_ROOT)},
         .word_count = 2,
         .quality = STACK_BAD_MEMORY},
        {.name = "a frame pointer that is none",
         .ip = CODE(CODE_JIT),
         .bp = AT(0) + 4,
         .words = {0, CODE(CODE_ROOT) << 32, 0},
         .word_count = 3,
         .quality = STACK_BAD_MEMORY},
    };
    CHECK(stories);
}

static void says_whether_the_copy_or_the_stack_ended(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "a cut copy", .ip = CODE(CODE_LEAF), .quality = STACK_SHORT_COPY},
        {.name = "a whole one",
         .ip = CODE(CODE_WIDE),
         .words = {0},
         .word_count = 1,
         .whole = true,
         .quality = STACK_BAD_MEMORY},
        {.name = "one that ends with a page",
         .ip = CODE(CODE_LEAF),
         .whole = true,
         .quality = STACK_SHORT_COPY},
        {.name = "and the last word that can be of a frame there",
         .ip = CODE(CODE_JIT),
         .bp = AT(131070),
         .whole = true,
         .quality = STACK_SHORT_COPY},
        {.name = "and the first that cannot",
         .ip = CODE(CODE_JIT),
         .bp = AT(131072),
         .whole = true,
         .quality = STACK_BAD_MEMORY},
        {.name = "half of the word",
         .ip = CODE(CODE_WIDE),
         .words = {0, 0},
         .word_count = 2,
         .quality = STACK_SHORT_COPY},
        {.name = "a frame pointer above a cut copy",
         .ip = CODE(CODE_JIT),
         .bp = AT(1),
         .words = {0, 0},
         .word_count = 2,
         .quality = STACK_SHORT_COPY},
        {.name = "and above a whole one",
         .ip = CODE(CODE_JIT),
         .bp = AT(1),
         .words = {0, 0},
         .word_count = 2,
         .whole = true,
         .quality = STACK_BAD_MEMORY},
        {.name = "a memory CFA below a cut copy",
         .ip = CODE(CODE_REALIGN),
         .bp = AT(0),
         .words = {AT(1), CODE(CODE_ROOT)},
         .word_count = 2,
         .quality = STACK_BAD_MEMORY},
    };
    CHECK(stories);
}

static void survives_addresses_at_either_end(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "a frame pointer where the kernel is",
         .ip = CODE(CODE_JIT),
         .bp = UINT64_MAX - 255,
         .quality = STACK_BAD_MEMORY},
        {.name = "a CFA past the end of all addresses",
         .ip = CODE(CODE_FRAME),
         .bp = UINT64_MAX - 7,
         .quality = STACK_BAD_MEMORY},
        {.name = "frame pointers past it",
         .ip = CODE(CODE_JIT),
         .bp = UINT64_MAX - 7,
         .quality = STACK_BAD_MEMORY},
        {.name = "a frame that ends where they do",
         .ip = CODE(CODE_JIT),
         .sp = UINT64_MAX - 15,
         .bp = UINT64_MAX - 15,
         .words = {0, CODE(CODE_ROOT)},
         .word_count = 2,
         .quality = STACK_BAD_MEMORY},
        {.name = "a stack at the end of all addresses",
         .ip = CODE(CODE_LEAF),
         .sp = UINT64_MAX - 15,
         .words = {CODE(CODE_LEAF), CODE(CODE_ROOT)},
         .word_count = 2,
         .callers = {CODE(CODE_LEAF)},
         .quality = STACK_BAD_MEMORY,
         .cfi_count = 1},
        {.name = "a stack pointer of 0 and a frame pointer before it",
         .ip = CODE(CODE_REALIGN),
         .sp = 8,
         .bp = 4,
         .quality = STACK_BAD_MEMORY},
    };
    CHECK(stories);
}

static void keeps_to_the_depth(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "more would follow",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_LEAF), CODE(CODE_LEAF), CODE(CODE_ROOT)},
         .word_count = 3,
         .max_depth = 2,
         .callers = {CODE(CODE_LEAF)},
         .quality = STACK_DEPTH,
         .cfi_count = 1},
        {.name = "the root just fits",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_ROOT)},
         .word_count = 1,
         .max_depth = 2,
         .callers = {CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1},
        {.name = "what would follow is no code",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_NOWHERE)},
         .word_count = 1,
         .max_depth = 1,
         .quality = STACK_BAD_MEMORY},
        {.name = "one frame",
         .ip = CODE(CODE_JIT),
         .bp = AT(0),
         .words = {0, CODE(CODE_ROOT)},
         .word_count = 2,
         .max_depth = 1,
         .quality = STACK_DEPTH},
    };
    CHECK(stories);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_each_kind_of_rule),
        cmocka_unit_test(follows_rules_of_the_odd_kinds),
        cmocka_unit_test(follows_rules_of_plt_slots),
        cmocka_unit_test(takes_what_was_popped_from_its_register),
        cmocka_unit_test(looks_calls_up_before_their_return_address),
        cmocka_unit_test(steps_over_signal_frames),
        cmocka_unit_test(marks_what_it_cannot_follow_above_a_signal_frame),
        cmocka_unit_test(follows_frame_pointers_where_no_rule_is),
        cmocka_unit_test(stops_rather_than_guess),
        cmocka_unit_test(stops_where_the_stack_does_not_rise),
        cmocka_unit_test(says_whether_the_copy_or_the_stack_ended),
        cmocka_unit_test(survives_addresses_at_either_end),
        cmocka_unit_test(keeps_to_the_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
