/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples of switches cost what they may, at any rate of switches, and every switch is sampled
 * where that costs less.
 */
#include "unit_test.h"
#include "wait_rate.h"

#define SECOND UINT64_C(1000000000)

/* The period after a second at a rate, where a sample costs the collector `own_ns`. */
static uint32_t period_at(uint32_t percent, uint32_t max_hz, uint64_t switches_hz, uint64_t own_ns)
{
    struct wait_rate rate;
    wait_rate_init(&rate, percent, max_hz);
    assert_int_equal(wait_rate_period(&rate), 1);
    assert_false(wait_rate_adapt(&rate, SECOND, own_ns * 1000, 1000));
    for (uint64_t i = 0; i < switches_hz; i++) {
        wait_rate_count(&rate);
    }
    assert_false(wait_rate_adapt(&rate, SECOND + WAIT_RATE_SPAN_NS - 1, own_ns * 1000, 1000));
    bool is_other = wait_rate_adapt(&rate, 2 * SECOND, own_ns * 1000, 1000);
    assert_int_equal(is_other, wait_rate_period(&rate) != 1);
    return wait_rate_period(&rate);
}

TEST(samples_every_switch_where_that_costs_little)
{
    (void)state;
    assert_int_equal(period_at(3, 0, 0, 4000), 1);
    assert_int_equal(period_at(3, 0, 2000, 4000), 1);
    assert_int_equal(period_at(100, 0, 80000, 4000), 1);
}

TEST(costs_no_more_than_it_may)
{
    (void)state;
    for (uint32_t percent = 1; percent <= 50; percent += 7) {
        for (uint64_t hz = 100; hz < wait_rate_switches_max(percent) / 2; hz += 997) {
            uint64_t cost_ns = hz * WAIT_RATE_SWITCH_NS +
                               hz / period_at(percent, 0, hz, 4000) * (WAIT_RATE_SAMPLE_NS + 4000);
            assert_true(cost_ns <= percent * (SECOND / 100) + SECOND / 1000);
        }
    }
    /* A dear sample is taken less often. */
    assert_true(period_at(3, 0, 9000, 90000) > 3 * period_at(3, 0, 9000, 4000));
    /* However many there are, some are. */
    assert_true(period_at(1, 0, 100000, 4000) < 500);
    assert_int_equal(period_at(1, 0, 10000000, 100000), WAIT_RATE_MOST);
}

TEST(keeps_to_the_rate_that_a_member_may_have)
{
    (void)state;
    assert_int_equal(period_at(100, 5000, 4999, 4000), 1);
    assert_true(period_at(100, 1000, 10000, 4000) >= 10);
}

TEST(has_odd_periods_that_take_turns)
{
    struct wait_rate rate;
    uint32_t last = 0;
    (void)state;
    wait_rate_init(&rate, 3, 0);
    (void)wait_rate_adapt(&rate, SECOND, 0, 0);
    for (uint64_t i = 2; i < 6; i++) {
        for (size_t count = 0; count < 12000; count++) {
            wait_rate_count(&rate);
        }
        assert_true(wait_rate_adapt(&rate, i * SECOND, 0, 0));
        assert_int_equal(wait_rate_period(&rate) % 2, 1);
        assert_int_not_equal(wait_rate_period(&rate), last);
        last = wait_rate_period(&rate);
    }
    wait_rate_renew(&rate);
    assert_int_equal(wait_rate_period(&rate), 1);
}
