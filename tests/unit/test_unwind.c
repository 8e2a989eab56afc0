/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stacks of all kinds of rules, of frame pointers, and of both; and where they end.
 */
#include "unwind.h"

#include "unwind_story.h"

TEST(follows_each_kind_of_rule)
{
    CHECK({"a root alone", FROM(C(ROOT)), ENDS(COMPLETE, 0, 0)},
          {"a leaf", FROM(C(LEAF)), WORDS(C(ROOT)), CALLERS(C(ROOT)), ENDS(COMPLETE, 1, 0)},
          {"rbp, restored by each frame", FROM(C(FRAME), .bp = AT(1)),
           WORDS(0, AT(4), C(FRAME), 0, 0, C(ROOT)), CALLERS(C(FRAME), C(ROOT)),
           ENDS(COMPLETE, 2, 0)},
          {"rbp, kept by frames that do not use it", FROM(C(LEAF), .bp = AT(4)),
           WORDS(C(WIDE), 0, 0, C(FRAME), 0, C(ROOT)), CALLERS(C(WIDE), C(FRAME), C(ROOT)),
           ENDS(COMPLETE, 3, 0)},
          {"rbx, restored and then needed", FROM(C(WIDE)), WORDS(0, AT(4), C(BY_BX), 0, 0, C(ROOT)),
           CALLERS(C(BY_BX), C(ROOT)), ENDS(COMPLETE, 2, 0)});
}

TEST(follows_rules_of_the_odd_kinds)
{
    CHECK({"a register that only the leaf has", FROM(C(BY_R10), .r10 = AT(2)), WORDS(0, 0, C(ROOT)),
           CALLERS(C(ROOT)), ENDS(COMPLETE, 1, 0)},
          {"and that it keeps for its caller", FROM(C(KEEPER), .r10 = AT(3)),
           WORDS(C(KEEPER), C(BY_R10), 0, C(ROOT)), CALLERS(C(KEEPER), C(BY_R10), C(ROOT)),
           ENDS(COMPLETE, 3, 0)},
          {"but something between them may not", FROM(C(KEEPER), .r10 = AT(3)),
           WORDS(C(LEAF), C(BY_R10), 0, C(ROOT)), CALLERS(C(LEAF), C(BY_R10)), ENDS(NO_RULE, 2, 0)},
          {"a CFA that is in memory", FROM(C(REALIGN), .bp = AT(1)), WORDS(AT(3), 0, 0, C(ROOT)),
           CALLERS(C(ROOT)), ENDS(COMPLETE, 1, 0)},
          {"a CFA that is in an array", FROM(C(INDEXED), .r10 = 2), WORDS(0, 0, 0, AT(4), C(ROOT)),
           CALLERS(C(ROOT)), ENDS(COMPLETE, 1, 0)},
          {"an array whose index is not known", FROM(C(LEAF), .r10 = 2),
           WORDS(C(INDEXED), 0, 0, 0, AT(5), C(ROOT)), CALLERS(C(INDEXED)), ENDS(NO_RULE, 1, 0)},
          {"a frame pointer saved where the frame pointer is", FROM(C(REALIGN_BP), .bp = AT(1)),
           WORDS(AT(3), AT(4), 0, C(JIT), 0, C(ROOT)), CALLERS(C(JIT), C(ROOT)),
           ENDS(UNPROVED, 1, 1)},
          {"and it is not known there", FROM(C(SPOILER), .bp = AT(3)),
           WORDS(C(BP_AT_BP), 0, C(JIT), AT(5), 0, 0, C(ROOT)), CALLERS(C(BP_AT_BP), C(JIT)),
           ENDS(NO_RULE, 2, 0)});
}

TEST(follows_rules_of_plt_slots)
{
    CHECK({"a slot of a PLT before its push", FROM(C(PLT)), WORDS(C(ROOT)), CALLERS(C(ROOT)),
           ENDS(COMPLETE, 1, 0)},
          {"a slot of a PLT after its push", FROM(C(PLT) + 6), WORDS(7, C(ROOT)), CALLERS(C(ROOT)),
           ENDS(COMPLETE, 1, 0)});
}

TEST(takes_what_was_popped_from_its_register)
{
    CHECK({"rbp, popped before a return", FROM(C(POPPED), .bp = AT(1)), WORDS(C(FRAME), 0, C(ROOT)),
           CALLERS(C(FRAME), C(ROOT)), ENDS(COMPLETE, 2, 0)},
          {"rbx, popped before a return", FROM(C(POPPED), .bx = AT(1)), WORDS(C(BY_BX), 0, C(ROOT)),
           CALLERS(C(BY_BX), C(ROOT)), ENDS(COMPLETE, 2, 0)},
          {"a register that was lost cannot be popped", FROM(C(SPOILER), .bp = AT(2)),
           WORDS(C(POPPED), C(FRAME), 0, C(ROOT)), CALLERS(C(POPPED), C(FRAME)),
           ENDS(NO_RULE, 2, 0)},
          {"saved registers that are out of reach and not needed", FROM(C(FAR)),
           WORDS(0, 0, C(LEAF), C(ROOT)), CALLERS(C(LEAF), C(ROOT)), ENDS(COMPLETE, 2, 0)});
}

TEST(looks_calls_up_before_their_return_address)
{
    CHECK({"a call that ends its function", FROM(C(LEAF)), WORDS(END_OF(ROOT)),
           CALLERS(END_OF(ROOT)), ENDS(COMPLETE, 1, 0)},
          {"the sampled instruction is where it is", FROM(START_OF(ROOT)), ENDS(COMPLETE, 0, 0)});
}

TEST(steps_over_signal_frames)
{
    CHECK({"the handler of a signal that came at a function's first instruction", FROM(C(LEAF)),
           WORDS(C(RESTORER), SIGNAL(1, BP) = AT(25), SIGNAL(1, BX) = 5, SIGNAL(1, SP) = AT(24),
                 SIGNAL(1, IP) = START_OF(LEAF), [24] = C(FRAME), [25] = 0, [26] = C(ROOT)),
           CALLERS(EXACT(C(RESTORER)), EXACT(START_OF(LEAF)), C(FRAME), C(ROOT)),
           ENDS(COMPLETE, 4, 0)});
}

TEST(marks_what_it_cannot_follow_above_a_signal_frame)
{
    CHECK({"a signal stack above the interrupted one, and nothing of that is copied", FROM(C(LEAF)),
           WORDS(C(RESTORER), SIGNAL(1, SP) = AT(-100), SIGNAL(1, IP) = C(LEAF), [23] = 0),
           CALLERS(EXACT(C(RESTORER)), EXACT(C(LEAF))), ENDS(SHORT_COPY, 2, 0)},
          {"the same, and all of the signal stack is", FROM(C(LEAF), .whole = true),
           WORDS(C(RESTORER), SIGNAL(1, SP) = AT(1000), SIGNAL(1, IP) = C(LEAF), [23] = 0),
           CALLERS(EXACT(C(RESTORER)), EXACT(C(LEAF))), ENDS(SHORT_COPY, 2, 0)},
          {"a signal frame that leads to the kernel's half", FROM(C(LEAF)),
           WORDS(C(RESTORER), SIGNAL(1, SP) = UINT64_MAX - 4095, SIGNAL(1, IP) = C(LEAF), [23] = 0),
           CALLERS(EXACT(C(RESTORER)), EXACT(C(LEAF))), ENDS(BAD_MEMORY, 2, 0)},
          {"a signal on the same stack, and what lies below the copy", FROM(C(LEAF)),
           WORDS(C(RESTORER), SIGNAL(1, BP) = AT(0), SIGNAL(1, SP) = AT(22),
                 SIGNAL(1, IP) = C(REALIGN), [23] = 0),
           CALLERS(EXACT(C(RESTORER)), EXACT(C(REALIGN))), ENDS(BAD_MEMORY, 2, 0)},
          {"a signal stack below the interrupted one", FROM(C(LEAF)),
           WORDS(C(RESTORER), SIGNAL(1, SP) = AT(1000), SIGNAL(1, IP) = C(LEAF), [23] = 0),
           CALLERS(EXACT(C(RESTORER)), EXACT(C(LEAF))), ENDS(SHORT_COPY, 2, 0)},
          {"other registers are not known above one", FROM(C(LEAF), .r10 = AT(24)),
           WORDS(C(RESTORER), SIGNAL(1, SP) = AT(24), SIGNAL(1, IP) = C(BY_R10), [24] = C(ROOT)),
           CALLERS(EXACT(C(RESTORER)), EXACT(C(BY_R10))), ENDS(NO_RULE, 2, 0)},
          {"signal frames in a circle", FROM(C(RESTORER), .max_depth = 3),
           WORDS(SIGNAL(0, SP) = AT(0), SIGNAL(0, IP) = C(RESTORER), [23] = 0),
           CALLERS(EXACT(C(RESTORER)), EXACT(C(RESTORER))), ENDS(DEPTH, 2, 0)});
}

TEST(follows_frame_pointers_where_no_rule_is)
{
    CHECK({"code without rules, called by code with rules", FROM(C(JIT), .bp = AT(1)),
           WORDS(0, AT(4), C(JIT), 0, AT(6), C(FRAME), 0, C(ROOT)),
           CALLERS(C(JIT), C(FRAME), C(ROOT)), ENDS(UNPROVED, 1, 2)},
          {"rules only", FROM(C(LEAF), .bp = AT(1), .mode = UNWIND_CFI), WORDS(C(JIT), 0, C(ROOT)),
           CALLERS(C(JIT)), ENDS(NO_RULE, 1, 0)},
          {"a frame pointer says nothing of rbx", FROM(C(JIT), .bp = AT(0), .bx = AT(2)),
           WORDS(0, C(BY_BX), 0, C(ROOT)), CALLERS(C(BY_BX)), ENDS(NO_RULE, 0, 1)},
          {"a lost frame pointer", FROM(C(SPOILER), .bp = AT(1)), WORDS(C(JIT), 0, C(ROOT)),
           CALLERS(C(JIT)), ENDS(NO_RULE, 1, 0)},
          {"a chain that ends with rbp 0", FROM(C(JIT), .bp = AT(0)), WORDS(0, C(JIT)),
           CALLERS(C(JIT)), ENDS(NO_RULE, 0, 1)},
          {"a chain that ends with return address 0", FROM(C(JIT), .bp = AT(0)), WORDS(AT(2), 0),
           ENDS(NO_RULE, 0, 0)});
}

TEST(stops_rather_than_guess)
{
    CHECK({"an ip that is nowhere", FROM(C(NOWHERE)), ENDS(BAD_MEMORY, 0, 0)},
          {"a return address that is nowhere", FROM(C(LEAF)), WORDS(C(NOWHERE)),
           ENDS(BAD_MEMORY, 0, 0)},
          {"a return address of 0", FROM(C(LEAF)), WORDS(0), ENDS(NO_RULE, 0, 0)},
          {"a CFA on a register that was lost, though rbp leads on", FROM(C(SPOILER), .bp = AT(1)),
           WORDS(C(FRAME), 0, C(ROOT)), CALLERS(C(FRAME)), ENDS(NO_RULE, 1, 0)},
          {"a CFA on a register that was lost two frames below", FROM(C(SPOILER), .bx = AT(2)),
           WORDS(C(LEAF), C(BY_BX), 0, C(ROOT)), CALLERS(C(LEAF), C(BY_BX)), ENDS(NO_RULE, 2, 0)},
          {"a CFA on a saved register that could not be read", FROM(C(FAR), .bp = AT(3)),
           WORDS(0, 0, C(FRAME), 0, C(ROOT)), CALLERS(C(FRAME)), ENDS(NO_RULE, 1, 0)});
}

TEST(stops_where_the_stack_does_not_rise)
{
    CHECK({"a CFA that does not rise", FROM(C(LIAR)), WORDS(C(LIAR)), ENDS(BAD_MEMORY, 0, 0)},
          {"frame pointers in a circle", FROM(C(JIT), .bp = AT(0)), WORDS(AT(0), C(JIT)),
           CALLERS(C(JIT)), ENDS(BAD_MEMORY, 0, 1)},
          {"rules in a circle", FROM(C(FRAME), .bp = AT(0)), WORDS(AT(0), C(FRAME)),
           CALLERS(C(FRAME)), ENDS(BAD_MEMORY, 1, 0)},
          {"a frame pointer below the stack", FROM(C(JIT), .bp = AT(-1)), WORDS(C(ROOT), C(ROOT)),
           ENDS(BAD_MEMORY, 0, 0)},
          {"a frame pointer that is none", FROM(C(JIT), .bp = AT(0) + 4),
           WORDS(0, C(ROOT) << 32, 0), ENDS(BAD_MEMORY, 0, 0)});
}

TEST(says_whether_the_copy_or_the_stack_ended)
{
    CHECK({"a cut copy", FROM(C(LEAF)), ENDS(SHORT_COPY, 0, 0)},
          {"a whole one", FROM(C(WIDE), .whole = true), WORDS(0), ENDS(BAD_MEMORY, 0, 0)},
          {"one that ends with a page", FROM(C(LEAF), .whole = true), ENDS(SHORT_COPY, 0, 0)},
          {"and the last word that can be of a frame there",
           FROM(C(JIT), .bp = AT(131070), .whole = true), ENDS(SHORT_COPY, 0, 0)},
          {"and the first that cannot", FROM(C(JIT), .bp = AT(131072), .whole = true),
           ENDS(BAD_MEMORY, 0, 0)},
          {"half of the word", FROM(C(WIDE)), WORDS(0, 0), ENDS(SHORT_COPY, 0, 0)},
          {"a frame pointer above a cut copy", FROM(C(JIT), .bp = AT(1)), WORDS(0, 0),
           ENDS(SHORT_COPY, 0, 0)},
          {"and above a whole one", FROM(C(JIT), .bp = AT(1), .whole = true), WORDS(0, 0),
           ENDS(BAD_MEMORY, 0, 0)},
          {"a memory CFA below a cut copy", FROM(C(REALIGN), .bp = AT(0)), WORDS(AT(1), C(ROOT)),
           ENDS(BAD_MEMORY, 0, 0)});
}

TEST(survives_addresses_at_either_end)
{
    CHECK({"a frame pointer where the kernel is", FROM(C(JIT), .bp = UINT64_MAX - 255),
           ENDS(BAD_MEMORY, 0, 0)},
          {"a CFA past the end of all addresses", FROM(C(FRAME), .bp = UINT64_MAX - 7),
           ENDS(BAD_MEMORY, 0, 0)},
          {"frame pointers past it", FROM(C(JIT), .bp = UINT64_MAX - 7), ENDS(BAD_MEMORY, 0, 0)},
          {"a frame that ends where they do",
           FROM(C(JIT), .bp = UINT64_MAX - 15, .sp = UINT64_MAX - 15), WORDS(0, C(ROOT)),
           ENDS(BAD_MEMORY, 0, 0)},
          {"a stack at the end of all addresses", FROM(C(LEAF), .sp = UINT64_MAX - 15),
           WORDS(C(LEAF), C(ROOT)), CALLERS(C(LEAF)), ENDS(BAD_MEMORY, 1, 0)},
          {"a stack pointer of 0 and a frame pointer before it", FROM(C(REALIGN), .bp = 4, .sp = 8),
           ENDS(BAD_MEMORY, 0, 0)});
}

TEST(keeps_to_the_depth)
{
    CHECK({"more would follow", FROM(C(LEAF), .max_depth = 2), WORDS(C(LEAF), C(LEAF), C(ROOT)),
           CALLERS(C(LEAF)), ENDS(DEPTH, 1, 0)},
          {"the root just fits", FROM(C(LEAF), .max_depth = 2), WORDS(C(ROOT)), CALLERS(C(ROOT)),
           ENDS(COMPLETE, 1, 0)},
          {"what would follow is no code", FROM(C(LEAF), .max_depth = 1), WORDS(C(NOWHERE)),
           ENDS(BAD_MEMORY, 0, 0)},
          {"one frame", FROM(C(JIT), .bp = AT(0), .max_depth = 1), WORDS(0, C(ROOT)),
           ENDS(DEPTH, 0, 0)});
}
