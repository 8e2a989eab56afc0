/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the rings into the process table and the trace: what one round of the collector does with
 * what the kernel has written. Knows no thread, no clock and no descriptor.
 */

#include "code_map.h"
#include "counters.h"
#include "cpu_ticks.h"
#include "filter.h"
#include "perf_source.h"
#include "process_table.h"
#include "session_config.h"
#include "switch_feed.h"
#include "trace.h"

#include <stdbool.h>
#include <stdint.h>

struct drain;

/* All borrowed. */
struct drain_config {
    struct perf_source *source;
    struct process_table *processes;
    struct filter *filter;
    struct trace *trace;
    struct kernel_code *kernel; /* NULL: names of the kernel's later code are not wanted */
    struct code_map *code;      /* NULL with SESSION_UNWIND_FP */
    enum session_unwind unwind;
    uint16_t max_stack_depth; /* user frames */
};

struct drain_cpu_counts {
    uint64_t received; /* and not held */
    uint64_t kept;
    uint64_t filtered;
    uint64_t dropped;
    struct tick_counts ticks;
};

/* Returned; NULL when there is no memory. */
struct drain *drain_new(const struct drain_config *config);
struct drain *drain_free(struct drain *drain);

/*
 * Sampling was enabled, at the started_ns of each CPU that is not absent, or disabled, at its
 * stopped_ns: then all that the rings hold is worked off. In between, the clock jumped by what the
 * machine was suspended for.
 */
void drain_start(struct drain *drain);
void drain_stop(struct drain *drain);
void drain_suspended(struct drain *drain, uint64_t jump_ns);

/*
 * A CPU (index into the source's) went offline, and has had no ticks since `time_ns`. When it comes
 * back: once its rings are empty, which they are after some rounds, it is left; its events and
 * rings are replaced; and it is there again, from its started_ns on if sampling was `enabled`. As
 * soon as it is known to come back, drain_gap() tells from when to when its sideband is missing.
 */
void drain_lose_cpu(struct drain *drain, size_t cpu_index, uint64_t time_ns);
bool drain_is_empty(struct drain *drain, size_t cpu_index);
void drain_leave_cpu(struct drain *drain, size_t cpu_index);
void drain_gap(struct drain *drain, size_t cpu_index, uint64_t from_ns, uint64_t to_ns);
void drain_return_cpu(struct drain *drain, size_t cpu_index, bool enabled, uint64_t gap_to_ns);

/* Empties the sideband's rings, between the rounds that handle samples. While there are any, only a
 * bit of what is up to the horizon is applied; the rest waits for the samples that lie before it.
 */
void drain_sideband(struct drain *drain, uint64_t horizon_ns);
/* Whether so much of it waits that drain_all() is due. */
bool drain_is_pressed(const struct drain *drain);
/* Whether none had come when the rings were emptied last. */
bool drain_is_quiet(const struct drain *drain);
/* Everything up to the horizon, in the order of time; UINT64_MAX: all that there is. */
void drain_all(struct drain *drain, uint64_t horizon_ns);

/*
 * Asks for the tables of all that is known to be mapped. Held samples are taken up as what they
 * wait for comes, a table or what /proc says of their process, or when they have waited for
 * DRAIN_HELD_NS at `time_ns`; call it in every round. Returns how many are held still.
 */
#define DRAIN_HELD_NS UINT64_C(2000000000)
void drain_prefetch(struct drain *drain);
size_t drain_held(struct drain *drain, uint64_t time_ns);

/* Of the switch event of one CPU (index into the source's): to be done after drain_all(). */
enum switch_wish drain_switch_wish(struct drain *drain, size_t cpu_index, uint64_t horizon_ns);
/* Another source says for how long that CPU idled since the last call, or the start. */
void drain_tell_idle(struct drain *drain, size_t cpu_index, uint64_t idle_ns);

/* Whether sideband was lost since the last call, so that all processes must be read again, or a
 * walk could not read them. */
bool drain_take_rescan(struct drain *drain);
/* Has all of /proc read while rounds go on, unless that is under way. */
void drain_walk(struct drain *drain);
bool drain_is_walking(const struct drain *drain);

/* Of the drain and of what it is made of, but the trace; borrowed until the next call. */
const struct counters *drain_counters(struct drain *drain);
/* The first process whose reading was given up, 0: none. */
int32_t drain_hung_pid(const struct drain *drain);
/* One element for each CPU of the source, in its order. What the trace has gathered is neither kept
 * nor dropped before its next poll; after it, received = kept + filtered + dropped. */
const struct drain_cpu_counts *drain_cpu_counts(struct drain *drain);
