/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For how long a CPU was offline while sampling was on, and when it went. Nobody tells the moment:
 * the kernel's time running of its event stands still from then on, and so it is where the last
 * reading at which it ran and what it ran since lead to. Times of a suspended machine are no part
 * of it. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

/* The same moment by the clock that goes on while the machine is suspended, and the one that stops.
 */
struct cpu_moment {
    uint64_t boottime_ns;
    uint64_t monotonic_ns;
};

/* Zeroed: sampling is off, and was never on. */
struct cpu_presence {
    bool sampling;
    bool ticking;           /* with sampling: the CPU is there */
    uint64_t off_since_ns;  /* without ticking; CLOCK_MONOTONIC */
    uint64_t offline_ns;    /* that are over */
    struct cpu_moment seen; /* ticking, by its time running */
    uint64_t seen_running_ns;
};

/* Sampling was enabled, on this CPU as well unless it is `absent`. */
void cpu_presence_start(struct cpu_presence *presence, struct cpu_moment now, uint64_t running_ns,
                        bool absent);
void cpu_presence_stop(struct cpu_presence *presence, struct cpu_moment now);

/* The event's time running was read between the two moments. */
void cpu_presence_see(struct cpu_presence *presence, struct cpu_moment before,
                      struct cpu_moment after, uint64_t running_ns);
/* It is found to be offline, its time running standing still. Returns when it went, CLOCK_BOOTTIME.
 */
uint64_t cpu_presence_lose(struct cpu_presence *presence, struct cpu_moment now,
                           uint64_t running_ns);
/* It ticks again. */
void cpu_presence_return(struct cpu_presence *presence, struct cpu_moment now, uint64_t running_ns);

/* As of CLOCK_MONOTONIC's `now_ns`. */
uint64_t cpu_presence_offline_ns(const struct cpu_presence *presence, uint64_t now_ns);
