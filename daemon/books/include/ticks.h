/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The ledgers of all sampled CPUs, and the feeds of their switch records: what the drain tells, in
 * the order of its rounds. CPUs are indices into the source's.
 */

#include "cpu_ticks.h"
#include "perf_source.h"
#include "switch_feed.h"

struct ticks;

/* Returned; NULL when there is no memory. `source` is borrowed for their life. */
struct ticks *ticks_new(struct perf_source *source);
struct ticks *ticks_free(struct ticks *ticks);

/* Sampling was enabled, at the started_ns of each CPU that is not absent; or disabled, at its
 * stopped_ns: before what the rings hold is worked off, and after. */
void ticks_start(struct ticks *ticks);
void ticks_end(struct ticks *ticks);
void ticks_close(struct ticks *ticks);
/* One CPU among them has had no ticks since `time_ns`; then its rings are worked off, which they
 * are when both are empty; and from its started_ns on it has ticks again, in new rings. */
void ticks_lose(struct ticks *ticks, size_t cpu_index, uint64_t time_ns);
bool ticks_drained(struct ticks *ticks, size_t cpu_index);
void ticks_leave(struct ticks *ticks, size_t cpu_index);
void ticks_return(struct ticks *ticks, size_t cpu_index);
void ticks_suspended(struct ticks *ticks, uint64_t jump_ns);

/* A round: what there is of switches; each record of a CPU's ring of samples; then its horizon,
 * UINT64_MAX: all that there is. */
void ticks_refresh(struct ticks *ticks);
void ticks_take(struct ticks *ticks, size_t cpu_index, const struct perf_record *record);
void ticks_reach(struct ticks *ticks, size_t cpu_index, uint64_t horizon_ns);

enum switch_wish ticks_wish(struct ticks *ticks, size_t cpu_index, uint64_t horizon_ns);
void ticks_tell_idle(struct ticks *ticks, size_t cpu_index, uint64_t idle_ns);
/* Switch records of all CPUs that could not be parsed. */
uint64_t ticks_bad_count(const struct ticks *ticks);
struct tick_counts ticks_counts(const struct ticks *ticks, size_t cpu_index);
