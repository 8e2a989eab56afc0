/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Switch records come always: so the length of each wait is known, and what is sampled decides
 * about stacks alone. What the records leave of the allowance, a quarter at least, is for samples.
 * A period that is kept would meet the same switches again and again where they take turns, and a
 * sample itself, which takes longer than a turn, sets threads that answer each other at once going
 * from the same point each time. So it is drawn anew many times a second.
 *
 * A sample stands for all switches since the one before: so many as there were, whatever a change
 * of the period did to their rhythm. Where samples were lost it does so for some periods at most:
 * one wait is not to stand for a storm, and what is missing then is unexplained in the books.
 */
#include "wait_rate.h"

#include "extremes.h"

#define NS_PER_S        UINT64_C(1000000000)
#define LEAST_PART      4    /* of the allowance, for samples */
#define OWN_DEFAULT_NS  4000 /* of the collector's time, for a sample, before that is known */
#define OWN_SAMPLES     256  /* samples from which on it is */
#define SPAN_LEAST_NS   UINT64_C(10000000)
#define LONG_LEAST_MAX  (UINT64_C(3600) * NS_PER_S)
#define LONG_PARTS      16          /* of the samples that may be: one part of long waits is few */
#define LONG_SPANS      16          /* with few, until shorter ones are written again for a span */
#define GAP_PERIODS_MAX UINT64_C(3) /* a change makes it two */
/* Half as long again is no longer than the longest. */
#define PERIOD_LEAST_MAX (UINT64_C(2) * ((WAIT_RATE_PERIOD_MAX - 1) / 3))

void wait_rate_init(struct wait_rate *rate, uint32_t cost_percent, uint32_t sample_max_hz)
{
    *rate = (struct wait_rate){
        .cost_percent = cost_percent,
        .sample_max_hz = sample_max_hz,
        .period = 1,
        .period_least = 1,
        .sample_ns = WAIT_RATE_SAMPLE_NS + OWN_DEFAULT_NS,
        .gap_count = 1,
    };
}

void wait_rate_renew(struct wait_rate *rate)
{
    rate->period = rate->period_least = 1;
    rate->changing_ns = rate->changed_ns = 0;
    rate->is_early_due = false;
    rate->since_ns = 0;
    rate->gap_count = 1;
    rate->is_alone = false;
}

uint32_t wait_rate_weigh(struct wait_rate *rate, uint64_t time_ns, bool woke_reader)
{
    const bool is_early = rate->is_early_due && time_ns >= rate->changing_ns;
    if (is_early || time_ns >= rate->changed_ns) {
        rate->is_early_due = false;
    }
    if (wait_rate_period_at(rate, time_ns) == 1) {
        rate->gap_count = 0;
        return 1; /* and each of the others for itself */
    }
    const uint32_t period = wait_rate_period_at(rate, time_ns);
    const bool has_others = rate->gap_count > period + period / 2;
    if (is_early || rate->is_alone || (woke_reader && !has_others)) {
        rate->is_alone = true;
        return 1;
    }
    const uint64_t count_max = GAP_PERIODS_MAX * max_u64(rate->period_before, rate->period);
    const uint64_t count = rate->gap_count > 0 ? rate->gap_count : 1; /* sampled twice */
    rate->gap_count = 0;
    return (uint32_t)min_u64(count, count_max);
}

static uint64_t allowed_ns(uint32_t cost_percent)
{
    return NS_PER_S / 100 * cost_percent;
}

uint64_t wait_rate_switches_max(uint32_t cost_percent)
{
    const uint64_t all_ns = allowed_ns(cost_percent);
    return (all_ns - all_ns / LEAST_PART) / WAIT_RATE_SWITCH_NS;
}

/* How many samples a second there may be, at so many switches a second. */
static uint64_t samples_max_hz(const struct wait_rate *rate, uint64_t switches_hz)
{
    const uint64_t all_ns = allowed_ns(rate->cost_percent);
    const uint64_t records_ns = switches_hz * WAIT_RATE_SWITCH_NS;
    uint64_t left_ns = records_ns < all_ns ? all_ns - records_ns : 0;
    left_ns = left_ns < all_ns / LEAST_PART ? all_ns / LEAST_PART : left_ns;
    uint64_t max_hz = left_ns / rate->sample_ns;
    max_hz = rate->sample_max_hz > 0 && max_hz > rate->sample_max_hz ? rate->sample_max_hz : max_hz;
    return max_hz > 0 ? max_hz : 1;
}

uint64_t wait_rate_long_ns(const struct wait_rate *rate, uint64_t time_ns)
{
    const uint32_t period = wait_rate_period_at(rate, time_ns);
    return period == 1 ? 0 : max_u64(WAIT_RATE_LONG_NS / period, rate->long_least_ns);
}

/* Long waits are written without a sample, but no more of them than half as many as samples. */
static void bound_long(struct wait_rate *rate, uint64_t max_hz, uint64_t span_ns)
{
    const uint64_t now_ns = max_u64(WAIT_RATE_LONG_NS / rate->period, rate->long_least_ns);
    const uint64_t long_hz = rate->long_count * NS_PER_S / span_ns;
    const bool are_few = long_hz * LONG_PARTS <= max_hz;
    rate->calm_spans = are_few ? rate->calm_spans + 1 : 0;
    if (long_hz > max_hz / 2) {
        rate->long_least_ns = min_u64(2 * now_ns, LONG_LEAST_MAX);
    } else if (rate->calm_spans == LONG_SPANS) {
        rate->long_least_ns /= 2;
        rate->calm_spans = 0;
    }
    rate->long_count = 0;
}

/* Makes out the least period, when a span of at least `span_ns` is over. */
static void take_measure(struct wait_rate *rate, uint64_t time_ns, uint64_t span_ns)
{
    if (rate->since_ns == 0) {
        rate->since_ns = time_ns;
        rate->switch_count = rate->long_count = 0;
    }
    const uint64_t passed_ns = time_ns > rate->since_ns ? time_ns - rate->since_ns : 0;
    if (passed_ns == 0 || passed_ns < span_ns) {
        return;
    }
    const uint64_t switches_hz = rate->switch_count * NS_PER_S / passed_ns;
    const uint64_t max_hz = samples_max_hz(rate, switches_hz);
    const uint64_t least = (switches_hz + max_hz - 1) / max_hz;
    rate->period_least = (uint32_t)min_u64(least, PERIOD_LEAST_MAX);
    bound_long(rate, max_hz, passed_ns);
    rate->since_ns = time_ns;
    rate->switch_count = 0;
}

void wait_rate_pause(struct wait_rate *rate, uint64_t time_ns)
{
    if (rate->since_ns != 0) {
        take_measure(rate, time_ns, SPAN_LEAST_NS);
        rate->since_ns = 0;
    }
}

/* A number that looks like chance (the finalizer of SplitMix64). */
static uint64_t draw(struct wait_rate *rate)
{
    uint64_t x = ++rate->draw_count * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

bool wait_rate_adapt(struct wait_rate *rate, uint64_t time_ns, uint64_t own_ns,
                     uint64_t sample_count)
{
    const uint32_t before = rate->period;
    if (sample_count >= OWN_SAMPLES) {
        rate->sample_ns = WAIT_RATE_SAMPLE_NS + own_ns / sample_count;
    }
    take_measure(rate, time_ns, WAIT_RATE_SPAN_NS);
    if (rate->period_least <= 1) {
        rate->period = 1;
    } else if (rate->period < rate->period_least || time_ns >= rate->drawn_ns + WAIT_RATE_DRAW_NS) {
        rate->period = rate->period_least + (uint32_t)(draw(rate) % (rate->period_least / 2 + 2));
        rate->drawn_ns = time_ns;
    }
    if (rate->period == before) {
        return false;
    }
    rate->period_before = before;
    return true;
}
