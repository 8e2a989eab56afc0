/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Functions that go over to another stack, of which nothing is copied: the kernel's chain goes on
 * there, on proof. Without it no such stack is complete, whatever lies on this one.
 */
#include "unwind_cfi.h"

#include "unwind_story.h"

/* A frame pointer on the other stack, which lies below this one. */
#define OTHER UINT64_C(0x10002000)

TEST(crosses_with_a_frame_pointer_that_the_callee_saved)
{
    CHECK({"a callee whose rbp nothing tells, but for its place",
           FROM(C(GO), .bp = AT(1), .crossed = true), WORDS(0, OTHER, C(SWITCH)),
           CHAIN(C(GO), C(SWITCH), C(GO), C(ROOT)), CALLERS(C(SWITCH), C(GO), C(ROOT)),
           ENDS(COMPLETE, 1, 2)},
          {"the same further out, in a function with a rule of its own",
           FROM(C(GO), .bp = AT(1), .whole = true, .crossed = true),
           WORDS(0, AT(4), C(GO), 0, OTHER, C(SWITCH_FRAME), 0, 0, C(ROOT)),
           CHAIN(C(GO), C(GO), C(SWITCH_FRAME), C(GO), C(ROOT)),
           CALLERS(C(GO), C(SWITCH_FRAME), C(GO), C(ROOT)), ENDS(COMPLETE, 2, 2)},
          {"a callee that restores rbp by its rule", FROM(C(FRAME), .bp = AT(0), .crossed = true),
           WORDS(OTHER, C(SWITCH_LEAF), C(ROOT)), CHAIN(C(FRAME), C(SWITCH_LEAF), C(GO), C(ROOT)),
           CALLERS(C(SWITCH_LEAF), C(GO), C(ROOT)), ENDS(COMPLETE, 1, 2)},
          {"a callee without a rule", FROM(C(JIT), .bp = AT(0), .crossed = true),
           WORDS(OTHER, C(SWITCH)), CHAIN(C(JIT), C(SWITCH), C(ROOT)), CALLERS(C(SWITCH), C(ROOT)),
           ENDS(UNPROVED, 0, 2)});
}

TEST(crosses_with_the_sampled_frame_pointer)
{
    CHECK({"from a callee that leaves it alone", FROM(C(LEAF), .bp = OTHER, .crossed = true),
           WORDS(C(SWITCH)), CHAIN(C(LEAF), C(GO), C(ROOT)), CALLERS(C(SWITCH), C(GO), C(ROOT)),
           ENDS(COMPLETE, 1, 2)},
          {"from the function itself", FROM(C(SWITCH), .bp = OTHER, .crossed = true),
           CHAIN(C(SWITCH), C(ROOT)), CALLERS(C(ROOT)), ENDS(COMPLETE, 0, 1)},
          {"from the function itself, which has a rule that does not hold now",
           FROM(C(SWITCH_LEAF), .bp = OTHER, .crossed = true), WORDS(C(GO), 0, 0, C(ROOT)),
           CHAIN(C(SWITCH_LEAF), C(JIT), C(ROOT)), CALLERS(C(JIT), C(ROOT)), ENDS(UNPROVED, 0, 2)},
          {"from below a handler's stack",
           FROM(C(RESTORER), .bp = AT(90), .whole = true, .crossed = true),
           WORDS(SIGNAL(0, BP) = AT(90), SIGNAL(0, SP) = AT(-100), SIGNAL(0, IP) = C(SWITCH)),
           CHAIN(C(RESTORER), C(GO), C(ROOT)), CALLERS(EXACT(C(SWITCH)), C(GO), C(ROOT)),
           ENDS(COMPLETE, 1, 2)},
          {"to a frame further up on the same stack", FROM(C(LEAF), .bp = AT(4), .crossed = true),
           WORDS(C(SWITCH_FRAME), 0, 0, 0, 0, C(ROOT)), CHAIN(C(LEAF), C(ROOT)),
           CALLERS(C(SWITCH_FRAME), C(ROOT)), ENDS(COMPLETE, 1, 1)});
}

TEST(follows_a_joined_chain_across)
{
    CHECK({"where the copy ends before", FROM(C(FRAME), .bp = AT(7), .crossed = true),
           CHAIN(C(FRAME), C(SWITCH), C(GO), C(ROOT)), CALLERS(C(SWITCH), C(GO), C(ROOT)),
           ENDS(COMPLETE, 0, 3)},
          {"twice", FROM(C(SWITCH_FRAME), .bp = OTHER, .crossed = true),
           CHAIN(C(SWITCH_FRAME), C(GO), C(SWITCH_LEAF), C(ROOT)),
           CALLERS(C(GO), C(SWITCH_LEAF), C(ROOT)), ENDS(COMPLETE, 0, 3)});
}

TEST(follows_the_rule_while_it_is_on_its_own_stack)
{
    CHECK({"by the place of its frame", FROM(C(SWITCH_FRAME), .bp = AT(1)),
           WORDS(0, 0, C(LEAF), C(ROOT)), CALLERS(C(LEAF), C(ROOT)), ENDS(COMPLETE, 2, 0)},
          {"by the place of its caller's", FROM(C(SWITCH_LEAF), .bp = AT(2)),
           WORDS(C(GO), 0, 0, C(ROOT)), CALLERS(C(GO), C(ROOT)), ENDS(COMPLETE, 2, 0)},
          {"when its caller is not known yet", FROM(C(SWITCH_LEAF), .bp = AT(2), .pending = true),
           WORDS(C(LOADING), 0, 0, C(ROOT))});
}

TEST(is_never_complete_without_a_chain)
{
    CHECK({"none at all", FROM(C(GO), .bp = AT(1), .whole = true, .crossed = true),
           WORDS(0, OTHER, C(SWITCH), C(ROOT), C(ROOT)), CALLERS(C(SWITCH)),
           ENDS(SHORT_COPY, 1, 0)},
          {"of another sample", FROM(C(SWITCH), .bp = OTHER, .crossed = true),
           CHAIN(C(GO), C(ROOT)), ENDS(SHORT_COPY, 0, 0)},
          {"and what the rule would find is none of its callers",
           FROM(C(LEAF), .bp = OTHER, .crossed = true), WORDS(C(SWITCH_LEAF), C(ROOT)),
           CALLERS(C(SWITCH_LEAF)), ENDS(SHORT_COPY, 1, 0)},
          {"and an rbp that is only as it was tells no place",
           FROM(C(SWITCH_LEAF), .bp = AT(1), .crossed = true), WORDS(C(FRAME), 0, C(ROOT)),
           ENDS(SHORT_COPY, 0, 0)});
}

TEST(takes_no_chain_whose_way_is_not_proven)
{
    CHECK({"by the address of the function alone", FROM(C(SPOILER), .bp = AT(9), .crossed = true),
           WORDS(C(SWITCH)), CHAIN(C(SPOILER), C(SWITCH), C(GO), C(ROOT)), CALLERS(C(SWITCH)),
           ENDS(SHORT_COPY, 1, 0)},
          {"which did not come by the callee", FROM(C(GO), .bp = AT(9), .crossed = true),
           WORDS(0, OTHER, C(SWITCH)), CHAIN(C(GO), C(SWITCH), C(GO), C(ROOT)), CALLERS(C(SWITCH)),
           ENDS(SHORT_COPY, 1, 0)},
          {"which came from a register that the callee uses for something else",
           FROM(C(SCRATCH), .bp = AT(9), .crossed = true), WORDS(0, OTHER, C(SWITCH)),
           CHAIN(C(SCRATCH), C(SWITCH), C(ROOT)), CALLERS(C(SWITCH)), ENDS(SHORT_COPY, 1, 0)},
          {"that the copied bytes contradict", FROM(C(GO), .bp = AT(1), .crossed = true),
           WORDS(0, OTHER, C(SWITCH)), CHAIN(C(GO), C(SWITCH) + 1, C(GO), C(ROOT)),
           CALLERS(C(SWITCH)), ENDS(SHORT_COPY, 1, 0)});
}

TEST(takes_no_chain_of_a_forged_frame_pointer)
{
    CHECK({"back to the callee", FROM(C(GO), .bp = AT(1), .crossed = true),
           WORDS(0, AT(1), C(SWITCH)), CHAIN(C(GO), C(SWITCH), C(SWITCH), C(ROOT)),
           CALLERS(C(SWITCH)), ENDS(SHORT_COPY, 1, 0)},
          {"to a made-up frame below", FROM(C(JIT), .bp = AT(3), .crossed = true),
           WORDS(0, C(ROOT), 0, AT(0), C(SWITCH)), CHAIN(C(JIT), C(SWITCH), C(ROOT)),
           CALLERS(C(SWITCH)), ENDS(SHORT_COPY, 0, 1)},
          {"to the middle of a word", FROM(C(GO), .bp = AT(1), .crossed = true),
           WORDS(0, OTHER + 4, C(SWITCH)), CHAIN(C(GO), C(SWITCH), C(ROOT)), CALLERS(C(SWITCH)),
           ENDS(SHORT_COPY, 1, 0)},
          {"below a handler's stack, back onto that",
           FROM(C(RESTORER), .bp = AT(0), .whole = true, .crossed = true),
           WORDS([1] = C(ROOT), SIGNAL(0, BP) = AT(0), SIGNAL(0, SP) = AT(-100),
                 SIGNAL(0, IP) = C(SWITCH)),
           CHAIN(C(RESTORER), C(ROOT)), CALLERS(EXACT(C(SWITCH))), ENDS(SHORT_COPY, 1, 0)});
}

#define TO_SWITCH FROM(C(GO), .bp = AT(1), .crossed = true), WORDS(0, OTHER, C(SWITCH))

TEST(is_complete_only_at_a_root)
{
    CHECK({"not where the chain ends at the switch", TO_SWITCH, CHAIN(C(GO), C(SWITCH)),
           CALLERS(C(SWITCH)), ENDS(SHORT_COPY, 1, 0)},
          {"or had to", TO_SWITCH, .chain_cut = true, CHAIN(C(GO), C(SWITCH)), CALLERS(C(SWITCH)),
           ENDS(DEPTH, 1, 0)},
          {"not above any code", TO_SWITCH, CHAIN(C(GO), C(SWITCH), C(GO)),
           CALLERS(C(SWITCH), C(GO)), ENDS(SHORT_COPY, 1, 1)},
          {"not above a function that makes no frame", TO_SWITCH,
           CHAIN(C(GO), C(SWITCH), C(LEAF), C(ROOT)), CALLERS(C(SWITCH), C(LEAF)),
           ENDS(SHORT_COPY, 1, 1)},
          {"not above what is no code", TO_SWITCH, CHAIN(C(GO), C(SWITCH), C(NOWHERE), C(ROOT)),
           CALLERS(C(SWITCH)), ENDS(BAD_MEMORY, 1, 0)},
          {"not past the depth", TO_SWITCH, .max_depth = 3, CHAIN(C(GO), C(SWITCH), C(GO), C(ROOT)),
           CALLERS(C(SWITCH), C(GO)), ENDS(DEPTH, 1, 1)});
}

/* Its other members say nothing, though they can be read as a rule. */
TEST(has_no_rule_without_a_return_address)
{
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
