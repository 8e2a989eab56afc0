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
    assert_int_equal(period_at(3, 0, 1800, 4000), 1);
    assert_int_equal(period_at(100, 0, 60000, 4000), 1);
}

TEST(costs_no_more_than_it_may)
{
    (void)state;
    for (uint32_t percent = 1; percent <= 50; percent += 7) {
        for (uint64_t hz = 100; hz < wait_rate_switches_max(percent); hz += 997) {
            uint64_t cost_ns = hz * WAIT_RATE_SWITCH_NS +
                               hz / period_at(percent, 0, hz, 4000) * (WAIT_RATE_SAMPLE_NS + 4000);
            assert_true(cost_ns <= percent * (SECOND / 100) + SECOND / 1000);
        }
    }
    /* A dear sample is taken less often. */
    assert_true(period_at(3, 0, 9000, 90000) > 3 * period_at(3, 0, 9000, 4000));
    /* However many there are, some are. */
    assert_true(period_at(1, 0, 100000, 4000) < 900);
    assert_in_range(period_at(1, 0, 10000000, 100000), WAIT_RATE_PERIOD_MAX / 2,
                    WAIT_RATE_PERIOD_MAX);
}

TEST(keeps_to_the_rate_that_a_member_may_have)
{
    (void)state;
    assert_int_equal(period_at(100, 5000, 4999, 4000), 1);
    assert_true(period_at(100, 1000, 10000, 4000) >= 10);
}

/* Many times a second, and not by a rhythm: of 400, each of the periods that cost no more comes,
 * and half of them are odd, with a standard deviation of 10. */
TEST(draws_its_period_anew)
{
    struct wait_rate rate;
    uint64_t time_ns = SECOND;
    size_t odd_count = 0;
    size_t same_count = 0;
    bool has_come[64] = {0};
    (void)state;
    wait_rate_init(&rate, 3, 0);
    (void)wait_rate_adapt(&rate, time_ns, 0, 0);
    for (size_t i = 0; i < 400; i++) {
        time_ns += WAIT_RATE_DRAW_NS;
        rate.switch_count = 12000 * (time_ns - rate.since_ns) / SECOND;
        const uint32_t before = wait_rate_period(&rate);
        const bool has_changed = wait_rate_adapt(&rate, time_ns, 0, 0);
        const uint32_t period = wait_rate_period(&rate);
        assert_int_equal(has_changed, period != before);
        assert_false(wait_rate_adapt(&rate, time_ns + WAIT_RATE_DRAW_NS - 1, 0, 0));
        odd_count += period % 2;
        same_count += period == before;
        has_come[period % COUNT_OF(has_come)] = true;
        assert_true(i < 3 ||
                    (period >= rate.period_least && period <= rate.period_least * 3 / 2 + 1));
    }
    assert_in_range(odd_count, 150, 250);
    assert_true(same_count < 100);
    for (uint32_t period = rate.period_least; period <= rate.period_least * 3 / 2; period++) {
        assert_true(has_come[period]);
    }
    wait_rate_renew(&rate);
    assert_int_equal(wait_rate_period(&rate), 1);
}

/* Of ten thousand threads that wait for 50 ms each, nearly every wait is long; few may be written.
 */
TEST(writes_no_more_long_waits_than_half_of_what_it_may_sample)
{
    struct wait_rate rate;
    uint64_t time_ns = SECOND;
    uint64_t long_count = 0;
    (void)state;
    wait_rate_init(&rate, 3, 1000);
    (void)wait_rate_adapt(&rate, time_ns, 0, 0);
    for (size_t span = 0; span < 50; span++) {
        time_ns += WAIT_RATE_SPAN_NS;
        const bool is_written = wait_rate_long_ns(&rate, time_ns) <= 50 * SECOND / 1000;
        rate.switch_count = 2000;
        rate.long_count = is_written ? 1900 : 0;
        long_count += rate.long_count;
        (void)wait_rate_adapt(&rate, time_ns, 0, 0);
    }
    /* One span in 17, and the first. */
    assert_in_range(long_count, 1, 4 * 1900);
    /* Where there are few, each is written again. */
    for (size_t span = 0; span < 40; span++) {
        time_ns += WAIT_RATE_SPAN_NS;
        rate.switch_count = 2000;
        (void)wait_rate_adapt(&rate, time_ns, 0, 0);
    }
    assert_true(wait_rate_long_ns(&rate, time_ns) <= SECOND / 10);
    rate.period = rate.period_before = 1;
    assert_int_equal(wait_rate_long_ns(&rate, time_ns), 0);
}

/* Records are given up before a span is over, and what was seen until then counts. */
TEST(keeps_its_period_over_a_time_without_records)
{
    struct wait_rate rate;
    (void)state;
    wait_rate_init(&rate, 3, 0);
    (void)wait_rate_adapt(&rate, SECOND, 0, 0);
    rate.switch_count = 15000;
    wait_rate_pause(&rate, SECOND + SECOND / 10);
    assert_true(wait_rate_adapt(&rate, 2 * SECOND, 0, 0));
    const uint32_t period = wait_rate_period(&rate);
    assert_true(period > 100);
    (void)wait_rate_adapt(&rate, 2 * SECOND + WAIT_RATE_SPAN_NS / 2, 0, 0);
    assert_true(wait_rate_period(&rate) > 100);
    (void)wait_rate_adapt(&rate, 2 * SECOND + WAIT_RATE_SPAN_NS, 0, 0);
    assert_int_equal(wait_rate_period(&rate), 1);
}

/* A sampling event of switches, as the kernel counts for one (perf_swevent_event(), Linux 6.18):
 * a change of the period makes the next switch a sample, and takes hold one sample later. */
struct kernel_event {
    int64_t period;
    int64_t last_period;
    int64_t left;
};

static void change_period(struct kernel_event *event, struct wait_rate *rate, uint32_t hz,
                          uint64_t time_ns)
{
    rate->switch_count = hz / 5;
    if (wait_rate_adapt(rate, time_ns, 0, 0)) {
        event->period = wait_rate_period(rate);
        event->left = 0;
        wait_rate_changed(rate, time_ns, time_ns + 1);
    }
}

static int64_t count_samples(struct kernel_event *event)
{
    if (event->period == 1) {
        return 1;
    }
    event->left++;
    if (event->left < 0) {
        return 0;
    }
    const int64_t period = event->last_period;
    event->last_period = event->period;
    const int64_t count = (period + event->left) / period;
    event->left -= count * period;
    return count;
}

TEST(weighs_samples_so_that_they_stand_for_every_switch_once)
{
    struct kernel_event event = {.period = 1, .last_period = 1};
    struct wait_rate rate;
    uint64_t time_ns = SECOND;
    uint64_t switches = 0;
    uint64_t sum = 0;
    uint64_t first_sum = 0; /* of the first switches after a change */
    uint32_t longest = 1;
    uint64_t seed = 1;
    (void)state;
    wait_rate_init(&rate, 3, 0);
    (void)wait_rate_adapt(&rate, time_ns, 0, 0);
    for (uint32_t change = 0; change < 400; change++) {
        /* From each switch to one of hundreds, and back. */
        time_ns += WAIT_RATE_SPAN_NS;
        change_period(&event, &rate, change % 40 < 35 ? 10000 + 3000 * (change % 7) : 100, time_ns);
        longest = wait_rate_period(&rate) > longest ? wait_rate_period(&rate) : longest;
        time_ns++;
        const uint64_t count = 3000 + draw_below(&seed, 1000);
        for (uint64_t i = 0; i < count; i++, time_ns += 1000) {
            uint32_t weight = 0;
            for (int64_t left = count_samples(&event); left > 0; left--) {
                /* The last counts. Some wake the reader of their ring. */
                weight = wait_rate_weigh(&rate, time_ns, draw_below(&seed, 30) == 0);
            }
            wait_rate_count(&rate);
            sum += weight;
            first_sum += i == 0 ? weight : 0;
            switches++;
        }
    }
    /* A sample comes no later than two periods after the last. Those behind it stand for none where
     * each stands for itself from then on, ten times, and at the end. */
    assert_true(longest > 10);
    assert_true(sum <= switches && sum > switches - 11 * 2 * (uint64_t)longest);
    /* Those behind a change are always the same ones, and sampled always: each stands for itself
     * alone. Where nothing has changed, one in so many stands for its period's others. */
    assert_in_range(first_sum, 300, 500);
}

/* 25,000 switches a second, of which one in so many is sampled. */
static struct wait_rate sampling_some(void)
{
    struct wait_rate rate;
    wait_rate_init(&rate, 3, 0);
    (void)wait_rate_adapt(&rate, SECOND, 0, 0);
    rate.switch_count = 5000;
    assert_true(wait_rate_adapt(&rate, SECOND + WAIT_RATE_SPAN_NS, 0, 0));
    return rate;
}

TEST(has_no_sample_stand_for_a_storm_of_which_others_were_lost)
{
    struct wait_rate rate = sampling_some();
    (void)state;
    wait_rate_changed(&rate, SECOND, SECOND + 1);
    assert_int_equal(wait_rate_weigh(&rate, 2 * SECOND, false), 1);
    for (size_t i = 0; i < 100000; i++) {
        wait_rate_count(&rate);
    }
    assert_int_equal(wait_rate_weigh(&rate, 2 * SECOND, false), 3 * wait_rate_period(&rate));
}

/* A wait with which the reader is woken is like no other: it counts, once, and for itself. */
TEST(a_sample_that_wakes_the_reader_stands_for_itself_alone)
{
    struct wait_rate rate;
    uint32_t weights[4];
    (void)state;
    wait_rate_init(&rate, 3, 0);
    (void)wait_rate_adapt(&rate, SECOND, 0, 0);
    assert_int_equal(wait_rate_weigh(&rate, SECOND, true), 1);
    wait_rate_count(&rate);
    rate.switch_count = 5000;
    assert_true(wait_rate_adapt(&rate, SECOND + WAIT_RATE_SPAN_NS, 0, 0));
    wait_rate_changed(&rate, SECOND, SECOND + 1);
    const uint32_t period = wait_rate_period(&rate);
    rate.gap_count = 0;
    rate.is_early_due = false;
    /* Between samples, and with each: the last three all wake it. */
    for (size_t i = 0; i < COUNT_OF(weights); i++) {
        for (uint32_t count = 1; count < period; count++) {
            wait_rate_count(&rate);
        }
        weights[i] = wait_rate_weigh(&rate, 2 * SECOND, i > 0);
        wait_rate_count(&rate);
    }
    assert_int_equal(weights[0], period - 1); /* and its own, which was counted as the first */
    assert_int_equal(weights[1], 1);
    assert_int_equal(weights[2], 2 * period - 1);
    assert_int_equal(weights[3], 1);
}

/* A pause between two runs is no calm time. */
TEST(keeps_its_period_over_a_pause)
{
    struct wait_rate rate = sampling_some();
    (void)state;
    const uint32_t least = rate.period_least;
    assert_true(least > 10);
    rate.switch_count = 1000;
    wait_rate_pause(&rate, SECOND + WAIT_RATE_SPAN_NS + WAIT_RATE_SPAN_NS / 5);
    (void)wait_rate_adapt(&rate, 60 * SECOND, 0, 0);
    assert_int_equal(rate.period_least, least);
}

/* However few samples there may be: with one a second, too, long waits are written again. */
TEST(writes_long_waits_again_after_a_calm_time)
{
    struct wait_rate rate;
    (void)state;
    wait_rate_init(&rate, 3, 1);
    uint64_t time_ns = SECOND;
    (void)wait_rate_adapt(&rate, time_ns, 0, 0);
    for (size_t i = 0; i < 20; i++) {
        rate.switch_count = 1000;
        rate.long_count = 5;
        (void)wait_rate_adapt(&rate, time_ns += WAIT_RATE_SPAN_NS, 0, 0);
    }
    const uint64_t most_ns = rate.long_least_ns;
    assert_true(most_ns > WAIT_RATE_LONG_NS);
    for (size_t i = 0; i < 40; i++) {
        rate.switch_count = 1000;
        (void)wait_rate_adapt(&rate, time_ns += WAIT_RATE_SPAN_NS, 0, 0);
    }
    assert_int_equal(rate.long_least_ns, most_ns / 4);
}
