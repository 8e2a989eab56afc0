/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the ticks of one CPU went: told of its samples, losses, throttles and switches in the order
 * of their time, it says which ticks passed in idleness, which were throttled, and which are
 * missing without a cause. Constant memory, constant time. Pure.
 *
 * The kernel's timer is periodic, so the ticks between two samples are known to the microsecond;
 * with exclude_idle the timer goes on while the CPU idles, and writes nothing.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Samples that are this close, with ticks between them that have none, were held up by the samples
 * themselves: no hypervisor takes a CPU away for so short a time.
 */
#define TICK_CROWDED_NS UINT64_C(100000)

struct tick_counts {
    uint64_t samples; /* that came */
    uint64_t lost;    /* as LOST records told */
    uint64_t throttled;
    uint64_t missed;    /* between samples, and nothing says why */
    uint64_t crowded;   /* of them: of samples that came within TICK_CROWDED_NS of each other */
    uint64_t idle;      /* idle_told included */
    uint64_t idle_told; /* by cpu_ticks_tell_idle() */
    uint64_t blind;     /* ticks without a sample at times of which no switch record tells; they
                         * are idle_told, or else remain unexplained */
};

/* What the CPU does by its switch records. */
enum tick_state {
    TICK_UNSEEN, /* nothing has been heard since the start */
    TICK_BUSY,
    TICK_IDLE,
    TICK_BLIND, /* records are lost, or there are none */
};

struct cpu_ticks {
    uint64_t period_ns;
    struct tick_counts counts; /* of closed gaps */
    bool running;
    bool switches;     /* switch records are to be expected */
    bool sampled;      /* tick_ns is that of a sample */
    uint64_t end_ns;   /* where this run ends; UINT64_MAX: not known yet */
    uint64_t event_ns; /* the time of the last event */

    /* The gap that is open: from a tick, that of the last sample, on. */
    uint64_t tick_ns;
    uint64_t next_tick; /* ticks after tick_ns, from 1; those before it have been judged */
    uint64_t gap_idle;
    uint64_t gap_blind;
    uint64_t gap_lost;

    enum tick_state state;
    uint64_t state_since_ns; /* judged up to here */

    bool throttled;
    bool throttle_sampled; /* the sample of the tick that was throttled has come */
    uint64_t throttled_since_ns;
    uint64_t throttled_ns;

    uint64_t phase_least_ns; /* how late samples come after their tick, at least */
    uint32_t phase_count;

    uint64_t suspended_ns; /* that the clock will jump by, in the next gap that is as long */

    /* Since the last cpu_ticks_tell_idle(). */
    uint64_t known_idle_ns;
    uint64_t blind_ns;
    int64_t told_balance_ns; /* told, and not yet in ticks */
    int64_t blind_left;      /* ticks of `blind` without an explanation */
};

void cpu_ticks_init(struct cpu_ticks *ticks, uint64_t period_ns);

/* Sampling was enabled, just before `time_ns`. `switches`: switch records tell of idleness. */
void cpu_ticks_start(struct cpu_ticks *ticks, uint64_t time_ns, bool switches);
/* Sampling was disabled at `time_ns`; events may still come, and count up to then. */
void cpu_ticks_end(struct cpu_ticks *ticks, uint64_t time_ns);
/* All events have come: what is open ends at cpu_ticks_end()'s time. */
void cpu_ticks_close(struct cpu_ticks *ticks);

void cpu_ticks_sample(struct cpu_ticks *ticks, uint64_t time_ns);
void cpu_ticks_lost(struct cpu_ticks *ticks, uint64_t count);
void cpu_ticks_throttle(struct cpu_ticks *ticks, uint64_t time_ns);
void cpu_ticks_unthrottle(struct cpu_ticks *ticks, uint64_t time_ns);
/* From a task to another, either may be idle: before and after. */
void cpu_ticks_switch(struct cpu_ticks *ticks, uint64_t time_ns, bool was_idle, bool is_idle);
/* Since the last cpu_ticks_switch() records are missing; the next one ends that. */
void cpu_ticks_switches_lost(struct cpu_ticks *ticks);
/* From here on there are none, or there are again. */
void cpu_ticks_use_switches(struct cpu_ticks *ticks, uint64_t time_ns, bool switches);
/* Nothing else happens up to `time_ns`. */
void cpu_ticks_advance(struct cpu_ticks *ticks, uint64_t time_ns);

/*
 * Another source says for how long the CPU idled since the last call, or the start. What the switch
 * records tell of that is taken off; the rest was in the times of which they do not tell.
 */
void cpu_ticks_tell_idle(struct cpu_ticks *ticks, uint64_t idle_ns);

/*
 * The clock of all these times was found to have gone on by `time_ns` while the machine, and the
 * timer with it, stood still. It counts as no time at all.
 */
void cpu_ticks_suspended(struct cpu_ticks *ticks, uint64_t time_ns);

/* As of the last event, the open gap included. */
struct tick_counts cpu_ticks_counts(const struct cpu_ticks *ticks);
