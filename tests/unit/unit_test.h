/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The main() of a unit test, and cmocka with what it needs before it. TEST(claim) defines a test
 * that registers itself, and they run in the order of the file. TEST_WITH(claim, set_up, tear_down)
 * has one called before it, the other after it; either may be NULL. Only test_NAME.c and headers
 * that no other kind of file includes may include this.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static struct CMUnitTest unit_tests[64];
static size_t unit_test_count;

static inline void unit_test_add(const struct CMUnitTest *test)
{
    if (unit_test_count == COUNT_OF(unit_tests)) {
        abort();
    }
    unit_tests[unit_test_count++] = *test;
}

#define TEST_WITH(claim, set_up, tear_down)                                                        \
    static void claim(void **state);                                                               \
    __attribute__((constructor)) static void add_##claim(void)                                     \
    {                                                                                              \
        unit_test_add(                                                                             \
            &(struct CMUnitTest)cmocka_unit_test_setup_teardown(claim, set_up, tear_down));        \
    }                                                                                              \
    static void claim(__attribute__((unused)) void **state)

#define TEST(claim) TEST_WITH(claim, NULL, NULL)

static inline int unit_test_run(void)
{
    return _cmocka_run_group_tests("tests", unit_tests, unit_test_count, NULL, NULL);
}

/* A program that is more than its tests has a main() of its own. */
#ifndef UNIT_TEST_HAS_MAIN
int main(void)
{
    return unit_test_run();
}
#endif
