/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a stack ends for now, or for good, though there is more in the copy: at code whose table is
 * not there, and in a thread that has only begun.
 */
#include "unwind.h"

#include "unwind_story.h"

TEST(asks_again_where_a_table_is_not_there)
{
    CHECK({"of the leaf", FROM(C(LOADING), .pending = true)},
          {"of a caller", FROM(C(LEAF), .pending = true), WORDS(C(LOADING))},
          {"of a frame of the kernel's chain", FROM(C(FRAME), .bp = AT(0), .pending = true),
           CHAIN(C(FRAME), C(LOADING), C(ROOT))});
}

TEST(ends_where_a_table_came_too_late)
{
    /* Frame pointers would lead to the root here, and are not asked. */
    CHECK({"of the leaf", FROM(C(LATE), .bp = AT(0)), WORDS(0, C(ROOT)), ENDS(NO_RULE, 0, 0)},
          {"of a caller, with a chain", FROM(C(LEAF), .bp = AT(1)), WORDS(C(LATE), 0, C(ROOT)),
           CHAIN(C(LEAF), C(ROOT)), CALLERS(C(LATE)), ENDS(NO_RULE, 1, 0)});
}

TEST(ends_where_nothing_tells_the_caller)
{
    /* Frame pointers would lead to the root here, too. */
    CHECK({"of the leaf", FROM(C(LEAVING), .bp = AT(0)), WORDS(0, C(ROOT)),
           CHAIN(C(LEAVING), C(ROOT)), ENDS(NO_RULE, 0, 0)},
          {"of a caller", FROM(C(LEAF), .bp = AT(1)), WORDS(C(LEAVING), 0, C(ROOT)),
           CALLERS(C(LEAVING)), ENDS(NO_RULE, 1, 0)});
}

TEST(knows_a_new_thread_by_its_result)
{
    CHECK({"the child", FROM(C(FORK)), ENDS(COMPLETE, 0, 0)},
          {"the parent", FROM(C(FORK), .ax = 4711), WORDS(C(ROOT)), CALLERS(C(ROOT)),
           ENDS(COMPLETE, 1, 0)},
          {"a caller, in which nothing is known of rax", FROM(C(LEAF)), WORDS(C(FORK), C(ROOT)),
           CALLERS(C(FORK), C(ROOT)), ENDS(COMPLETE, 2, 0)});
}

TEST(sees_a_signal_that_is_on_its_way)
{
    CHECK({"the stack pointer is the handler's already", FROM(C(LEAF), .in_kernel = true),
           WORDS(C(RESTORER), SIGNAL(1, BP) = 0, SIGNAL(1, SP) = AT(24),
                 SIGNAL(1, IP) = C(LEAF), [24] = C(ROOT)),
           CALLERS(C(ROOT)), ENDS(COMPLETE, 1, 0)},
          {"what it interrupts has a frame", FROM(C(WIDE), .in_kernel = true),
           WORDS(C(RESTORER), 0, C(LEAF), SIGNAL(1, SP) = AT(24),
                 SIGNAL(1, IP) = C(WIDE), [26] = C(ROOT)),
           CALLERS(C(ROOT)), ENDS(COMPLETE, 1, 0)},
          {"it interrupts the making of a thread, and rax is the handler's",
           FROM(C(FORK), .in_kernel = true),
           WORDS(C(RESTORER), SIGNAL(1, SP) = AT(24), SIGNAL(1, IP) = C(FORK), [24] = C(LEAF),
                 C(ROOT)),
           CALLERS(C(LEAF), C(ROOT)), ENDS(COMPLETE, 2, 0)},
          {"the table of the code behind the handler is not there",
           FROM(C(WIDE), .in_kernel = true, .pending = true), WORDS(C(LOADING), 0, C(ROOT))},
          {"the handler runs what it interrupted, at the same place", FROM(C(LEAF)),
           WORDS(C(RESTORER), SIGNAL(1, SP) = AT(24), SIGNAL(1, IP) = C(LEAF), [24] = C(ROOT)),
           CALLERS(EXACT(C(RESTORER)), EXACT(C(LEAF)), C(ROOT)), ENDS(COMPLETE, 3, 0)},
          {"in a circle", FROM(C(LEAF), .max_depth = 4, .in_kernel = true),
           WORDS(C(RESTORER), SIGNAL(1, SP) = AT(0), SIGNAL(1, IP) = C(LEAF), [24] = 0),
           CALLERS(EXACT(C(RESTORER)), EXACT(C(LEAF)), EXACT(C(RESTORER))), ENDS(DEPTH, 3, 0)});
}

TEST(sees_a_return_from_a_signal_that_is_under_way)
{
    /* Above an interrupted stack pointer there is no signal frame, but callers. */
    CHECK({"nothing is given back yet", FROM(C(RESTORER), .in_kernel = true),
           WORDS(7, 0, SIGNAL(0, CS) = 0x002b000000000033, SIGNAL(0, SP) = AT(24),
                 SIGNAL(0, IP) = C(LEAF), [24] = C(ROOT)),
           CALLERS(EXACT(C(LEAF)), C(ROOT)), ENDS(COMPLETE, 2, 0)},
          {"the stack pointer is given back", FROM(C(RESTORER), .in_kernel = true),
           WORDS(7, 0, SIGNAL(0, SP) = AT(24), SIGNAL(0, IP) = C(LEAF), [24] = C(ROOT)),
           ENDS(BAD_MEMORY, 0, 0)},
          {"no kernel makes such flags", FROM(C(RESTORER), .in_kernel = true),
           WORDS(8, 0, SIGNAL(0, CS) = 0x33, SIGNAL(0, SP) = AT(24),
                 SIGNAL(0, IP) = C(LEAF), [24] = C(ROOT)),
           ENDS(BAD_MEMORY, 0, 0)},
          {"nor another context behind it", FROM(C(RESTORER), .in_kernel = true),
           WORDS(7, AT(30), SIGNAL(0, CS) = 0x33, SIGNAL(0, SP) = AT(24),
                 SIGNAL(0, IP) = C(LEAF), [24] = C(ROOT)),
           ENDS(BAD_MEMORY, 0, 0)},
          {"the kernel is not at work", FROM(C(RESTORER)),
           WORDS(8, 0, SIGNAL(0, SP) = AT(24), SIGNAL(0, IP) = C(LEAF), [24] = C(ROOT)),
           CALLERS(EXACT(C(LEAF)), C(ROOT)), ENDS(COMPLETE, 2, 0)});
}
