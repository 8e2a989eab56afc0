/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Functions that go over to another stack, of which nothing is copied: the kernel's chain goes on
 * there, on proof. Without it no such stack is complete, whatever lies on this one.
 */
#include "unwind_cfi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unwind_story.h"

#define CHECK(stories) check_stories(stories, sizeof(stories) / sizeof *(stories))

/* A frame pointer on the other stack, which lies below this one. */
#define OTHER UINT64_C(0x10002000)

static void crosses_with_a_frame_pointer_that_the_callee_saved(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "a callee whose rbp nothing tells, but for its place",
         .ip = CODE(CODE_GO),
         .bp = AT(1),
         .words = {0, OTHER, CODE(CODE_SWITCH)},
         .word_count = 3,
         .chain = {CODE(CODE_GO), CODE(CODE_SWITCH), CODE(CODE_GO), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_SWITCH), CODE(CODE_GO), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1,
         .fp_count = 2,
         .crossed = true},
        {.name = "the same further out, in a function with a rule of its own",
         .ip = CODE(CODE_GO),
         .bp = AT(1),
         .words = {0, AT(4), CODE(CODE_GO), 0, OTHER, CODE(CODE_SWITCH_FRAME), 0, 0,
                   CODE(CODE_ROOT)},
         .word_count = 9,
         .whole = true,
         .chain = {CODE(CODE_GO), CODE(CODE_GO), CODE(CODE_SWITCH_FRAME), CODE(CODE_GO),
                   CODE(CODE_ROOT)},
         .chain_count = 5,
         .callers = {CODE(CODE_GO), CODE(CODE_SWITCH_FRAME), CODE(CODE_GO), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 2,
         .fp_count = 2,
         .crossed = true},
        {.name = "a callee that restores rbp by its rule",
         .ip = CODE(CODE_FRAME),
         .bp = AT(0),
         .words = {OTHER, CODE(CODE_SWITCH_LEAF), CODE(CODE_ROOT)},
         .word_count = 3,
         .chain = {CODE(CODE_FRAME), CODE(CODE_SWITCH_LEAF), CODE(CODE_GO), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_SWITCH_LEAF), CODE(CODE_GO), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1,
         .fp_count = 2,
         .crossed = true},
        {.name = "a callee without a rule",
         .ip = CODE(CODE_JIT),
         .bp = AT(0),
         .words = {OTHER, CODE(CODE_SWITCH)},
         .word_count = 2,
         .chain = {CODE(CODE_JIT), CODE(CODE_SWITCH), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {CODE(CODE_SWITCH), CODE(CODE_ROOT)},
         .quality = STACK_UNPROVED,
         .fp_count = 2,
         .crossed = true},
    };
    CHECK(stories);
}

static void crosses_with_the_sampled_frame_pointer(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "from a callee that leaves it alone",
         .ip = CODE(CODE_LEAF),
         .bp = OTHER,
         .words = {CODE(CODE_SWITCH)},
         .word_count = 1,
         .chain = {CODE(CODE_LEAF), CODE(CODE_GO), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {CODE(CODE_SWITCH), CODE(CODE_GO), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1,
         .fp_count = 2,
         .crossed = true},
        {.name = "from the function itself",
         .ip = CODE(CODE_SWITCH),
         .bp = OTHER,
         .chain = {CODE(CODE_SWITCH), CODE(CODE_ROOT)},
         .chain_count = 2,
         .callers = {CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .fp_count = 1,
         .crossed = true},
        {.name = "from the function itself, which has a rule that does not hold now",
         .ip = CODE(CODE_SWITCH_LEAF),
         .bp = OTHER,
         .words = {CODE(CODE_GO), 0, 0, CODE(CODE_ROOT)},
         .word_count = 4,
         .chain = {CODE(CODE_SWITCH_LEAF), CODE(CODE_JIT), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {CODE(CODE_JIT), CODE(CODE_ROOT)},
         .quality = STACK_UNPROVED,
         .fp_count = 2,
         .crossed = true},
        {.name = "from below a handler's stack",
         .ip = CODE(CODE_RESTORER),
         .bp = AT(90),
         .words = {[CODE_SIGNAL_BP / 8] = AT(90),
                   [CODE_SIGNAL_SP / 8] = AT(-100),
                   [CODE_SIGNAL_IP / 8] = CODE(CODE_SWITCH)},
         .word_count = 22,
         .whole = true,
         .chain = {CODE(CODE_RESTORER), CODE(CODE_GO), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {EXACT(CODE(CODE_SWITCH)), CODE(CODE_GO), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1,
         .fp_count = 2,
         .crossed = true},
        {.name = "to a frame further up on the same stack",
         .ip = CODE(CODE_LEAF),
         .bp = AT(4),
         .words = {CODE(CODE_SWITCH_FRAME), 0, 0, 0, 0, CODE(CODE_ROOT)},
         .word_count = 6,
         .chain = {CODE(CODE_LEAF), CODE(CODE_ROOT)},
         .chain_count = 2,
         .callers = {CODE(CODE_SWITCH_FRAME), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1,
         .fp_count = 1,
         .crossed = true},
    };
    CHECK(stories);
}

static void follows_a_joined_chain_across(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "where the copy ends before",
         .ip = CODE(CODE_FRAME),
         .bp = AT(7),
         .chain = {CODE(CODE_FRAME), CODE(CODE_SWITCH), CODE(CODE_GO), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_SWITCH), CODE(CODE_GO), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .fp_count = 3,
         .crossed = true},
        {.name = "twice",
         .ip = CODE(CODE_SWITCH_FRAME),
         .bp = OTHER,
         .chain = {CODE(CODE_SWITCH_FRAME), CODE(CODE_GO), CODE(CODE_SWITCH_LEAF), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_GO), CODE(CODE_SWITCH_LEAF), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .fp_count = 3,
         .crossed = true},
    };
    CHECK(stories);
}

static void follows_the_rule_while_it_is_on_its_own_stack(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "by the place of its frame",
         .ip = CODE(CODE_SWITCH_FRAME),
         .bp = AT(1),
         .words = {0, 0, CODE(CODE_LEAF), CODE(CODE_ROOT)},
         .word_count = 4,
         .callers = {CODE(CODE_LEAF), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 2},
        {.name = "by the place of its caller's",
         .ip = CODE(CODE_SWITCH_LEAF),
         .bp = AT(2),
         .words = {CODE(CODE_GO), 0, 0, CODE(CODE_ROOT)},
         .word_count = 4,
         .callers = {CODE(CODE_GO), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 2},
        {.name = "when its caller is not known yet",
         .ip = CODE(CODE_SWITCH_LEAF),
         .bp = AT(2),
         .words = {CODE(CODE_LOADING), 0, 0, CODE(CODE_ROOT)},
         .word_count = 4,
         .pending = true},
    };
    CHECK(stories);
}

static void is_never_complete_without_a_chain(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "none at all",
         .ip = CODE(CODE_GO),
         .bp = AT(1),
         .words = {0, OTHER, CODE(CODE_SWITCH), CODE(CODE_ROOT), CODE(CODE_ROOT)},
         .word_count = 5,
         .whole = true,
         .callers = {CODE(CODE_SWITCH)},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1,
         .crossed = true},
        {.name = "of another sample",
         .ip = CODE(CODE_SWITCH),
         .bp = OTHER,
         .chain = {CODE(CODE_GO), CODE(CODE_ROOT)},
         .chain_count = 2,
         .quality = STACK_SHORT_COPY,
         .crossed = true},
        {.name = "and what the rule would find is none of its callers",
         .ip = CODE(CODE_LEAF),
         .bp = OTHER,
         .words = {CODE(CODE_SWITCH_LEAF), CODE(CODE_ROOT)},
         .word_count = 2,
         .callers = {CODE(CODE_SWITCH_LEAF)},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1,
         .crossed = true},
        {.name = "and an rbp that is only as it was tells no place",
         .ip = CODE(CODE_SWITCH_LEAF),
         .bp = AT(1),
         .words = {CODE(CODE_FRAME), 0, CODE(CODE_ROOT)},
         .word_count = 3,
         .quality = STACK_SHORT_COPY,
         .crossed = true},
    };
    CHECK(stories);
}

static void takes_no_chain_whose_way_is_not_proven(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "by the address of the function alone",
         .ip = CODE(CODE_SPOILER),
         .bp = AT(9),
         .words = {CODE(CODE_SWITCH)},
         .word_count = 1,
         .chain = {CODE(CODE_SPOILER), CODE(CODE_SWITCH), CODE(CODE_GO), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_SWITCH)},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1,
         .crossed = true},
        {.name = "which did not come by the callee",
         .ip = CODE(CODE_GO),
         .bp = AT(9),
         .words = {0, OTHER, CODE(CODE_SWITCH)},
         .word_count = 3,
         .chain = {CODE(CODE_GO), CODE(CODE_SWITCH), CODE(CODE_GO), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_SWITCH)},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1,
         .crossed = true},
        {.name = "which came from a register that the callee uses for something else",
         .ip = CODE(CODE_SCRATCH),
         .bp = AT(9),
         .words = {0, OTHER, CODE(CODE_SWITCH)},
         .word_count = 3,
         .chain = {CODE(CODE_SCRATCH), CODE(CODE_SWITCH), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {CODE(CODE_SWITCH)},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1,
         .crossed = true},
        {.name = "that the copied bytes contradict",
         .ip = CODE(CODE_GO),
         .bp = AT(1),
         .words = {0, OTHER, CODE(CODE_SWITCH)},
         .word_count = 3,
         .chain = {CODE(CODE_GO), CODE(CODE_SWITCH) + 1, CODE(CODE_GO), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_SWITCH)},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1,
         .crossed = true},
    };
    CHECK(stories);
}

static void takes_no_chain_of_a_forged_frame_pointer(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "back to the callee",
         .ip = CODE(CODE_GO),
         .bp = AT(1),
         .words = {0, AT(1), CODE(CODE_SWITCH)},
         .word_count = 3,
         .chain = {CODE(CODE_GO), CODE(CODE_SWITCH), CODE(CODE_SWITCH), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_SWITCH)},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1,
         .crossed = true},
        {.name = "to a made-up frame below",
         .ip = CODE(CODE_JIT),
         .bp = AT(3),
         .words = {0, CODE(CODE_ROOT), 0, AT(0), CODE(CODE_SWITCH)},
         .word_count = 5,
         .chain = {CODE(CODE_JIT), CODE(CODE_SWITCH), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {CODE(CODE_SWITCH)},
         .quality = STACK_SHORT_COPY,
         .fp_count = 1,
         .crossed = true},
        {.name = "to the middle of a word",
         .ip = CODE(CODE_GO),
         .bp = AT(1),
         .words = {0, OTHER + 4, CODE(CODE_SWITCH)},
         .word_count = 3,
         .chain = {CODE(CODE_GO), CODE(CODE_SWITCH), CODE(CODE_ROOT)},
         .chain_count = 3,
         .callers = {CODE(CODE_SWITCH)},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1,
         .crossed = true},
        {.name = "below a handler's stack, back onto that",
         .ip = CODE(CODE_RESTORER),
         .bp = AT(0),
         .words = {[1] = CODE(CODE_ROOT),
                   [CODE_SIGNAL_BP / 8] = AT(0),
                   [CODE_SIGNAL_SP / 8] = AT(-100),
                   [CODE_SIGNAL_IP / 8] = CODE(CODE_SWITCH)},
         .word_count = 22,
         .whole = true,
         .chain = {CODE(CODE_RESTORER), CODE(CODE_ROOT)},
         .chain_count = 2,
         .callers = {EXACT(CODE(CODE_SWITCH))},
         .quality = STACK_SHORT_COPY,
         .cfi_count = 1,
         .crossed = true},
    };
    CHECK(stories);
}

#define TO_SWITCH                                                                                  \
    .ip = CODE(CODE_GO), .bp = AT(1), .words = {0, OTHER, CODE(CODE_SWITCH)}, .word_count = 3,     \
    .cfi_count = 1, .crossed = true

static void is_complete_only_at_a_root(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "not where the chain ends at the switch",
         TO_SWITCH,
         .chain = {CODE(CODE_GO), CODE(CODE_SWITCH)},
         .chain_count = 2,
         .callers = {CODE(CODE_SWITCH)},
         .quality = STACK_SHORT_COPY},
        {.name = "or had to",
         TO_SWITCH,
         .chain = {CODE(CODE_GO), CODE(CODE_SWITCH)},
         .chain_count = 2,
         .chain_cut = true,
         .callers = {CODE(CODE_SWITCH)},
         .quality = STACK_DEPTH},
        {.name = "not above any code",
         TO_SWITCH,
         .chain = {CODE(CODE_GO), CODE(CODE_SWITCH), CODE(CODE_GO)},
         .chain_count = 3,
         .callers = {CODE(CODE_SWITCH), CODE(CODE_GO)},
         .quality = STACK_SHORT_COPY,
         .fp_count = 1},
        {.name = "not above a function that makes no frame",
         TO_SWITCH,
         .chain = {CODE(CODE_GO), CODE(CODE_SWITCH), CODE(CODE_LEAF), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_SWITCH), CODE(CODE_LEAF)},
         .quality = STACK_SHORT_COPY,
         .fp_count = 1},
        {.name = "not above what is no code",
         TO_SWITCH,
         .chain = {CODE(CODE_GO), CODE(CODE_SWITCH), CODE(CODE_NOWHERE), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_SWITCH)},
         .quality = STACK_BAD_MEMORY},
        {.name = "not past the depth",
         TO_SWITCH,
         .max_depth = 3,
         .chain = {CODE(CODE_GO), CODE(CODE_SWITCH), CODE(CODE_GO), CODE(CODE_ROOT)},
         .chain_count = 4,
         .callers = {CODE(CODE_SWITCH), CODE(CODE_GO)},
         .quality = STACK_DEPTH,
         .fp_count = 1},
    };
    CHECK(stories);
}

/* Its other members say nothing, though they can be read as a rule. */
static void has_no_rule_without_a_return_address(void **state)
{
    (void)state;
    const uint64_t words[] = {0, 0, CODE(CODE_ROOT)};
    const struct unwind_memory memory = {AT(0), (const uint8_t *)words, sizeof words, false, false,
                                         false};
    const struct cfi_rule rule = {
        .kind = CFI_SWITCH, .cfa_register = ARCH_DWARF_BX, .cfa_offset = 8, .ra_saved = CFI_LOST};
    struct unwind_frame frame = {.pc = CODE(CODE_SWITCH),
                                 .known = 1U << ARCH_DWARF_SP | 1U << ARCH_DWARF_BX};
    frame.registers[ARCH_DWARF_SP] = AT(0);
    frame.registers[ARCH_DWARF_BX] = AT(1);
    assert_int_equal(unwind_cfi_step(&rule, &memory, &frame), STACK_NO_RULE);
    assert_int_equal(frame.pc, CODE(CODE_SWITCH));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crosses_with_a_frame_pointer_that_the_callee_saved),
        cmocka_unit_test(crosses_with_the_sampled_frame_pointer),
        cmocka_unit_test(follows_a_joined_chain_across),
        cmocka_unit_test(follows_the_rule_while_it_is_on_its_own_stack),
        cmocka_unit_test(is_never_complete_without_a_chain),
        cmocka_unit_test(takes_no_chain_whose_way_is_not_proven),
        cmocka_unit_test(takes_no_chain_of_a_forged_frame_pointer),
        cmocka_unit_test(is_complete_only_at_a_root),
        cmocka_unit_test(has_no_rule_without_a_return_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
