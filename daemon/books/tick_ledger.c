/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ticks stand at tick_ns + k * period. A sample tells where the ticks stand, since it comes a few
 * microseconds after its own; of many samples the one that came soonest tells best. Between two
 * samples lies a gap; spans in which the CPU idled, or in which nobody knows, judge the ticks in
 * them as they pass, so that no span need be kept. The sample that ends the gap says how many ticks
 * it had: those that no span, no loss and no throttle answers for were missed.
 *
 * Invariants: each tick is judged once, next_tick moving on only; a tick of which there is a sample
 * is not idle, whatever the spans say (the switch that ended idleness had interrupts off); a
 * throttled event has no ticks, and its timer begins anew after it.
 *
 * What the ledger cannot know it leaves out, and the books show it as unexplained: ticks after the
 * last sample of a run, and those at blind times that no other source calls idle.
 */
#include "tick_ledger.h"

#include <assert.h>
#include <string.h>

/* Samples that are looked at to find the one that came soonest after its tick. */
#define PHASE_SAMPLES 32

/* A sample may be earlier than any before it by so much, without being the one of another tick. */
#define EARLY_DIVISOR 16
/* Before the first one, the time is known at which somebody else, perhaps late, saw the start. */
#define EARLY_FIRST_DIVISOR 4

/*
 * A tick shortly before the switch to idle finds interrupts off, and is delivered to the idle task.
 */
#define SWITCH_NS_MAX  5000
#define SWITCH_DIVISOR 8

/* What another source may be ahead or behind by: its own resolution, of two readings. */
#define TOLD_BALANCE_NS INT64_C(20000000)

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

void tick_ledger_init(struct tick_ledger *ledger, uint64_t period_ns)
{
    assert(period_ns > 0);
    *ledger = (struct tick_ledger){.period_ns = period_ns, .end_ns = UINT64_MAX};
}

/* How many ticks stand from tick_ns to just before `time_ns`, without the first. */
static uint64_t ticks_before(const struct tick_ledger *ledger, uint64_t time_ns)
{
    uint64_t since_ns = less(time_ns, ledger->tick_ns);
    return since_ns == 0 ? 0 : (since_ns - 1) / ledger->period_ns;
}

/* Judges the ticks of a span to be what the CPU did in it. */
static void judge(struct tick_ledger *ledger, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t slack_ns = least(SWITCH_NS_MAX, ledger->period_ns / SWITCH_DIVISOR);
    uint64_t first = ticks_before(ledger, less(from_ns, slack_ns)) + 1;
    uint64_t end = ticks_before(ledger, to_ns) + 1;
    first = first > ledger->next_tick ? first : ledger->next_tick;
    if (ledger->throttled || end <= first) {
        return;
    }
    *(ledger->state == TICK_IDLE ? &ledger->gap_idle : &ledger->gap_blind) += end - first;
    ledger->next_tick = end;
}

/* The state has lasted up to `time_ns`. */
static void settle(struct tick_ledger *ledger, uint64_t time_ns)
{
    uint64_t from_ns = ledger->state_since_ns;
    if (!ledger->running || time_ns <= from_ns || ledger->state == TICK_UNSEEN) {
        return;
    }
    if (ledger->state == TICK_IDLE) {
        ledger->known_idle_ns += time_ns - from_ns;
        judge(ledger, from_ns, time_ns);
    } else if (ledger->state == TICK_BLIND) {
        ledger->blind_ns += time_ns - from_ns;
        judge(ledger, from_ns, time_ns);
    }
    ledger->state_since_ns = time_ns;
}

/* The clock went on while nothing else did: what is open moves with it. */
static void skip_suspended(struct tick_ledger *ledger, uint64_t time_ns)
{
    uint64_t jump_ns = ledger->suspended_ns;
    if (jump_ns > 0 && less(time_ns, ledger->event_ns) >= jump_ns) {
        settle(ledger, ledger->event_ns);
        ledger->tick_ns += jump_ns;
        ledger->state_since_ns += jump_ns;
        ledger->throttled_since_ns += jump_ns;
        ledger->suspended_ns = 0;
    }
}

/* Before each event: all that lasts has lasted until then. Returns its time, within the run. */
static uint64_t enter(struct tick_ledger *ledger, uint64_t time_ns)
{
    skip_suspended(ledger, time_ns);
    ledger->event_ns = least(time_ns, ledger->end_ns);
    settle(ledger, ledger->event_ns);
    return ledger->event_ns;
}

/* Ends the gap in which `absent` ticks gave no sample. */
static void close_gap(struct tick_ledger *ledger, uint64_t absent)
{
    uint64_t unanswered = less(absent, ledger->gap_idle + ledger->gap_lost);
    uint64_t blind = least(unanswered, ledger->gap_blind);
    ledger->counts.idle += ledger->gap_idle;
    ledger->counts.blind += blind;
    ledger->blind_left += (int64_t)blind;
    ledger->counts.missed += unanswered - blind;
    if ((absent + 1) * ledger->period_ns <= TICK_CROWDED_NS) {
        ledger->counts.crowded += unanswered - blind;
    }
    ledger->gap_idle = 0;
    ledger->gap_blind = 0;
    ledger->gap_lost = 0;
    ledger->next_tick = 1;
}

/* Ticks begin anew: the first is a period from now. */
static void begin_ticks(struct tick_ledger *ledger, uint64_t time_ns)
{
    ledger->tick_ns = time_ns;
    ledger->next_tick = 1;
    ledger->sampled = false;
    ledger->phase_count = 0;
    ledger->phase_least_ns = UINT64_MAX;
}

void tick_ledger_start(struct tick_ledger *ledger, uint64_t time_ns, bool switches)
{
    ledger->running = true;
    ledger->switches = switches;
    ledger->end_ns = UINT64_MAX;
    ledger->event_ns = time_ns;
    ledger->suspended_ns = 0;
    ledger->throttled = false;
    ledger->state = switches ? TICK_UNSEEN : TICK_BLIND;
    ledger->state_since_ns = time_ns;
    ledger->known_idle_ns = 0;
    ledger->blind_ns = 0;
    begin_ticks(ledger, time_ns);
}

void tick_ledger_end(struct tick_ledger *ledger, uint64_t time_ns)
{
    ledger->end_ns = time_ns;
}

static void end_throttle(struct tick_ledger *ledger, uint64_t time_ns)
{
    ledger->throttled_ns += less(time_ns, ledger->throttled_since_ns);
    ledger->throttled = false;
}

void tick_ledger_close(struct tick_ledger *ledger)
{
    if (!ledger->running) {
        return;
    }
    /* A CPU that was busy would have told so by a sample, or the loss of one. */
    if (ledger->state == TICK_UNSEEN) {
        ledger->state = ledger->gap_lost == 0 ? TICK_IDLE : TICK_BLIND;
    }
    (void)enter(ledger, ledger->end_ns);
    if (ledger->throttled) {
        end_throttle(ledger, ledger->end_ns);
    }
    /* After the last sample nothing is missed, since nothing shows it: only what is known counts.
     */
    close_gap(ledger, ledger->gap_idle + ledger->gap_lost + ledger->gap_blind);
    ledger->running = false;
}

/* Where the ticks stand, by the sample that came soonest of some. */
static void find_phase(struct tick_ledger *ledger, uint64_t late_ns)
{
    ledger->phase_least_ns = least(ledger->phase_least_ns, late_ns);
    ledger->phase_count++;
    if (ledger->phase_count == PHASE_SAMPLES) {
        ledger->tick_ns += ledger->phase_least_ns;
        ledger->phase_count = 0;
        ledger->phase_least_ns = UINT64_MAX;
    }
}

/* The sample's tick becomes the one that is counted from. Returns how many there were to it. */
static uint64_t find_tick(struct tick_ledger *ledger, uint64_t time_ns)
{
    uint64_t divisor = ledger->sampled ? EARLY_DIVISOR : EARLY_FIRST_DIVISOR;
    uint64_t since_ns = less(time_ns, ledger->tick_ns);
    uint64_t ticks = since_ns / ledger->period_ns;
    uint64_t late_ns = since_ns % ledger->period_ns;
    bool early = late_ns >= ledger->period_ns - ledger->period_ns / divisor;
    ticks += early ? 1 : 0;
    /* Two samples are not of one tick, and the first one is the best guess of its own. */
    if (ticks == 0 || early || !ledger->sampled) {
        begin_ticks(ledger, time_ns);
        ledger->sampled = true;
        return ticks == 0 ? 1 : ticks;
    }
    ledger->tick_ns += ticks * ledger->period_ns;
    find_phase(ledger, late_ns);
    return ticks;
}

void tick_ledger_sample(struct tick_ledger *ledger, uint64_t time_ns)
{
    ledger->counts.samples++;
    if (!ledger->running) {
        return;
    }
    if (ledger->throttled && ledger->throttle_sampled) {
        /* The record that ended it was lost: it was a period ago at the latest. */
        tick_ledger_unthrottle(ledger, less(time_ns, ledger->period_ns));
    }
    ledger->throttle_sampled = ledger->throttled;
    time_ns = enter(ledger, time_ns);
    if (ledger->state == TICK_UNSEEN) {
        ledger->state = TICK_BUSY;
        ledger->state_since_ns = time_ns;
    }
    uint64_t judged = ledger->next_tick;
    uint64_t ticks = find_tick(ledger, time_ns);
    uint64_t *judgement = ledger->state == TICK_BLIND ? &ledger->gap_blind : &ledger->gap_idle;
    *judgement = less(*judgement, less(judged, ticks));
    close_gap(ledger, ticks - 1);
}

void tick_ledger_lost(struct tick_ledger *ledger, uint64_t count)
{
    ledger->counts.lost += count;
    ledger->gap_lost += count;
}

void tick_ledger_throttle(struct tick_ledger *ledger, uint64_t time_ns)
{
    time_ns = enter(ledger, time_ns);
    if (ledger->running && !ledger->throttled) {
        ledger->throttled = true;
        ledger->throttle_sampled = false;
        ledger->throttled_since_ns = time_ns;
    }
}

void tick_ledger_unthrottle(struct tick_ledger *ledger, uint64_t time_ns)
{
    time_ns = enter(ledger, time_ns);
    if (!ledger->running) {
        return;
    }
    uint64_t since_ns = ledger->throttled ? ledger->throttled_since_ns : time_ns;
    if (ledger->throttled) {
        end_throttle(ledger, time_ns);
    }
    /* The record of a throttle is a little earlier than the sample of the same tick. */
    close_gap(ledger, ticks_before(ledger, since_ns + ledger->period_ns / EARLY_DIVISOR));
    begin_ticks(ledger, time_ns);
}

void tick_ledger_switch(struct tick_ledger *ledger, uint64_t time_ns, bool was_idle, bool is_idle)
{
    if (!ledger->switches) {
        return;
    }
    if (ledger->state == TICK_UNSEEN) {
        ledger->state = was_idle ? TICK_IDLE : TICK_BUSY;
    }
    (void)enter(ledger, time_ns);
    ledger->state = is_idle ? TICK_IDLE : TICK_BUSY;
}

void tick_ledger_switches_lost(struct tick_ledger *ledger)
{
    ledger->state = TICK_BLIND;
}

void tick_ledger_use_switches(struct tick_ledger *ledger, uint64_t time_ns, bool switches)
{
    (void)enter(ledger, time_ns);
    ledger->switches = switches;
    ledger->state = TICK_BLIND;
}

void tick_ledger_advance(struct tick_ledger *ledger, uint64_t time_ns)
{
    (void)enter(ledger, time_ns);
}

void tick_ledger_tell_idle(struct tick_ledger *ledger, uint64_t idle_ns)
{
    int64_t period_ns = (int64_t)ledger->period_ns;
    int64_t left = ledger->blind_left + (int64_t)ledger->gap_blind;
    int64_t balance_ns = 0;
    if (ledger->blind_ns > 0) {
        balance_ns = ledger->told_balance_ns + (int64_t)idle_ns - (int64_t)ledger->known_idle_ns;
    }
    int64_t ticks = balance_ns / period_ns;
    ticks = ticks < left ? ticks : left;
    if (ticks > 0) {
        ledger->counts.idle_told += (uint64_t)ticks;
        ledger->blind_left -= ticks;
        balance_ns -= ticks * period_ns;
    }
    balance_ns = balance_ns > TOLD_BALANCE_NS ? TOLD_BALANCE_NS : balance_ns;
    ledger->told_balance_ns = balance_ns < -TOLD_BALANCE_NS ? -TOLD_BALANCE_NS : balance_ns;
    ledger->known_idle_ns = 0;
    ledger->blind_ns = 0;
}

void tick_ledger_suspended(struct tick_ledger *ledger, uint64_t time_ns)
{
    ledger->suspended_ns += time_ns;
}

struct tick_counts tick_ledger_counts(const struct tick_ledger *ledger)
{
    struct tick_counts counts = ledger->counts;
    uint64_t throttled_ns = ledger->throttled_ns;
    if (ledger->throttled) {
        throttled_ns += less(ledger->event_ns, ledger->throttled_since_ns);
    }
    counts.throttled = (throttled_ns + ledger->period_ns / 2) / ledger->period_ns;
    counts.idle += ledger->gap_idle + counts.idle_told;
    counts.blind += ledger->gap_blind;
    return counts;
}
