/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The ledgers of all sampled CPUs, and the feeds of their switch records: what the drain tells, in
 * the order of its rounds. CPUs are indices into the source's.
 */

#include "perf_source.h"
#include "switch_feed.h"
#include "tick_ledger.h"

struct tick_accounts;

/* Returned; NULL when there is no memory. `source` is borrowed for their life. */
struct tick_accounts *tick_accounts_new(struct perf_source *source);
struct tick_accounts *tick_accounts_free(struct tick_accounts *accounts);

/* Sampling was enabled, at the started_ns of each CPU that is not absent; or disabled, at its
 * stopped_ns: before what the rings hold is worked off, and after. */
void tick_accounts_start(struct tick_accounts *accounts);
void tick_accounts_end(struct tick_accounts *accounts);
void tick_accounts_close(struct tick_accounts *accounts);
/* One CPU among them has had no ticks since `time_ns`; then its rings are worked off, which they
 * are when both are empty; and from its started_ns on it has ticks again, in new rings. */
void tick_accounts_lose(struct tick_accounts *accounts, size_t cpu_index, uint64_t time_ns);
bool tick_accounts_drained(struct tick_accounts *accounts, size_t cpu_index);
void tick_accounts_leave(struct tick_accounts *accounts, size_t cpu_index);
void tick_accounts_return(struct tick_accounts *accounts, size_t cpu_index);
void tick_accounts_suspended(struct tick_accounts *accounts, uint64_t jump_ns);

/* A round: what there is of switches; each record of a CPU's ring of samples; then its horizon,
 * UINT64_MAX: all that there is. */
void tick_accounts_refresh(struct tick_accounts *accounts);
void tick_accounts_take(struct tick_accounts *accounts, size_t cpu_index,
                        const struct perf_record *record);
void tick_accounts_reach(struct tick_accounts *accounts, size_t cpu_index, uint64_t horizon_ns);

enum switch_wish tick_accounts_wish(struct tick_accounts *accounts, size_t cpu_index,
                                    uint64_t horizon_ns);
void tick_accounts_tell_idle(struct tick_accounts *accounts, size_t cpu_index, uint64_t idle_ns);
/* Switch records of all CPUs that could not be parsed. */
uint64_t tick_accounts_bad_count(const struct tick_accounts *accounts);
struct tick_counts tick_accounts_counts(const struct tick_accounts *accounts, size_t cpu_index);
