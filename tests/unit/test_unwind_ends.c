/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a stack ends for now, or for good, though there is more in the copy: at code whose table is
 * not there, and in a thread that has only begun.
 */
#include "unwind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unwind_story.h"

#define CHECK(stories) check_stories(stories, sizeof(stories) / sizeof *(stories))

static void asks_again_where_a_table_is_not_there(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "of the leaf", .ip = CODE(CODE_LOADING), .pending = true},
        {.name = "of a caller",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_LOADING)},
         .word_count = 1,
         .pending = true},
        {.name = "of a frame of the kernel's chain",
         .ip = CODE(CODE_FRAME),
         .bp = AT(0),
         .chain = {CODE(CODE_FRAME), CODE(CODE_LOADING), CODE(CODE_ROOT)},
         .chain_count = 3,
         .pending = true},
    };
    CHECK(stories);
}

static void ends_where_a_table_came_too_late(void **state)
{
    (void)state;
    /* Frame pointers would lead to the root here, and are not asked. */
    static const struct story stories[] = {
        {.name = "of the leaf",
         .ip = CODE(CODE_LATE),
         .bp = AT(0),
         .words = {0, CODE(CODE_ROOT)},
         .word_count = 2,
         .quality = STACK_NO_RULE},
        {.name = "of a caller, with a chain",
         .ip = CODE(CODE_LEAF),
         .bp = AT(1),
         .words = {CODE(CODE_LATE), 0, CODE(CODE_ROOT)},
         .word_count = 3,
         .chain = {CODE(CODE_LEAF), CODE(CODE_ROOT)},
         .chain_count = 2,
         .callers = {CODE(CODE_LATE)},
         .quality = STACK_NO_RULE,
         .cfi_count = 1},
    };
    CHECK(stories);
}

static void ends_where_nothing_tells_the_caller(void **state)
{
    (void)state;
    /* Frame pointers would lead to the root here, too. */
    static const struct story stories[] = {
        {.name = "of the leaf",
         .ip = CODE(CODE_LEAVING),
         .bp = AT(0),
         .words = {0, CODE(CODE_ROOT)},
         .word_count = 2,
         .chain = {CODE(CODE_LEAVING), CODE(CODE_ROOT)},
         .chain_count = 2,
         .quality = STACK_NO_RULE},
        {.name = "of a caller",
         .ip = CODE(CODE_LEAF),
         .bp = AT(1),
         .words = {CODE(CODE_LEAVING), 0, CODE(CODE_ROOT)},
         .word_count = 3,
         .callers = {CODE(CODE_LEAVING)},
         .quality = STACK_NO_RULE,
         .cfi_count = 1},
    };
    CHECK(stories);
}

static void knows_a_new_thread_by_its_result(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "the child", .ip = CODE(CODE_FORK), .quality = STACK_COMPLETE},
        {.name = "the parent",
         .ip = CODE(CODE_FORK),
         .ax = 4711,
         .words = {CODE(CODE_ROOT)},
         .word_count = 1,
         .callers = {CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1},
        {.name = "a caller, in which nothing is known of rax",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_FORK), CODE(CODE_ROOT)},
         .word_count = 2,
         .callers = {CODE(CODE_FORK), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 2},
    };
    CHECK(stories);
}

static void sees_a_signal_that_is_on_its_way(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {.name = "the stack pointer is the handler's already",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_RESTORER), [1 + CODE_SIGNAL_BP / 8] = 0,
                   [1 + CODE_SIGNAL_SP / 8] = AT(24),
                   [1 + CODE_SIGNAL_IP / 8] = CODE(CODE_LEAF), [24] = CODE(CODE_ROOT)},
         .word_count = 25,
         .in_kernel = true,
         .callers = {CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1},
        {.name = "what it interrupts has a frame",
         .ip = CODE(CODE_WIDE),
         .words = {CODE(CODE_RESTORER), 0, CODE(CODE_LEAF), [1 + CODE_SIGNAL_SP / 8] = AT(24),
                   [1 + CODE_SIGNAL_IP / 8] = CODE(CODE_WIDE), [26] = CODE(CODE_ROOT)},
         .word_count = 27,
         .in_kernel = true,
         .callers = {CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 1},
        {.name = "it interrupts the making of a thread, and rax is the handler's",
         .ip = CODE(CODE_FORK),
         .words = {CODE(CODE_RESTORER), [1 + CODE_SIGNAL_SP / 8] = AT(24),
                   [1 + CODE_SIGNAL_IP / 8] = CODE(CODE_FORK), [24] = CODE(CODE_LEAF),
                   CODE(CODE_ROOT)},
         .word_count = 26,
         .in_kernel = true,
         .callers = {CODE(CODE_LEAF), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 2},
        {.name = "the table of the code behind the handler is not there",
         .ip = CODE(CODE_WIDE),
         .words = {CODE(CODE_LOADING), 0, CODE(CODE_ROOT)},
         .word_count = 3,
         .in_kernel = true,
         .pending = true},
        {.name = "the handler runs what it interrupted, at the same place",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_RESTORER), [1 + CODE_SIGNAL_SP / 8] = AT(24),
                   [1 + CODE_SIGNAL_IP / 8] = CODE(CODE_LEAF), [24] = CODE(CODE_ROOT)},
         .word_count = 25,
         .callers = {EXACT(CODE(CODE_RESTORER)), EXACT(CODE(CODE_LEAF)), CODE(CODE_ROOT)},
         .quality = STACK_COMPLETE,
         .cfi_count = 3},
        {.name = "in a circle",
         .ip = CODE(CODE_LEAF),
         .words = {CODE(CODE_RESTORER), [1 + CODE_SIGNAL_SP / 8] = AT(0),
                   [1 + CODE_SIGNAL_IP / 8] = CODE(CODE_LEAF)},
         .word_count = 25,
         .max_depth = 4,
         .in_kernel = true,
         .callers = {EXACT(CODE(CODE_RESTORER)), EXACT(CODE(CODE_LEAF)),
                     EXACT(CODE(CODE_RESTORER))},
         .quality = STACK_DEPTH,
         .cfi_count = 3},
    };
    CHECK(stories);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_again_where_a_table_is_not_there),
        cmocka_unit_test(ends_where_a_table_came_too_late),
        cmocka_unit_test(ends_where_nothing_tells_the_caller),
        cmocka_unit_test(knows_a_new_thread_by_its_result),
        cmocka_unit_test(sees_a_signal_that_is_on_its_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
