/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the collector asks the kernel of each sampled CPU: its counts, for how long it idled, and
 * whether it is there. Of collector.c only.
 */

#include "cpu_presence.h"
#include "drain.h"
#include "perf_source.h"

struct collector_cpus;

/* Returned; NULL when there is no memory. `source` is borrowed for their life. */
struct collector_cpus *collector_cpus_new(const struct perf_source *source);
struct collector_cpus *collector_cpus_free(struct collector_cpus *cpus);

struct cpu_moment collector_cpus_now(void);

/* Sampling was enabled, at each CPU's started_ns, or disabled, at its stopped_ns. */
void collector_cpus_start(struct collector_cpus *cpus, struct drain *drain);
void collector_cpus_stop(struct collector_cpus *cpus, struct drain *drain);

/* Reads the counts, as they were at the horizon: what was counted since is not drained yet. */
void collector_cpus_read(struct collector_cpus *cpus, uint64_t horizon_ns);
/* For how long the CPUs idled, to whom no switch records tell it; now and then. */
void collector_cpus_tell_idle(struct collector_cpus *cpus, struct drain *drain, uint64_t time_ns);

/* One CPU is found to be offline. Returns when it went, CLOCK_BOOTTIME. */
uint64_t collector_cpus_lose(struct collector_cpus *cpus, size_t index);
/* It is back, and sampled from its started_ns on. */
void collector_cpus_return(struct collector_cpus *cpus, size_t index);

const char *collector_cpus_idle_source(const struct collector_cpus *cpus);
/* As of the last reading. */
struct perf_count collector_cpus_count(const struct collector_cpus *cpus, size_t index);
uint64_t collector_cpus_offline_ns(const struct collector_cpus *cpus, size_t index,
                                   uint64_t monotonic_ns);
