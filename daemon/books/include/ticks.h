/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The cpu_ticks of all sampled CPUs, with the feeds of their switch records. The drain calls it, in
 * the order of its rounds. A `cpu_index` is an index into the source's CPUs.
 */

#include "cpu_ticks.h"
#include "perf_source.h"
#include "switch_feed.h"

struct ticks;

/* Returned: ticks_free(). NULL when there is no memory. `source` is borrowed meanwhile. */
struct ticks *ticks_new(struct perf_source *source);
struct ticks *ticks_free(struct ticks *ticks);

/* Sampling was enabled, at the started_ns of each CPU that is not absent. */
void ticks_start(struct ticks *ticks);
/* Sampling was disabled, at each CPU's stopped_ns: called before the rings are drained for the last
 * time, */
void ticks_end(struct ticks *ticks);
/* and after. */
void ticks_close(struct ticks *ticks);
/* A CPU that goes offline and comes back: it has had no ticks since `time_ns`; true when its old
 * rings are empty; it leaves them; its ticks begin again at its new started_ns, in new rings. */
void ticks_lose(struct ticks *ticks, size_t cpu_index, uint64_t time_ns);
bool ticks_drained(struct ticks *ticks, size_t cpu_index);
void ticks_leave(struct ticks *ticks, size_t cpu_index);
void ticks_return(struct ticks *ticks, size_t cpu_index);
void ticks_suspended(struct ticks *ticks, uint64_t jump_ns);

/* A round: it begins; each record of a CPU's sample ring; a CPU's records up to the horizon are
 * taken (UINT64_MAX: all of them). */
void ticks_refresh(struct ticks *ticks);
void ticks_take(struct ticks *ticks, size_t cpu_index, const struct perf_record *record);
void ticks_reach(struct ticks *ticks, size_t cpu_index, uint64_t horizon_ns);

enum switch_wish ticks_wish(struct ticks *ticks, size_t cpu_index, uint64_t horizon_ns);
void ticks_tell_idle(struct ticks *ticks, size_t cpu_index, uint64_t idle_ns);
/* Switch records of all CPUs that could not be parsed. */
uint64_t ticks_bad_count(const struct ticks *ticks);
struct tick_counts ticks_counts(const struct ticks *ticks, size_t cpu_index);
