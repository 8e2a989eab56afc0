/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How options go over a config file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void puts_options_over_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *base;
        struct record_request request;
        pid_t child;
        const char *expected;
    } cases[] = {
        {NULL, {0}, 0, "{}"},
        {NULL, {.frequency_hz = 4000}, 0, "{\"frequency_hz\":4000}"},
        {NULL, {.kernel_stacks = true}, 0, "{\"kernel_stacks\":true}"},
        {NULL, {0}, 42, "{\"targets\":{\"pids\":[42]}}"},
        {NULL, {.whole_machine = true}, 42, "{}"},
        {"{\"max_stack_depth\":5}",
         {.frequency_hz = 7},
         0,
         "{\"max_stack_depth\":5,\"frequency_hz\":7}"},
        {"{\"sample_period_ns\":10000}", {.frequency_hz = 7}, 0, "{\"frequency_hz\":7}"},
        {"{\"sample_period_ns\":10000}", {0}, 0, "{\"sample_period_ns\":10000}"},
        {"{\"kernel_stacks\":false}", {.kernel_stacks = true}, 0, "{\"kernel_stacks\":true}"},
        {"{\"targets\":{\"pids\":[1]}}", {0}, 0, "{\"targets\":{\"pids\":[1]}}"},
        {"{\"targets\":{\"pids\":[1]}}", {0}, 42, "{\"targets\":{\"pids\":[42]}}"},
        {"{\"targets\":{\"pids\":[1]}}", {.whole_machine = true}, 0, "{}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = NULL;
        assert_int_equal(
            record_config_build(cases[i].base, &cases[i].request, cases[i].child, &text, NULL), 0);
        assert_string_equal(text, cases[i].expected);
        free(text);
    }
}

static void refuses_a_file_that_is_no_object(void **state)
{
    (void)state;
    static const char *const cases[] = {"", "[]", "1", "{", "{} {}"};
    const struct record_request request = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = NULL;
        struct fault fault = {0};
        assert_int_equal(record_config_build(cases[i], &request, 0, &text, &fault), -EINVAL);
        assert_null(text);
        assert_string_not_equal(fault.text, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_options_over_the_file),
        cmocka_unit_test(refuses_a_file_that_is_no_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
