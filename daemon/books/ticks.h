/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Accounts for each tick of one CPU. The input is the CPU's samples, losses, throttles and switches
 * in the order of their time. The result is how many ticks fell into idle time, how many were
 * throttled, and how many are missing without a cause. Constant memory, constant time. Pure.
 *
 * The kernel's timer is periodic, so the ticks between two samples are known to the microsecond.
 * With exclude_idle the timer goes on while the CPU is idle, and writes no samples.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Two samples are this close, and ticks between them have no sample: then taking samples took too
 * long. A hypervisor does not take a CPU away for so short a time.
 */
#define TICK_CROWDED_NS UINT64_C(100000)

struct tick_counts {
    uint64_t samples;
    uint64_t lost; /* by LOST records */
    uint64_t throttled;
    uint64_t missed;    /* between samples, without a cause */
    uint64_t crowded;   /* of the missed: between samples within TICK_CROWDED_NS */
    uint64_t idle;      /* with idle_told */
    uint64_t idle_told; /* by ticks_tell_idle() */
    uint64_t blind;     /* ticks without a sample at times that no switch record covers; they
                         * become idle_told, or else remain unexplained */
};

/* What the CPU does, by its switch records. */
enum tick_state {
    TICK_UNSEEN, /* no record since the start */
    TICK_BUSY,
    TICK_IDLE,
    TICK_BLIND, /* records were lost, or are switched off */
};

struct ticks {
    uint64_t period_ns;
    struct tick_counts counts; /* of closed gaps */
    bool running;
    bool switches;     /* switch records are on */
    bool sampled;      /* tick_ns is that of a sample */
    uint64_t end_ns;   /* when this run ends; UINT64_MAX: not known yet */
    uint64_t event_ns; /* the time of the last event */

    /* The open gap: from the tick of the last sample on. */
    uint64_t tick_ns;
    uint64_t next_tick; /* ticks after tick_ns, from 1; those before it are accounted for */
    uint64_t gap_idle;
    uint64_t gap_blind;
    uint64_t gap_lost;

    enum tick_state state;
    uint64_t state_since_ns; /* ticks are accounted for up to here */

    bool throttled;
    bool throttle_sampled; /* the sample of the throttled tick has come */
    uint64_t throttled_since_ns;
    uint64_t throttled_ns;

    uint64_t phase_least_ns; /* the least time from a tick to its sample */
    uint32_t phase_count;

    uint64_t suspended_ns; /* the clock jumps by this, in the next gap that is as long */

    /* Since the last ticks_tell_idle(). */
    uint64_t known_idle_ns;
    uint64_t blind_ns;
    int64_t told_balance_ns; /* told, and not yet counted as ticks */
    int64_t blind_left;      /* ticks of `blind` without an explanation */
};

void ticks_init(struct ticks *ticks, uint64_t period_ns);

/* Sampling was enabled, just before `time_ns`. `switches`: switch records tell of idleness. */
void ticks_start(struct ticks *ticks, uint64_t time_ns, bool switches);
/* Sampling was disabled at `time_ns`; events from before may still come. */
void ticks_end(struct ticks *ticks, uint64_t time_ns);
/* All events have come: the open gap ends at ticks_end()'s time. */
void ticks_close(struct ticks *ticks);

void ticks_sample(struct ticks *ticks, uint64_t time_ns);
void ticks_lost(struct ticks *ticks, uint64_t count);
void ticks_throttle(struct ticks *ticks, uint64_t time_ns);
void ticks_unthrottle(struct ticks *ticks, uint64_t time_ns);
/* The CPU went from one task to another; either may be the idle task. */
void ticks_switch(struct ticks *ticks, uint64_t time_ns, bool was_idle, bool is_idle);
/* Records after the last ticks_switch() were lost, up to the next one. */
void ticks_switches_lost(struct ticks *ticks);
/* From `time_ns` on switch records are off, or on again. */
void ticks_use_switches(struct ticks *ticks, uint64_t time_ns, bool switches);
/* There are no other events up to `time_ns`. */
void ticks_advance(struct ticks *ticks, uint64_t time_ns);

/*
 * Another source measured for how long the CPU was idle since the last call, or the start. Idle
 * time by switch records is subtracted; the rest was at times that they do not cover.
 */
void ticks_tell_idle(struct ticks *ticks, uint64_t idle_ns);

/*
 * The clock of all these times went on by `time_ns` while the machine was suspended, and the timer
 * stood still. That time does not count.
 */
void ticks_suspended(struct ticks *ticks, uint64_t time_ns);

/* As of the last event, with the open gap. */
struct tick_counts ticks_counts(const struct ticks *ticks);
