/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling_period.h"
#include "unit_test.h"

#define NS_PER_S    UINT64_C(1000000000)
#define RATE_MAX_HZ 100000

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* The longest gap by its definition: all phases, sorted. */
static uint64_t gap_by_sorting(uint64_t period_ns, uint64_t tick_ns, uint64_t seconds)
{
    uint64_t count = seconds * NS_PER_S / period_ns;
    count = count == 0 ? 1 : count;
    uint64_t *phases = calloc(count, sizeof *phases);
    assert_non_null(phases);
    for (uint64_t i = 0; i < count; i++) {
        phases[i] = i * period_ns % tick_ns;
    }
    qsort(phases, count, sizeof *phases, compare);
    uint64_t longest_ns = phases[0] + tick_ns - phases[count - 1];
    for (uint64_t i = 1; i < count; i++) {
        uint64_t gap_ns = phases[i] - phases[i - 1];
        longest_ns = gap_ns > longest_ns ? gap_ns : longest_ns;
    }
    free(phases);
    return longest_ns;
}

TEST(finds_the_gap_that_sorting_finds)
{
    static const uint64_t periods_ns[] = {
        10000,   10007,   33333,   249931,   250000,   250001,   250213,   333333,   999999,
        1000000, 1000001, 1001001, 1001111,  3333333,  4000000,  9990010,  10000000, 10000001,
        9999999, 7777777, 6180339, 20408163, 20424630, 61803398, 99999999, 500000000};
    for (size_t i = 0; i < COUNT_OF(periods_ns); i++) {
        for (size_t tick = 0; tick < SAMPLING_TICK_COUNT; tick++) {
            uint64_t gap_ns = sampling_gap_ns(periods_ns[i], sampling_tick_ns[tick], 1);
            if (gap_ns != gap_by_sorting(periods_ns[i], sampling_tick_ns[tick], 1)) {
                fail_msg("%llu ns: %llu ns", (unsigned long long)periods_ns[i],
                         (unsigned long long)gap_ns);
            }
        }
    }
    /* Small circles have every kind of neighbourhood. */
    for (uint64_t circle = 1; circle < 40; circle++) {
        for (uint64_t step = 20000000; step < 20000080; step++) {
            assert_int_equal(sampling_gap_ns(step, circle, 1), gap_by_sorting(step, circle, 1));
        }
    }
}

static bool sweeps_all(uint64_t period_ns)
{
    return sampling_sweeps(period_ns, sampling_tick_ns[0], 1) &&
           sampling_sweeps(period_ns, sampling_tick_ns[1], 1) &&
           sampling_sweeps(period_ns, sampling_tick_ns[2], 1);
}

/* By trying every period within 0.1 %. */
static bool any_sweeps(uint32_t frequency_hz)
{
    uint64_t exact_ns = sampling_period_exact_ns(frequency_hz);
    bool found = false;
    for (uint64_t p = exact_ns - exact_ns / 1000; p <= exact_ns + exact_ns / 1000 && !found; p++) {
        found = p >= SAMPLING_PERIOD_MIN_NS && sweeps_all(p);
    }
    return found;
}

static void check_tolerance(uint32_t frequency_hz, uint64_t period_ns)
{
    double off = (double)NS_PER_S / (double)period_ns / frequency_hz - 1;
    if (off < -0.001 || off > 0.001 || period_ns < SAMPLING_PERIOD_MIN_NS ||
        period_ns > SAMPLING_PERIOD_MAX_NS) {
        fail_msg("%u Hz: %llu ns is %.4f %% off", frequency_hz, (unsigned long long)period_ns,
                 100 * off);
    }
}

/* No gap of ten seconds is longer than 3 T/N, or than a thousandth of the tick. */
static void check_ten_seconds(uint32_t frequency_hz, uint64_t period_ns)
{
    for (size_t i = 0; i < SAMPLING_TICK_COUNT; i++) {
        uint64_t tick_ns = sampling_tick_ns[i];
        uint64_t gap_ns = sampling_gap_ns(period_ns, tick_ns, SAMPLING_SECONDS_MAX);
        if (!sampling_sweeps(period_ns, tick_ns, SAMPLING_SECONDS_MAX) && gap_ns > tick_ns / 1000) {
            fail_msg("%u Hz, %llu ns: ten seconds leave %llu ns of %llu out", frequency_hz,
                     (unsigned long long)period_ns, (unsigned long long)gap_ns,
                     (unsigned long long)tick_ns);
        }
    }
}

/* Every rate that is usual, and every seventh above. */
TEST(every_rate_sweeps_every_tick_in_a_second_if_any_period_does)
{
    size_t slow_count = 0;
    for (uint32_t hz = 1; hz <= RATE_MAX_HZ; hz += hz < 20000 ? 1 : 7) {
        uint64_t period_ns = sampling_period_ns(hz);
        check_tolerance(hz, period_ns);
        check_ten_seconds(hz, period_ns);
        if (!sweeps_all(period_ns)) {
            slow_count++;
            if (any_sweeps(hz)) {
                fail_msg("%u Hz: %llu ns does not sweep, and another period does", hz,
                         (unsigned long long)period_ns);
            }
        }
    }
    assert_int_equal(slow_count, 35);
}

TEST(gives_the_same_period_every_time)
{
    static const struct {
        uint32_t frequency_hz;
        uint64_t period_ns;
    } cases[] = {
        {1, 999221222},  {49, 20424564}, {97, 10318617}, {99, 10109469},
        {100, 9990012},  {250, 3996005}, {500, 2002001}, {999, 1002001},
        {1000, 1001000}, {2000, 500499}, {3989, 250939}, {4000, 249753},
        {10000, 100098}, {20000, 50045}, {50000, 20018}, {100000, 10009},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(sampling_period_ns(cases[i].frequency_hz), cases[i].period_ns);
        assert_int_equal(sampling_period_ns(cases[i].frequency_hz), cases[i].period_ns);
    }
}

/* 2.6 % of a tick. */
static uint64_t busy_ns_of(uint64_t tick_ns)
{
    return tick_ns / 1000 * 26;
}

/* How many of the samples find a handler that is busy at the start of each tick. */
static double hits_of(uint64_t period_ns, uint64_t tick_ns, uint64_t first_ns, uint64_t count)
{
    uint64_t hits = 0;
    for (uint64_t i = 0; i < count; i++) {
        hits += (first_ns + i * period_ns) % tick_ns < busy_ns_of(tick_ns);
    }
    return (double)hits;
}

/*
 * Whether the handler has its share from each of 40 first phases, after 1 to 10 s: within five
 * standard deviations of as many independent samples. Five, since nothing here is random: a period
 * either holds the bound or does not.
 */
static bool finds_share(uint64_t period_ns, uint64_t tick_ns)
{
    static const uint64_t tenths[] = {10, 13, 15, 20, 33, 100};
    bool found = true;
    for (size_t i = 0; i < COUNT_OF(tenths); i++) {
        uint64_t count = tenths[i] * (NS_PER_S / 10) / period_ns;
        double wanted = (double)count * 0.026;
        for (uint64_t step = 0; step < 40 && found; step++) {
            double off = hits_of(period_ns, tick_ns, step * tick_ns / 40, count) - wanted;
            found = off * off <= 25 * wanted * (1 - 0.026);
        }
    }
    return found;
}

TEST(a_handler_has_its_share_in_step_with_any_tick)
{
    static const uint32_t rates_hz[] = {49, 97, 999, 1000, 2000, 3989, 4000, 8000, 10000};
    for (size_t i = 0; i < COUNT_OF(rates_hz); i++) {
        for (size_t j = 0; j < SAMPLING_TICK_COUNT; j++) {
            if (!finds_share(sampling_period_ns(rates_hz[i]), sampling_tick_ns[j])) {
                fail_msg("%u Hz: wrong with a tick of %llu ns", rates_hz[i],
                         (unsigned long long)sampling_tick_ns[j]);
            }
        }
    }
    assert_false(finds_share(1000000, 1000000));
    assert_false(finds_share(500000, 1000000));
    assert_false(finds_share(250000, 1000000));
    assert_false(finds_share(250000, 4000000));
}

TEST(warns_of_periods_in_step_with_a_tick)
{
    static const struct {
        uint64_t period_ns;
        uint32_t frequency_hz;
        unsigned tick_ms, seconds;
        const char *left_ms; /* NULL: no warning */
        unsigned advised_hz;
    } cases[] = {
        {250000, 0, 1, 1, "0.250", 4000},   {500000, 0, 1, 1, "0.500", 2000},
        {1000000, 0, 1, 1, "1.000", 1000},  {10000000, 0, 1, 1, "1.000", 99},
        {1500000, 0, 1, 1, "0.500", 667},   {333333, 0, 1, 1, "0.332", 3000},
        {1001001, 0, 0, 0, NULL, 0},        {250213, 0, 0, 0, NULL, 0},
        {1000000000, 0, 1, 10, "1.000", 1}, {10000, 0, 1, 1, "0.010", 100000},
        {1002001, 999, 0, 0, NULL, 0},      {1001000, 1000, 0, 0, NULL, 0},
        {249753, 4000, 0, 0, NULL, 0},      {9990012, 100, 10, 1, "9.011", 99},
        {3996005, 250, 4, 1, "3.005", 249}, {2002001, 500, 4, 1, "1.006", 499},
        {10009, 100000, 0, 0, NULL, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[SAMPLING_TEXT_BYTES] = "";
        char expected[SAMPLING_TEXT_BYTES] = "";
        if (cases[i].left_ms != NULL) {
            (void)snprintf(expected, sizeof expected,
                           "is in step with kernel ticks of %u ms: in %u s no sample falls into %s "
                           "ms of them, so work that runs in step with them is miscounted; ask for "
                           "a frequency_hz of %u",
                           cases[i].tick_ms, cases[i].seconds, cases[i].left_ms,
                           cases[i].advised_hz);
        }
        bool warned = sampling_period_warn(cases[i].period_ns, cases[i].frequency_hz, text);
        assert_string_equal(text, expected);
        assert_int_equal(warned, cases[i].left_ms != NULL);
    }
}
