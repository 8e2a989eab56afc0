/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Measures for how long a CPU was offline while sampling was on, and when it went offline. The
 * kernel does not report that moment. The time running of the CPU's event stands still from then
 * on, so the moment is that of the last reading plus the time run since. Time in which the machine
 * was suspended does not count. Pure.
 */

#include "clock.h"

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: sampling is off, and was never on. */
struct cpu_presence {
    bool sampling;
    bool ticking;             /* with `sampling`: the CPU is online */
    uint64_t off_since_ns;    /* without `ticking`; CLOCK_MONOTONIC */
    uint64_t offline_ns;      /* the sum of the times offline that have ended */
    struct clock_moment seen; /* the last moment at which its time running had grown */
    uint64_t seen_running_ns;
};

/* Sampling was enabled, on this CPU as well unless it is `absent`. */
void cpu_presence_start(struct cpu_presence *presence, struct clock_moment now, uint64_t running_ns,
                        bool absent);
void cpu_presence_stop(struct cpu_presence *presence, struct clock_moment now);

/* The event's time running was read between the two moments. */
void cpu_presence_see(struct cpu_presence *presence, struct clock_moment before,
                      struct clock_moment after, uint64_t running_ns);
/* The CPU is found to be offline. Returns when it went offline, CLOCK_BOOTTIME. */
uint64_t cpu_presence_lose(struct cpu_presence *presence, struct clock_moment now,
                           uint64_t running_ns);
/* The CPU is online again. */
void cpu_presence_return(struct cpu_presence *presence, struct clock_moment now,
                         uint64_t running_ns);

/* As of CLOCK_MONOTONIC's `now_ns`. */
uint64_t cpu_presence_offline_ns(const struct cpu_presence *presence, uint64_t now_ns);
