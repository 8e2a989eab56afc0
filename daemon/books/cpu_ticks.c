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
#include "cpu_ticks.h"

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

/* The number of ticks after tick_ns and before `time_ns`. */
static uint64_t ticks_before(const struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    uint64_t since_ns = less(time_ns, cpu_ticks->tick_ns);
    return since_ns == 0 ? 0 : (since_ns - 1) / cpu_ticks->period_ns;
}

/* Counts the ticks of a span by what the CPU did in it. */
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

/* The state lasted up to `time_ns`. */
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

/* The clock jumped: the open gap and span move with it. */
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

/* To be called before each event: the state lasted until then. Returns the event's time, cut to the
 * run. */
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

/* The ticks of the open gap that were due before the run ended, or the throttle began. */
static uint64_t ticks_due(const struct cpu_ticks *cpu_ticks)
{
    uint64_t slack_ns = cpu_ticks->period_ns / EARLY_DIVISOR;
    return ticks_before(cpu_ticks, cpu_ticks->throttled ? cpu_ticks->throttled_since_ns + slack_ns
                                                        : less(cpu_ticks->end_ns, slack_ns));
}

void cpu_ticks_close(struct cpu_ticks *cpu_ticks)
{
    if (!cpu_ticks->running) {
        return;
    }
    /* A busy CPU would have had a sample, or the loss of one. */
    if (cpu_ticks->state == TICK_UNSEEN) {
        cpu_ticks->state = cpu_ticks->gap_lost == 0 ? TICK_IDLE : TICK_BLIND;
    }
    (void)enter(cpu_ticks, cpu_ticks->end_ns);
    uint64_t explained = cpu_ticks->gap_idle + cpu_ticks->gap_lost + cpu_ticks->gap_blind;
    uint64_t due = ticks_due(cpu_ticks);
    if (cpu_ticks->throttled) {
        end_throttle(cpu_ticks, cpu_ticks->end_ns);
    }
    close_gap(cpu_ticks, due > explained ? due : explained);
    cpu_ticks->running = false;
}

/* The phase of the ticks, by the earliest of some samples. */
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

/* The sample's tick becomes tick_ns. Returns how many ticks there were from the last one to it. */
static uint64_t find_tick(struct cpu_ticks *cpu_ticks, uint64_t time_ns)
{
    uint64_t divisor = cpu_ticks->sampled ? EARLY_DIVISOR : EARLY_FIRST_DIVISOR;
    uint64_t since_ns = less(time_ns, cpu_ticks->tick_ns);
    uint64_t ticks = since_ns / cpu_ticks->period_ns;
    uint64_t late_ns = since_ns % cpu_ticks->period_ns;
    bool early = late_ns >= cpu_ticks->period_ns - cpu_ticks->period_ns / divisor;
    ticks += early ? 1 : 0;
    /* Two samples are not of one tick, and the first sample is the best guess of its tick. */
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
        /* The UNTHROTTLE record was lost: it was a period ago at the latest. */
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
    /* A THROTTLE record is a little earlier than the sample of the same tick. */
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
