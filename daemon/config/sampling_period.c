/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The choice of a sampling period. N points 0, p, 2p, ... on a circle of T have neighbours of at
 * most three distances (the three-gap theorem), which Euclid's algorithm on p and T yields in a few
 * steps. So the longest gap of a candidate costs O(log T), and all candidates within 0.1 % of a
 * rate, or an even choice of 2,001 among more, are compared in well under a millisecond.
 *
 * A candidate that sweeps all ticks within a second comes before any that does not, and then one
 * that does so within ten, or leaves no gap longer than a thousandth of the tick. Among equals
 * the phases should be spread evenly after any number of samples, not only after a second: a sweep
 * that is half done counts half of the phases once more than the others. How uneven they can be is
 * bounded by the partial quotients of p/T as a continued fraction; the least sum of squares over
 * the ticks wins. Ties go to the candidate that is nearest to the exact period.
 *
 * One second is too short for some rates: 0.1 % shifts the phases by 1 ms in it, and p close to
 * (a/b) T has b clusters of phases to fill T with. Below 1000 Hz that leaves 35 rates, those close
 * to 100 b/a Hz with b < 10 or 250 b/a Hz with b < 4. Ten seconds suffice for all.
 */
#include "sampling_period.h"

#include "extremes.h"

#include <assert.h>
#include <stdio.h>

#define NS_PER_S       UINT64_C(1000000000)
#define CANDIDATES_MAX 1000 /* on either side of the exact period */
#define GAP_DIVISOR    500  /* a shorter gap than this part of a tick is not warned of */
#define MULTIPLE       UINT64_C(1000)
#define FINE_DIVISOR   1000 /* and this part is fine enough for ten seconds */
#define NOT_SWEPT_COST (UINT64_C(1) << 62)
#define NOT_SOON_COST  (UINT64_C(1) << 61)
#define RATES_AROUND   20 /* in which sampling_period_warn() looks for a better one */

const uint64_t sampling_tick_ns[SAMPLING_TICK_COUNT] = {1000000, 4000000, 10000000};

/* A point and how far it lies from point 0, on one side of it. */
struct nearest {
    uint64_t distance_ns;
    uint64_t index;
};

/* Moves `far` as close to point 0 as steps over `near` take it, with an index below `count`. */
static void approach(struct nearest *far, const struct nearest *near, uint64_t count)
{
    uint64_t steps =
        min_u64((far->distance_ns - 1) / near->distance_ns, (count - 1 - far->index) / near->index);
    far->distance_ns -= steps * near->distance_ns;
    far->index += steps * near->index;
}

/* The longest distance between neighbours of `count` points. */
static uint64_t longest_gap(uint64_t step_ns, uint64_t circle_ns, uint64_t count)
{
    uint64_t first_ns = step_ns % circle_ns;
    if (first_ns == 0 || count <= 1) {
        return circle_ns;
    }
    struct nearest ahead = {.distance_ns = first_ns, .index = 1};
    struct nearest behind = {.distance_ns = circle_ns - first_ns, .index = 1};
    while (ahead.index + behind.index < count && ahead.distance_ns != behind.distance_ns) {
        if (ahead.distance_ns > behind.distance_ns) {
            approach(&ahead, &behind, count);
        } else {
            approach(&behind, &ahead, count);
        }
    }
    if (ahead.index + behind.index > count) {
        return ahead.distance_ns + behind.distance_ns;
    }
    return max_u64(ahead.distance_ns, behind.distance_ns);
}

static uint64_t samples_in(uint64_t seconds, uint64_t period_ns)
{
    return max_u64(seconds * NS_PER_S / period_ns, 1);
}

uint64_t sampling_gap_ns(uint64_t period_ns, uint64_t tick_ns, uint64_t seconds)
{
    assert(period_ns > 0 && tick_ns > 0 && seconds > 0);
    return longest_gap(period_ns, tick_ns, samples_in(seconds, period_ns));
}

bool sampling_sweeps(uint64_t period_ns, uint64_t tick_ns, uint64_t seconds)
{
    return sampling_gap_ns(period_ns, tick_ns, seconds) * samples_in(seconds, period_ns) <=
           SAMPLING_GAP_MAX * tick_ns;
}

/* The gap in thousandths of T/N. */
static uint64_t multiple_of_even(uint64_t period_ns, uint64_t tick_ns, uint64_t seconds)
{
    return sampling_gap_ns(period_ns, tick_ns, seconds) * samples_in(seconds, period_ns) *
           MULTIPLE / tick_ns;
}

/*
 * The partial quotients of period / tick, of those that matter to the samples of ten seconds. A
 * quarter of the sum bounds, but for a small term, by how many samples a stretch [0, x) of the tick
 * can have more or less than its share, after any number of samples.
 */
static uint64_t sum_of_quotients(uint64_t period_ns, uint64_t tick_ns)
{
    uint64_t count = samples_in(SAMPLING_SECONDS_MAX, period_ns);
    uint64_t larger = tick_ns;
    uint64_t smaller = period_ns % tick_ns;
    uint64_t before = 0;
    uint64_t denominator = 1; /* of the convergents: phases nearly repeat after so many samples */
    uint64_t sum = 0;
    while (smaller > 0 && denominator <= count) {
        uint64_t quotient = larger / smaller;
        uint64_t next = quotient * denominator + before;
        assert(next >= denominator); /* larger > smaller, so a quotient is 1 at least */
        sum += min_u64(quotient, count / denominator);
        before = denominator;
        denominator = next;
        next = larger % smaller;
        larger = smaller;
        smaller = next;
    }
    /* Here they repeat exactly, and what is uneven grows for ever. */
    return denominator <= count ? sum + count / denominator : sum;
}

/* Within ten seconds. */
static bool sweeps_in_the_end(uint64_t period_ns, uint64_t tick_ns)
{
    return sampling_sweeps(period_ns, tick_ns, SAMPLING_SECONDS_MAX) ||
           sampling_gap_ns(period_ns, tick_ns, SAMPLING_SECONDS_MAX) * FINE_DIVISOR <= tick_ns;
}

/* Stops early, with at least `limit`, when it is known to cost that much. */
static uint64_t cost_of(uint64_t period_ns, uint64_t limit)
{
    uint64_t cost = 0;
    for (size_t i = 0; i < SAMPLING_TICK_COUNT && cost < limit; i++) {
        uint64_t quotients = sum_of_quotients(period_ns, sampling_tick_ns[i]);
        cost += quotients * quotients;
    }
    for (size_t i = 0; i < SAMPLING_TICK_COUNT && cost < limit; i++) {
        uint64_t tick_ns = sampling_tick_ns[i];
        cost |= sampling_sweeps(period_ns, tick_ns, 1) ? 0 : NOT_SWEPT_COST;
        cost |= sweeps_in_the_end(period_ns, tick_ns) ? 0 : NOT_SOON_COST;
    }
    return cost;
}

uint64_t sampling_period_exact_ns(uint32_t frequency_hz)
{
    assert(frequency_hz > 0);
    return (NS_PER_S + frequency_hz / 2) / frequency_hz;
}

/* |1 s / period - frequency| <= frequency / SAMPLING_TOLERANCE, times the period. */
static bool is_allowed(uint64_t period_ns, uint32_t frequency_hz)
{
    uint64_t time_ns = period_ns * frequency_hz;
    uint64_t difference_ns = time_ns > NS_PER_S ? time_ns - NS_PER_S : NS_PER_S - time_ns;
    return period_ns >= SAMPLING_PERIOD_MIN_NS && period_ns <= SAMPLING_PERIOD_MAX_NS &&
           difference_ns * SAMPLING_TOLERANCE <= time_ns;
}

struct choice {
    uint64_t period_ns;
    uint64_t cost;
};

static void consider(uint64_t period_ns, uint32_t frequency_hz, struct choice *best)
{
    if (is_allowed(period_ns, frequency_hz)) {
        uint64_t cost = cost_of(period_ns, best->cost);
        if (cost < best->cost) {
            *best = (struct choice){.period_ns = period_ns, .cost = cost};
        }
    }
}

uint64_t sampling_period_ns(uint32_t frequency_hz)
{
    uint64_t exact_ns = sampling_period_exact_ns(frequency_hz);
    uint64_t reach_ns = exact_ns / SAMPLING_TOLERANCE + 1;
    uint64_t step_ns = (reach_ns + CANDIDATES_MAX - 1) / CANDIDATES_MAX;
    struct choice best = {.period_ns = exact_ns, .cost = cost_of(exact_ns, UINT64_MAX)};
    for (uint64_t away_ns = step_ns; away_ns <= reach_ns; away_ns += step_ns) {
        consider(exact_ns + away_ns, frequency_hz, &best);
        consider(exact_ns - away_ns, frequency_hz, &best);
    }
    return best.period_ns;
}

static bool sweeps_all(uint64_t period_ns)
{
    bool sweeps = true;
    for (size_t i = 0; i < SAMPLING_TICK_COUNT && sweeps; i++) {
        sweeps = sampling_sweeps(period_ns, sampling_tick_ns[i], 1);
    }
    return sweeps;
}

/* The tick that is swept worst within `seconds`; 0 when none has a gap that is worth a word. */
static uint64_t unswept_tick(uint64_t period_ns, uint64_t seconds)
{
    uint64_t worst = 0;
    uint64_t tick_ns = 0;
    for (size_t i = 0; i < SAMPLING_TICK_COUNT; i++) {
        uint64_t multiple = multiple_of_even(period_ns, sampling_tick_ns[i], seconds);
        bool is_fine = sampling_sweeps(period_ns, sampling_tick_ns[i], seconds) ||
                       sampling_gap_ns(period_ns, sampling_tick_ns[i], seconds) * GAP_DIVISOR <=
                           sampling_tick_ns[i];
        if (!is_fine && multiple > worst) {
            worst = multiple;
            tick_ns = sampling_tick_ns[i];
        }
    }
    return tick_ns;
}

/* The next lower rate whose period sweeps all ticks within a second, or that of `period_ns` itself
 * where it was asked for exactly; 0: none. */
static uint32_t better_rate(uint64_t period_ns, uint32_t frequency_hz)
{
    uint32_t rate_hz =
        frequency_hz > 0 ? frequency_hz - 1 : (uint32_t)((NS_PER_S + period_ns / 2) / period_ns);
    uint32_t least_hz = rate_hz > RATES_AROUND ? rate_hz - RATES_AROUND : 0;
    while (rate_hz > least_hz && !sweeps_all(sampling_period_ns(rate_hz))) {
        rate_hz--;
    }
    return rate_hz > least_hz ? rate_hz : 0;
}

bool sampling_period_warn(uint64_t period_ns, uint32_t frequency_hz, char text[SAMPLING_TEXT_BYTES])
{
    uint64_t seconds = 1;
    uint64_t tick_ns = unswept_tick(period_ns, seconds);
    if (tick_ns == 0) {
        seconds = SAMPLING_SECONDS_MAX;
        tick_ns = unswept_tick(period_ns, seconds);
    }
    if (tick_ns == 0) {
        return false;
    }
    char remedy[48] = "";
    uint32_t better_hz = better_rate(period_ns, frequency_hz);
    if (better_hz > 0) {
        (void)snprintf(remedy, sizeof remedy, "; ask for a frequency_hz of %u", better_hz);
    }
    (void)snprintf(
        text, SAMPLING_TEXT_BYTES,
        "is in step with kernel ticks of %llu ms: in %llu s no sample falls into %.3f ms of "
        "them, so work that runs in step with them is miscounted%s",
        (unsigned long long)(tick_ns / 1000000), (unsigned long long)seconds,
        (double)sampling_gap_ns(period_ns, tick_ns, seconds) / 1e6, remedy);
    return true;
}
