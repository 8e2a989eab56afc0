/* SPDX-License-Identifier: Apache-2.0 */

/* See unit_test.h. */
#include "unit_test.h"

#define TESTS_MAX 100

static struct CMUnitTest tests[TESTS_MAX];
static size_t test_count;
static CMFixtureFunction set_up_group, tear_down_group;

void unit_test_add(const struct CMUnitTest *test)
{
    if (test_count == TESTS_MAX) {
        abort();
    }
    tests[test_count++] = *test;
}

void unit_test_set_group(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    set_up_group = set_up;
    tear_down_group = tear_down;
}

int unit_test_run(void)
{
    if (test_count == 0) {
        abort(); /* what tests nothing is no test */
    }
    return _cmocka_run_group_tests("tests", tests, test_count, set_up_group, tear_down_group);
}

/* Weak: a program may have its own. */
__attribute__((weak)) int main(void)
{
    return unit_test_run();
}
