/* SPDX-License-Identifier: Apache-2.0 */

/* Lengths of time as people write them. */
#include "duration.h"
#include "unit_test.h"

#include <string.h>

#define S UINT64_C(1000000000)

TEST(reads_numbers_with_and_without_units)
{
    static const struct {
        const char *text;
        uint64_t expected_ns;
    } cases[] = {
        {"0", 0},          {"5", 5 * S},       {"5s", 5 * S},      {"1.5", 3 * S / 2},
        {".25s", S / 4},   {"250ms", S / 4},   {"7us", 7000},      {"2m", 120 * S},
        {"2.5m", 150 * S}, {"1h", 3600 * S},   {"0.000000001", 1}, {"1.000000us", 1000},
        {"1.009us", 1009}, {"3600", 3600 * S},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t time_ns = 1;
        assert_true(duration_parse(cases[i].text, 3600 * S, &time_ns));
        assert_int_equal(time_ns, cases[i].expected_ns);
    }
}

TEST(refuses_what_is_no_length_of_time)
{
    static const char *const texts[] = {
        "",         ".",           "s",   ".s",    "1.",  "1.s",          "1,5",
        "-1",       "+1",          " 1",  "1 s",   "1d",  "1S",           "0x10",
        "1e3",      "inf",         "nan", "1.5.5", "1s1", "0.1234567890", "99999999999999999999",
        "1.0009us", "0.0000001ms",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        uint64_t time_ns = 7;
        assert_false(duration_parse(texts[i], UINT64_MAX, &time_ns));
        assert_int_equal(time_ns, 7);
    }
}

TEST(refuses_what_is_above_the_maximum)
{
    static const char *const texts[] = {"10.000000001", "11", "11s", "10001ms", "1m", "1h"};
    uint64_t time_ns = 7;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_false(duration_parse(texts[i], 10 * S, &time_ns));
    }
    assert_int_equal(time_ns, 7);
    assert_true(duration_parse("10", 10 * S, &time_ns));
    assert_int_equal(time_ns, 10 * S);
}

TEST(reads_a_fraction_up_to_what_follows)
{
    uint64_t fraction = 0;
    assert_string_equal(duration_fraction("25x", S, &fraction), "x");
    assert_int_equal(fraction, S / 4);
    assert_null(duration_fraction("x", S, &fraction));
    assert_null(duration_fraction("1234567890", S, &fraction));
    assert_int_equal(fraction, S / 4);
}
