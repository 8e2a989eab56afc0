/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ticks are at tick_ns + k * period. A sample comes a few microseconds after its tick; of many
 * samples the earliest one gives the phase best. Two samples enclose a gap. The CPU's idle and
 * blind spans account for the ticks in them as the spans end, so no span is stored. The sample that
 * ends the gap gives its number of ticks: those that no span, loss or throttle accounts for were
 * missed.
 *
 * Invariants: each tick is accounted for once, since next_tick only rises. A tick with a sample is
 * not idle, even inside an idle span (the switch that ended it had interrupts off). A throttled
 * event has no ticks, and its timer begins anew afterwards.
 *
 * Two kinds of ticks stay unexplained in the books: one that was due just before the end of a run,
 * whose interrupt the end may have forestalled, and those at blind times that no other source calls
 * idle.
 */
#include "ticks.h"

#include "extremes.h"

#include <assert.h>
#include <string.h>

/* The number of samples among which the earliest after its tick is taken. */
#define PHASE_SAMPLES 32

/* A sample that is earlier than all before it by at most this is still of the same tick. */
#define EARLY_DIVISOR 16
/* Before the first sample, the start is known only as the daemon noted it, perhaps late. */
#define EARLY_FIRST_DIVISOR 4

/*
 * A tick shortly before the switch to idle finds interrupts off, and is delivered to the idle task.
 */
#define SWITCH_NS_MAX  5000
#define SWITCH_DIVISOR 8

/* By how much another source may be off: the resolution of its two readings. */
#define TOLD_BALANCE_NS INT64_C(20000000)

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

void ticks_init(struct ticks *ticks, uint64_t period_ns)
{
    assert(period_ns > 0);
    *ticks = (struct ticks){.period_ns = period_ns, .end_ns = UINT64_MAX};
}

/* The number of ticks after tick_ns and before `time_ns`. */
static uint64_t ticks_before(const struct ticks *ticks, uint64_t time_ns)
{
    uint64_t since_ns = less(time_ns, ticks->tick_ns);
    return since_ns == 0 ? 0 : (since_ns - 1) / ticks->period_ns;
}

/* Counts the ticks of a span by what the CPU did in it. */
static void judge(struct ticks *ticks, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t slack_ns = min_u64(SWITCH_NS_MAX, ticks->period_ns / SWITCH_DIVISOR);
    uint64_t first = ticks_before(ticks, less(from_ns, slack_ns)) + 1;
    uint64_t end = ticks_before(ticks, to_ns) + 1;
    first = first > ticks->next_tick ? first : ticks->next_tick;
    if (ticks->throttled || end <= first) {
        return;
    }
    *(ticks->state == TICK_IDLE ? &ticks->gap_idle : &ticks->gap_blind) += end - first;
    ticks->next_tick = end;
}

/* The state lasted up to `time_ns`. */
static void settle(struct ticks *ticks, uint64_t time_ns)
{
    uint64_t from_ns = ticks->state_since_ns;
    if (!ticks->running || time_ns <= from_ns || ticks->state == TICK_UNSEEN) {
        return;
    }
    if (ticks->state == TICK_IDLE) {
        ticks->known_idle_ns += time_ns - from_ns;
        judge(ticks, from_ns, time_ns);
    } else if (ticks->state == TICK_BLIND) {
        ticks->blind_ns += time_ns - from_ns;
        judge(ticks, from_ns, time_ns);
    }
    ticks->state_since_ns = time_ns;
}

/* The clock jumped: the open gap and span move with it. */
static void skip_suspended(struct ticks *ticks, uint64_t time_ns)
{
    uint64_t jump_ns = ticks->suspended_ns;
    if (jump_ns > 0 && less(time_ns, ticks->event_ns) >= jump_ns) {
        settle(ticks, ticks->event_ns);
        ticks->tick_ns += jump_ns;
        ticks->state_since_ns += jump_ns;
        ticks->throttled_since_ns += jump_ns;
        ticks->suspended_ns = 0;
    }
}

/* To be called before each event: the state lasted until then. Returns the event's time, cut to the
 * run. */
static uint64_t enter(struct ticks *ticks, uint64_t time_ns)
{
    skip_suspended(ticks, time_ns);
    ticks->event_ns = min_u64(time_ns, ticks->end_ns);
    settle(ticks, ticks->event_ns);
    return ticks->event_ns;
}

/* Ends the gap in which `absent` ticks gave no sample. */
static void close_gap(struct ticks *ticks, uint64_t absent)
{
    uint64_t unanswered = less(absent, ticks->gap_idle + ticks->gap_lost);
    uint64_t blind = min_u64(unanswered, ticks->gap_blind);
    ticks->counts.idle += ticks->gap_idle;
    ticks->counts.blind += blind;
    ticks->blind_left += (int64_t)blind;
    ticks->counts.missed += unanswered - blind;
    if ((absent + 1) * ticks->period_ns <= TICK_CROWDED_NS) {
        ticks->counts.crowded += unanswered - blind;
    }
    ticks->gap_idle = 0;
    ticks->gap_blind = 0;
    ticks->gap_lost = 0;
    ticks->next_tick = 1;
}

/* Ticks begin anew: the first is a period from now. */
static void begin_ticks(struct ticks *ticks, uint64_t time_ns)
{
    ticks->tick_ns = time_ns;
    ticks->next_tick = 1;
    ticks->sampled = false;
    ticks->phase_count = 0;
    ticks->phase_least_ns = UINT64_MAX;
}

void ticks_start(struct ticks *ticks, uint64_t time_ns, bool switches)
{
    ticks->running = true;
    ticks->switches = switches;
    ticks->end_ns = UINT64_MAX;
    ticks->event_ns = time_ns;
    ticks->suspended_ns = 0;
    ticks->throttled = false;
    ticks->state = switches ? TICK_UNSEEN : TICK_BLIND;
    ticks->state_since_ns = time_ns;
    ticks->known_idle_ns = 0;
    ticks->blind_ns = 0;
    begin_ticks(ticks, time_ns);
}

void ticks_end(struct ticks *ticks, uint64_t time_ns)
{
    ticks->end_ns = time_ns;
}

static void end_throttle(struct ticks *ticks, uint64_t time_ns)
{
    ticks->throttled_ns += less(time_ns, ticks->throttled_since_ns);
    ticks->throttled = false;
}

/* The ticks of the open gap that were due before the run ended, or the throttle began. */
static uint64_t ticks_due(const struct ticks *ticks)
{
    uint64_t slack_ns = ticks->period_ns / EARLY_DIVISOR;
    return ticks_before(ticks, ticks->throttled ? ticks->throttled_since_ns + slack_ns
                                                : less(ticks->end_ns, slack_ns));
}

void ticks_close(struct ticks *ticks)
{
    if (!ticks->running) {
        return;
    }
    /* A busy CPU would have had a sample, or the loss of one. */
    if (ticks->state == TICK_UNSEEN) {
        ticks->state = ticks->gap_lost == 0 ? TICK_IDLE : TICK_BLIND;
    }
    (void)enter(ticks, ticks->end_ns);
    uint64_t explained = ticks->gap_idle + ticks->gap_lost + ticks->gap_blind;
    uint64_t due = ticks_due(ticks);
    if (ticks->throttled) {
        end_throttle(ticks, ticks->end_ns);
    }
    close_gap(ticks, due > explained ? due : explained);
    ticks->running = false;
}

/* The phase of the ticks, by the earliest of some samples. */
static void find_phase(struct ticks *ticks, uint64_t late_ns)
{
    ticks->phase_least_ns = min_u64(ticks->phase_least_ns, late_ns);
    ticks->phase_count++;
    if (ticks->phase_count == PHASE_SAMPLES) {
        ticks->tick_ns += ticks->phase_least_ns;
        ticks->phase_count = 0;
        ticks->phase_least_ns = UINT64_MAX;
    }
}

/* The sample's tick becomes tick_ns. Returns how many ticks there were from the last one to it. */
static uint64_t find_tick(struct ticks *ticks, uint64_t time_ns)
{
    uint64_t divisor = ticks->sampled ? EARLY_DIVISOR : EARLY_FIRST_DIVISOR;
    uint64_t since_ns = less(time_ns, ticks->tick_ns);
    uint64_t count = since_ns / ticks->period_ns;
    uint64_t late_ns = since_ns % ticks->period_ns;
    bool early = late_ns >= ticks->period_ns - ticks->period_ns / divisor;
    count += early ? 1 : 0;
    /* Two samples are not of one tick, and the first sample is the best guess of its tick. */
    if (count == 0 || early || !ticks->sampled) {
        begin_ticks(ticks, time_ns);
        ticks->sampled = true;
        return count == 0 ? 1 : count;
    }
    ticks->tick_ns += count * ticks->period_ns;
    find_phase(ticks, late_ns);
    return count;
}

void ticks_sample(struct ticks *ticks, uint64_t time_ns)
{
    ticks->counts.samples++;
    if (!ticks->running) {
        return;
    }
    if (ticks->throttled && ticks->throttle_sampled) {
        /* The UNTHROTTLE record was lost: it was a period ago at the latest. */
        ticks_unthrottle(ticks, less(time_ns, ticks->period_ns));
    }
    ticks->throttle_sampled = ticks->throttled;
    time_ns = enter(ticks, time_ns);
    if (ticks->state == TICK_UNSEEN) {
        ticks->state = TICK_BUSY;
        ticks->state_since_ns = time_ns;
    }
    uint64_t judged = ticks->next_tick;
    uint64_t count = find_tick(ticks, time_ns);
    uint64_t *judgement = ticks->state == TICK_BLIND ? &ticks->gap_blind : &ticks->gap_idle;
    *judgement = less(*judgement, less(judged, count));
    close_gap(ticks, count - 1);
}

void ticks_lost(struct ticks *ticks, uint64_t count)
{
    ticks->counts.lost += count;
    ticks->gap_lost += count;
}

void ticks_throttle(struct ticks *ticks, uint64_t time_ns)
{
    time_ns = enter(ticks, time_ns);
    if (ticks->running && !ticks->throttled) {
        ticks->throttled = true;
        ticks->throttle_sampled = false;
        ticks->throttled_since_ns = time_ns;
    }
}

void ticks_unthrottle(struct ticks *ticks, uint64_t time_ns)
{
    time_ns = enter(ticks, time_ns);
    if (!ticks->running) {
        return;
    }
    uint64_t since_ns = ticks->throttled ? ticks->throttled_since_ns : time_ns;
    if (ticks->throttled) {
        end_throttle(ticks, time_ns);
    }
    /* A THROTTLE record is a little earlier than the sample of the same tick. */
    close_gap(ticks, ticks_before(ticks, since_ns + ticks->period_ns / EARLY_DIVISOR));
    begin_ticks(ticks, time_ns);
}

void ticks_switch(struct ticks *ticks, uint64_t time_ns, bool was_idle, bool is_idle)
{
    if (!ticks->switches) {
        return;
    }
    if (ticks->state == TICK_UNSEEN) {
        ticks->state = was_idle ? TICK_IDLE : TICK_BUSY;
    }
    (void)enter(ticks, time_ns);
    ticks->state = is_idle ? TICK_IDLE : TICK_BUSY;
}

void ticks_switches_lost(struct ticks *ticks)
{
    ticks->state = TICK_BLIND;
}

void ticks_use_switches(struct ticks *ticks, uint64_t time_ns, bool switches)
{
    (void)enter(ticks, time_ns);
    ticks->switches = switches;
    ticks->state = TICK_BLIND;
}

void ticks_advance(struct ticks *ticks, uint64_t time_ns)
{
    (void)enter(ticks, time_ns);
}

void ticks_tell_idle(struct ticks *ticks, uint64_t idle_ns)
{
    int64_t period_ns = (int64_t)ticks->period_ns;
    int64_t left = ticks->blind_left + (int64_t)ticks->gap_blind;
    int64_t balance_ns = 0;
    if (ticks->blind_ns > 0) {
        balance_ns = ticks->told_balance_ns + (int64_t)idle_ns - (int64_t)ticks->known_idle_ns;
    }
    int64_t count = balance_ns / period_ns;
    count = count < left ? count : left;
    if (count > 0) {
        ticks->counts.idle_told += (uint64_t)count;
        ticks->blind_left -= count;
        balance_ns -= count * period_ns;
    }
    balance_ns = balance_ns > TOLD_BALANCE_NS ? TOLD_BALANCE_NS : balance_ns;
    ticks->told_balance_ns = balance_ns < -TOLD_BALANCE_NS ? -TOLD_BALANCE_NS : balance_ns;
    ticks->known_idle_ns = 0;
    ticks->blind_ns = 0;
}

void ticks_suspended(struct ticks *ticks, uint64_t time_ns)
{
    ticks->suspended_ns += time_ns;
}

struct tick_counts ticks_counts(const struct ticks *ticks)
{
    struct tick_counts counts = ticks->counts;
    uint64_t throttled_ns = ticks->throttled_ns;
    if (ticks->throttled) {
        throttled_ns += less(ticks->event_ns, ticks->throttled_since_ns);
    }
    counts.throttled = (throttled_ns + ticks->period_ns / 2) / ticks->period_ns;
    counts.idle += ticks->gap_idle + counts.idle_told;
    counts.blind += ticks->gap_blind;
    return counts;
}
