/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which pids a filter keeps, as forks are told to it.
 */
#include "filter.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct filter *new_filter(int32_t target_pid, int32_t excluded_pid, bool kernel_threads)
{
    struct filter *filter = filter_new(&(struct filter_config){
        .target_pids = &target_pid,
        .target_pid_count = target_pid == 0 ? 0 : 1,
        .excluded_pids = &excluded_pid,
        .excluded_pid_count = excluded_pid == 0 ? 0 : 1,
        .kernel_threads = kernel_threads,
    });
    assert_non_null(filter);
    return filter;
}

static void keeps_everything_without_targets(void **state)
{
    (void)state;
    struct filter *filter = new_filter(0, 30, true);
    static const int32_t pids[] = {1, 29, 31, 30 + 64, FILTER_PIDS_MAX - 1, FILTER_PIDS_MAX, 0, -1};
    for (size_t i = 0; i < sizeof pids / sizeof *pids; i++) {
        assert_true(filter_matches(filter, pids[i], false));
    }
    assert_false(filter_matches(filter, 30, false));
    assert_null(filter_free(filter));
}

static void follows_the_children_of_a_target(void **state)
{
    (void)state;
    struct filter *filter = new_filter(10, 0, true);
    assert_int_equal(filter_fork(filter, 11, 10), 0);
    assert_int_equal(filter_fork(filter, 12, 11), 0);
    assert_int_equal(filter_fork(filter, 20, 9), 0);
    static const struct {
        int32_t pid;
        bool matches;
    } rows[] = {{10, true},  {11, true},  {12, true}, {9, false},
                {20, false}, {13, false}, {0, false}, {-1, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(filter_matches(filter, rows[i].pid, false), rows[i].matches);
    }
    assert_null(filter_free(filter));
}

static void forgets_what_a_reused_pid_was(void **state)
{
    (void)state;
    struct filter *filter = new_filter(10, 30, true);
    assert_int_equal(filter_fork(filter, 11, 10), 0);
    assert_int_equal(filter_fork(filter, 11, 9), 0);
    assert_false(filter_matches(filter, 11, false));
    assert_false(filter_matches(filter, 30, false));
    assert_int_equal(filter_fork(filter, 30, 10), 0);
    assert_true(filter_matches(filter, 30, false));
    assert_null(filter_free(filter));
}

static void takes_a_new_thread_for_no_process(void **state)
{
    (void)state;
    struct filter *filter = new_filter(10, 30, true);
    assert_int_equal(filter_fork(filter, 10, 10), 0);
    assert_int_equal(filter_fork(filter, 30, 30), 0);
    assert_true(filter_matches(filter, 10, false));
    assert_null(filter_free(filter));
    filter = new_filter(0, 30, true);
    assert_int_equal(filter_fork(filter, 30, 30), 0);
    assert_int_equal(filter_fork(filter, 31, 30), 0);
    assert_false(filter_matches(filter, 30, false));
    assert_true(filter_matches(filter, 31, false));
    assert_null(filter_free(filter));
}

static void leaves_out_kernel_threads_when_told(void **state)
{
    (void)state;
    struct filter *filter = new_filter(0, 0, false);
    assert_false(filter_matches(filter, 5, true));
    assert_true(filter_matches(filter, 5, false));
    assert_null(filter_free(filter));
    filter = new_filter(0, 0, true);
    assert_true(filter_matches(filter, 5, true));
    assert_null(filter_free(filter));
}

static void refuses_pids_that_no_kernel_gives(void **state)
{
    (void)state;
    struct filter *filter = new_filter(10, 0, true);
    assert_int_equal(filter_fork(filter, FILTER_PIDS_MAX, 10), -ENOSPC);
    assert_int_equal(filter_fork(filter, FILTER_PIDS_MAX - 1, 10), 0);
    assert_true(filter_matches(filter, FILTER_PIDS_MAX - 1, false));
    assert_false(filter_matches(filter, FILTER_PIDS_MAX, false));
    assert_int_equal(filter_fork(filter, -5, 10), 0);
    assert_false(filter_matches(filter, -5, false));
    assert_null(filter_free(filter));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_everything_without_targets),
        cmocka_unit_test(follows_the_children_of_a_target),
        cmocka_unit_test(forgets_what_a_reused_pid_was),
        cmocka_unit_test(takes_a_new_thread_for_no_process),
        cmocka_unit_test(leaves_out_kernel_threads_when_told),
        cmocka_unit_test(refuses_pids_that_no_kernel_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
