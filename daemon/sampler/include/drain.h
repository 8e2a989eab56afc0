/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Drains the rings into the process table and the trace: the work of one round of the collector.
 * Uses no thread, no clock and no descriptor.
 */

#include "code_map.h"
#include "command_right.h"
#include "counters.h"
#include "cpu_books.h"
#include "drain_limits.h"
#include "filter.h"
#include "perf_source.h"
#include "process_table.h"
#include "session_config.h"
#include "trace.h"

#include <stdbool.h>
#include <stdint.h>

struct drain;

/* Where samples go: those that the filter wants, into the trace. A sink is named by its index. */
struct drain_sink {
    struct filter *filter; /* of the number that is the sink's index */
    struct trace *trace;
    struct command_right commands; /* that the trace may have */
};

/* All borrowed. */
struct drain_config {
    struct perf_source *source;
    struct cpu_books *books;
    struct process_table *processes;
    struct drain_sink sinks[DRAIN_SINKS_MAX];
    size_t sink_count;
    struct kernel_code *kernel; /* NULL: names of the kernel's later code are not wanted */
    struct code_map *code;      /* NULL with SESSION_UNWIND_FP */
    enum session_unwind unwind;
    uint16_t max_stack_depth; /* user frames */
    size_t held_bytes;        /* for samples that wait */
    uint64_t min_wait_ns; /* shorter waits of threads are summed alone; where the source has any */
};

/* Returned; NULL when there is no memory. */
struct drain *drain_new(const struct drain_config *config);
struct drain *drain_free(struct drain *drain);

/*
 * Note that sampling was enabled, at the started_ns of each present CPU, or disabled, at its
 * stopped_ns. After the end all records in the rings are handled.
 */
void drain_start(struct drain *drain);
void drain_stop(struct drain *drain);

/*
 * A CPU (index into the source's) is found to be offline. When it returns, its rings are drained
 * for some rounds, until they are empty. Then its events and rings are replaced, and it is sampled
 * from its started_ns on if sampling was `enabled`. sideband_feed_gap() notes from when to when its
 * sideband is missing, as soon as the return is known.
 */
void drain_lose_cpu(struct drain *drain, size_t cpu_index, struct clock_moment now);
bool drain_is_empty(struct drain *drain, size_t cpu_index);
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
void drain_prefetch(struct drain *drain);
size_t drain_held(struct drain *drain, uint64_t time_ns);

/* Reads the times of all threads, if the source has waits; true while they are read, which is not
 * for long. */
void drain_read_times(struct drain *drain);
bool drain_is_reading_times(const struct drain *drain);
/* Writes the books of threads. False: there is no room in a sink's trace; call it again. */
bool drain_write_threads(struct drain *drain, size_t sink);

/* Its sideband and readings of /proc (borrowed), for what is not of one round. */
struct sideband_feed;
struct sideband_feed *drain_feed(struct drain *drain);

/* Of the drain and of what it is made of, and of one sink, but not of its trace. */
struct counters drain_counters(struct drain *drain, size_t sink);
/* The books of a CPU (index into the source's) and a sink. What the trace has gathered is neither
 * kept nor dropped before its next poll; after it, received = kept + filtered + dropped. */
struct books_cpu drain_books(const struct drain *drain, size_t sink, size_t cpu_index);
