/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Drains the rings into the process table and the trace: the work of one round of the collector.
 * Uses no thread, no clock and no descriptor.
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
    size_t held_bytes;        /* for samples that wait */
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
 * Note that sampling was enabled, at the started_ns of each present CPU, or disabled, at its
 * stopped_ns, or that the machine was suspended for a time. After the end all records in the rings
 * are handled.
 */
void drain_start(struct drain *drain);
void drain_stop(struct drain *drain);
void drain_suspended(struct drain *drain, uint64_t jump_ns);

/*
 * A CPU (index into the source's) went offline, and has had no ticks since `time_ns`. When it
 * returns, its rings are drained for some rounds, until they are empty. Then its events and rings
 * are replaced, and it is sampled from its started_ns on if sampling was `enabled`. drain_gap()
 * notes from when to when its sideband is missing, as soon as the return is known.
 */
void drain_lose_cpu(struct drain *drain, size_t cpu_index, uint64_t time_ns);
bool drain_is_empty(struct drain *drain, size_t cpu_index);
void drain_leave_cpu(struct drain *drain, size_t cpu_index);
void drain_gap(struct drain *drain, size_t cpu_index, uint64_t from_ns, uint64_t to_ns);
void drain_return_cpu(struct drain *drain, size_t cpu_index, bool enabled, uint64_t gap_to_ns);

/* Empties the sideband rings, between the rounds that handle samples. While samples wait, only some
 * of the records up to the horizon are applied: the rest must not pass older samples. */
void drain_sideband(struct drain *drain, uint64_t horizon_ns);
/* True when so many sideband records wait that drain_all() is due. */
bool drain_is_pressed(const struct drain *drain);
/* True when the sideband rings were empty at the last look. */
bool drain_is_quiet(const struct drain *drain);
/* Handles all records up to the horizon, in the order of time; UINT64_MAX: all records. */
void drain_all(struct drain *drain, uint64_t horizon_ns);

/*
 * drain_prefetch() requests the tables of all known mappings. drain_held() handles the waiting
 * samples whose table or reading of /proc has come, and those that have waited for DRAIN_HELD_NS at
 * `time_ns`; call it in every round. It returns how many still wait.
 */
#define DRAIN_HELD_NS UINT64_C(2000000000)
void drain_prefetch(struct drain *drain);
size_t drain_held(struct drain *drain, uint64_t time_ns);

/* What to do about the switch event of one CPU (index into the source's), after drain_all(). */
enum switch_wish drain_switch_wish(struct drain *drain, size_t cpu_index, uint64_t horizon_ns);
/* Adds the idle time of a CPU since the last call or the start, by another source. */
void drain_tell_idle(struct drain *drain, size_t cpu_index, uint64_t idle_ns);

/* True when all processes must be read again: sideband was lost since the last call, or a walk
 * failed. */
bool drain_take_rescan(struct drain *drain);
/* Begins a walk of /proc beside the rounds, unless one is under way. */
void drain_walk(struct drain *drain);
bool drain_is_walking(const struct drain *drain);

/* Of the drain and of what it is made of, but the trace; borrowed until the next call. */
const struct counters *drain_counters(struct drain *drain);
/* The first process whose reading was given up; 0: none. */
int32_t drain_hung_pid(const struct drain *drain);
/* One element for each CPU of the source, in its order. What the trace has gathered is neither kept
 * nor dropped before its next poll; after it, received = kept + filtered + dropped. */
const struct drain_cpu_counts *drain_cpu_counts(struct drain *drain);
