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
 * What cannot be known is left out, and the books show it as unexplained: ticks after the
 * last sample of a run, and those at blind times that no other source calls idle.
 */
#include "cpu_ticks.h"

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

void cpu_ticks_init(struct cpu_ticks *cpu_ticks, uint64_t period_ns)
{
    assert(period_ns > 0);
    *cpu_ticks = (struct cpu_ticks){.period_ns = period_ns, .end_ns = UINT64_MAX};
}

/* How many ticks stand from tick_ns to just before `time_ns`, without the first. */
static uint64_t ticks_before(const struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    uint64_t since_ns = less(time_ns, cpu_ticks->tick_ns);
    return since_ns == 0 ? 0 : (since_ns - 1) / cpu_ticks->period_ns;
}

/* Judges the ticks of a span to be what the CPU did in it. */
static void judge(struct cpu_ticks *cpu_ticks, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t slack_ns = least(SWITCH_NS_MAX, cpu_ticks->period_ns / SWITCH_DIVISOR);
    uint64_t first = ticks_before(cpu_ticks, less(from_ns, slack_ns)) + 1;
    uint64_t end = ticks_before(cpu_ticks, to_ns) + 1;
    first = first > cpu_ticks->next_tick ? first : cpu_ticks->next_tick;
    if (cpu_ticks->throttled || end <= first) {
        return;
    }
    *(cpu_ticks->state == TICK_IDLE ? &cpu_ticks->gap_idle : &cpu_ticks->gap_blind) += end - first;
    cpu_ticks->next_tick = end;
}

/* The state has lasted up to `time_ns`. */
static void settle(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    uint64_t from_ns = cpu_ticks->state_since_ns;
    if (!cpu_ticks->running || time_ns <= from_ns || cpu_ticks->state == TICK_UNSEEN) {
        return;
    }
    if (cpu_ticks->state == TICK_IDLE) {
        cpu_ticks->known_idle_ns += time_ns - from_ns;
        judge(cpu_ticks, from_ns, time_ns);
    } else if (cpu_ticks->state == TICK_BLIND) {
        cpu_ticks->blind_ns += time_ns - from_ns;
        judge(cpu_ticks, from_ns, time_ns);
    }
    cpu_ticks->state_since_ns = time_ns;
}

/* The clock went on while nothing else did: what is open moves with it. */
static void skip_suspended(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    uint64_t jump_ns = cpu_ticks->suspended_ns;
    if (jump_ns > 0 && less(time_ns, cpu_ticks->event_ns) >= jump_ns) {
        settle(cpu_ticks, cpu_ticks->event_ns);
        cpu_ticks->tick_ns += jump_ns;
        cpu_ticks->state_since_ns += jump_ns;
        cpu_ticks->throttled_since_ns += jump_ns;
        cpu_ticks->suspended_ns = 0;
    }
}

/* Before each event: all that lasts has lasted until then. Returns its time, within the run. */
static uint64_t enter(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    skip_suspended(cpu_ticks, time_ns);
    cpu_ticks->event_ns = least(time_ns, cpu_ticks->end_ns);
    settle(cpu_ticks, cpu_ticks->event_ns);
    return cpu_ticks->event_ns;
}

/* Ends the gap in which `absent` ticks gave no sample. */
static void close_gap(struct cpu_ticks *cpu_ticks, uint64_t absent)
{
    uint64_t unanswered = less(absent, cpu_ticks->gap_idle + cpu_ticks->gap_lost);
    uint64_t blind = least(unanswered, cpu_ticks->gap_blind);
    cpu_ticks->counts.idle += cpu_ticks->gap_idle;
    cpu_ticks->counts.blind += blind;
    cpu_ticks->blind_left += (int64_t)blind;
    cpu_ticks->counts.missed += unanswered - blind;
    if ((absent + 1) * cpu_ticks->period_ns <= TICK_CROWDED_NS) {
        cpu_ticks->counts.crowded += unanswered - blind;
    }
    cpu_ticks->gap_idle = 0;
    cpu_ticks->gap_blind = 0;
    cpu_ticks->gap_lost = 0;
    cpu_ticks->next_tick = 1;
}

/* Ticks begin anew: the first is a period from now. */
static void begin_ticks(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    cpu_ticks->tick_ns = time_ns;
    cpu_ticks->next_tick = 1;
    cpu_ticks->sampled = false;
    cpu_ticks->phase_count = 0;
    cpu_ticks->phase_least_ns = UINT64_MAX;
}

void cpu_ticks_start(struct cpu_ticks *cpu_ticks, uint64_t time_ns, bool switches)
{
    cpu_ticks->running = true;
    cpu_ticks->switches = switches;
    cpu_ticks->end_ns = UINT64_MAX;
    cpu_ticks->event_ns = time_ns;
    cpu_ticks->suspended_ns = 0;
    cpu_ticks->throttled = false;
    cpu_ticks->state = switches ? TICK_UNSEEN : TICK_BLIND;
    cpu_ticks->state_since_ns = time_ns;
    cpu_ticks->known_idle_ns = 0;
    cpu_ticks->blind_ns = 0;
    begin_ticks(cpu_ticks, time_ns);
}

void cpu_ticks_end(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    cpu_ticks->end_ns = time_ns;
}

static void end_throttle(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    cpu_ticks->throttled_ns += less(time_ns, cpu_ticks->throttled_since_ns);
    cpu_ticks->throttled = false;
}

void cpu_ticks_close(struct cpu_ticks *cpu_ticks)
{
    if (!cpu_ticks->running) {
        return;
    }
    /* A CPU that was busy would have told so by a sample, or the loss of one. */
    if (cpu_ticks->state == TICK_UNSEEN) {
        cpu_ticks->state = cpu_ticks->gap_lost == 0 ? TICK_IDLE : TICK_BLIND;
    }
    (void)enter(cpu_ticks, cpu_ticks->end_ns);
    if (cpu_ticks->throttled) {
        end_throttle(cpu_ticks, cpu_ticks->end_ns);
    }
    /* After the last sample nothing is missed, since nothing shows it: only what is known counts.
     */
    close_gap(cpu_ticks, cpu_ticks->gap_idle + cpu_ticks->gap_lost + cpu_ticks->gap_blind);
    cpu_ticks->running = false;
}

/* Where the ticks stand, by the sample that came soonest of some. */
static void find_phase(struct cpu_ticks *cpu_ticks, uint64_t late_ns)
{
    cpu_ticks->phase_least_ns = least(cpu_ticks->phase_least_ns, late_ns);
    cpu_ticks->phase_count++;
    if (cpu_ticks->phase_count == PHASE_SAMPLES) {
        cpu_ticks->tick_ns += cpu_ticks->phase_least_ns;
        cpu_ticks->phase_count = 0;
        cpu_ticks->phase_least_ns = UINT64_MAX;
    }
}

/* The sample's tick becomes the one that is counted from. Returns how many there were to it. */
static uint64_t find_tick(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    uint64_t divisor = cpu_ticks->sampled ? EARLY_DIVISOR : EARLY_FIRST_DIVISOR;
    uint64_t since_ns = less(time_ns, cpu_ticks->tick_ns);
    uint64_t ticks = since_ns / cpu_ticks->period_ns;
    uint64_t late_ns = since_ns % cpu_ticks->period_ns;
    bool early = late_ns >= cpu_ticks->period_ns - cpu_ticks->period_ns / divisor;
    ticks += early ? 1 : 0;
    /* Two samples are not of one tick, and the first one is the best guess of its own. */
    if (ticks == 0 || early || !cpu_ticks->sampled) {
        begin_ticks(cpu_ticks, time_ns);
        cpu_ticks->sampled = true;
        return ticks == 0 ? 1 : ticks;
    }
    cpu_ticks->tick_ns += ticks * cpu_ticks->period_ns;
    find_phase(cpu_ticks, late_ns);
    return ticks;
}

void cpu_ticks_sample(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    cpu_ticks->counts.samples++;
    if (!cpu_ticks->running) {
        return;
    }
    if (cpu_ticks->throttled && cpu_ticks->throttle_sampled) {
        /* The record that ended it was lost: it was a period ago at the latest. */
        cpu_ticks_unthrottle(cpu_ticks, less(time_ns, cpu_ticks->period_ns));
    }
    cpu_ticks->throttle_sampled = cpu_ticks->throttled;
    time_ns = enter(cpu_ticks, time_ns);
    if (cpu_ticks->state == TICK_UNSEEN) {
        cpu_ticks->state = TICK_BUSY;
        cpu_ticks->state_since_ns = time_ns;
    }
    uint64_t judged = cpu_ticks->next_tick;
    uint64_t ticks = find_tick(cpu_ticks, time_ns);
    uint64_t *judgement =
        cpu_ticks->state == TICK_BLIND ? &cpu_ticks->gap_blind : &cpu_ticks->gap_idle;
    *judgement = less(*judgement, less(judged, ticks));
    close_gap(cpu_ticks, ticks - 1);
}

void cpu_ticks_lost(struct cpu_ticks *cpu_ticks, uint64_t count)
{
    cpu_ticks->counts.lost += count;
    cpu_ticks->gap_lost += count;
}

void cpu_ticks_throttle(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    time_ns = enter(cpu_ticks, time_ns);
    if (cpu_ticks->running && !cpu_ticks->throttled) {
        cpu_ticks->throttled = true;
        cpu_ticks->throttle_sampled = false;
        cpu_ticks->throttled_since_ns = time_ns;
    }
}

void cpu_ticks_unthrottle(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    time_ns = enter(cpu_ticks, time_ns);
    if (!cpu_ticks->running) {
        return;
    }
    uint64_t since_ns = cpu_ticks->throttled ? cpu_ticks->throttled_since_ns : time_ns;
    if (cpu_ticks->throttled) {
        end_throttle(cpu_ticks, time_ns);
    }
    /* The record of a throttle is a little earlier than the sample of the same tick. */
    close_gap(cpu_ticks, ticks_before(cpu_ticks, since_ns + cpu_ticks->period_ns / EARLY_DIVISOR));
    begin_ticks(cpu_ticks, time_ns);
}

void cpu_ticks_switch(struct cpu_ticks *cpu_ticks, uint64_t time_ns, bool was_idle, bool is_idle)
{
    if (!cpu_ticks->switches) {
        return;
    }
    if (cpu_ticks->state == TICK_UNSEEN) {
        cpu_ticks->state = was_idle ? TICK_IDLE : TICK_BUSY;
    }
    (void)enter(cpu_ticks, time_ns);
    cpu_ticks->state = is_idle ? TICK_IDLE : TICK_BUSY;
}

void cpu_ticks_switches_lost(struct cpu_ticks *cpu_ticks)
{
    cpu_ticks->state = TICK_BLIND;
}

void cpu_ticks_use_switches(struct cpu_ticks *cpu_ticks, uint64_t time_ns, bool switches)
{
    (void)enter(cpu_ticks, time_ns);
    cpu_ticks->switches = switches;
    cpu_ticks->state = TICK_BLIND;
}

void cpu_ticks_advance(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    (void)enter(cpu_ticks, time_ns);
}

void cpu_ticks_tell_idle(struct cpu_ticks *cpu_ticks, uint64_t idle_ns)
{
    int64_t period_ns = (int64_t)cpu_ticks->period_ns;
    int64_t left = cpu_ticks->blind_left + (int64_t)cpu_ticks->gap_blind;
    int64_t balance_ns = 0;
    if (cpu_ticks->blind_ns > 0) {
        balance_ns =
            cpu_ticks->told_balance_ns + (int64_t)idle_ns - (int64_t)cpu_ticks->known_idle_ns;
    }
    int64_t ticks = balance_ns / period_ns;
    ticks = ticks < left ? ticks : left;
    if (ticks > 0) {
        cpu_ticks->counts.idle_told += (uint64_t)ticks;
        cpu_ticks->blind_left -= ticks;
        balance_ns -= ticks * period_ns;
    }
    balance_ns = balance_ns > TOLD_BALANCE_NS ? TOLD_BALANCE_NS : balance_ns;
    cpu_ticks->told_balance_ns = balance_ns < -TOLD_BALANCE_NS ? -TOLD_BALANCE_NS : balance_ns;
    cpu_ticks->known_idle_ns = 0;
    cpu_ticks->blind_ns = 0;
}

void cpu_ticks_suspended(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    cpu_ticks->suspended_ns += time_ns;
}

struct tick_counts cpu_ticks_counts(const struct cpu_ticks *cpu_ticks)
{
    struct tick_counts counts = cpu_ticks->counts;
    uint64_t throttled_ns = cpu_ticks->throttled_ns;
    if (cpu_ticks->throttled) {
        throttled_ns += less(cpu_ticks->event_ns, cpu_ticks->throttled_since_ns);
    }
    counts.throttled = (throttled_ns + cpu_ticks->period_ns / 2) / cpu_ticks->period_ns;
    counts.idle += cpu_ticks->gap_idle + counts.idle_told;
    counts.blind += cpu_ticks->gap_blind;
    return counts;
}
