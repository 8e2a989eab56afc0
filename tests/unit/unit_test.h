/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A unit test is a function whose name is a claim, and is defined by one of these macros, which
 * also registers it:
 *
 *     TEST(refuses_what_is_empty)
 *     {
 *         assert_int_equal(parse(""), -EINVAL);
 *     }
 *
 * unit_test.c has main(), which runs all tests of a program in the order of their definitions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
/* Rows of a table, and how many: two arguments of a function. */
#define ROWS_OF(type, ...) (const type[]){__VA_ARGS__}, COUNT_OF(((const type[]){__VA_ARGS__}))

static inline void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' is not in '%s'", part, text);
    }
}

/* What a statement prints to `file`, which is there for it, is the expected text. */
#define EXPECT_PRINTED(expected, ...)                                                              \
    do {                                                                                           \
        char *printed = NULL;                                                                      \
        size_t printed_bytes = 0;                                                                  \
        FILE *file = open_memstream(&printed, &printed_bytes);                                     \
        assert_non_null(file);                                                                     \
        __VA_ARGS__;                                                                               \
        assert_int_equal(fclose(file), 0);                                                         \
        assert_string_equal(printed, expected);                                                    \
        free(printed);                                                                             \
    } while (0)

/* A number below `below`, the next that is drawn from `*seed`: the same ones in every run. */
static inline uint64_t draw_below(uint64_t *seed, uint64_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % below;
}

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* `set_up` and `tear_down` run before and after the test, and share its `void **state`. */
#define TEST_WITH(name, set_up, tear_down)                                                         \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        unit_test_add(&(struct CMUnitTest){#name, name, set_up, tear_down, NULL});                 \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)

/* `set_up` makes what the test has as `variable`, a declaration such as `struct world *world`. */
#define TEST_OF(variable, name, set_up, tear_down)                                                 \
    static void name##_of(variable);                                                               \
    TEST_WITH(name, set_up, tear_down)                                                             \
    {                                                                                              \
        name##_of(*state);                                                                         \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) variable)

/* The test has what `make` gives as `variable`, and `end` is called with it after the test. */
#define TEST_MADE(variable, name, make, end)                                                       \
    static void name##_of(variable);                                                               \
    TEST(name)                                                                                     \
    {                                                                                              \
        void *name##_made = make;                                                                  \
        assert_non_null(name##_made);                                                              \
        name##_of(name##_made);                                                                    \
        (void)end(name##_made);                                                                    \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) variable)

/* `test` is copied. */
void unit_test_add(const struct CMUnitTest *test);

/* What main() does. Returns how many tests have failed. A program with a main() of its own may call
 * this more than once. */
int unit_test_run(void);

/* For a program whose tests share what these make and remove: before the first of them, and after
 * the last. */
#define TEST_GROUP(set_up, tear_down)                                                              \
    __attribute__((constructor)) static void register_group(void)                                  \
    {                                                                                              \
        unit_test_set_group(set_up, tear_down);                                                    \
    }
void unit_test_set_group(CMFixtureFunction set_up, CMFixtureFunction tear_down);
