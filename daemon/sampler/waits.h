/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The way of a wait into the trace. Samples of switches, switch records of all CPUs and readings of
 * /proc are merged by time into the wait_table; a wait that has ended becomes a sample of the event
 * `off-cpu` or `preempted`, whose weight is its length in ns, and that of waits that it stands for.
 * Belongs to the collector thread.
 */

#include "books.h"
#include "counters.h"
#include "perf_source.h"
#include "process_table.h"
#include "resolver.h"
#include "sideband_feed.h"
#include "sink.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct waits;

/* Handles a sample of a switch, whose `wait` is set: waits_resolve() follows, at once or later. */
typedef void (*waits_take_fn)(size_t cpu_index, const struct perf_record *record, void *userdata);

/* All borrowed. */
struct waits_config {
    struct perf_source *source;
    struct process_table *processes;
    struct sideband_feed *feed;
    const struct sinks *sinks;
    uint64_t min_wait_ns; /* shorter ones are summed alone */
    waits_take_fn take;
    void *userdata;
};

/* Returned; NULL when there is no memory. */
struct waits *waits_new(const struct waits_config *config);
struct waits *waits_free(struct waits *waits);

/* How far a CPU's switch records are read here; borrowed. */
const struct perf_ring *waits_switches(const struct waits *waits, size_t cpu_index);

/* A run begins, and ends; before the end all records are merged. */
void waits_start(struct waits *waits, uint64_t time_ns);
void waits_stop(struct waits *waits, uint64_t time_ns);
/* A CPU's rings are gone, and have been replaced. */
void waits_lose_cpu(struct waits *waits, size_t cpu_index);
void waits_return_cpu(struct waits *waits, size_t cpu_index);

/* In a round: reads how far the kernel has written, when the switch rings were looked at; merges
 * what is up to a time, any number of times, and writes the waits that have ended. */
void waits_refresh(struct waits *waits);
void waits_merge(struct waits *waits, uint64_t horizon_ns);
/* The switch records of a CPU are off, for there were too many, from a time on that is not merged
 * yet; up to one that has come by now, or is UINT64_MAX. */
void waits_hold(struct waits *waits, size_t cpu_index, uint64_t from_ns, uint64_t to_ns);
/* Adapts what is sampled of each CPU's switches to what that costs. */
void waits_adapt(struct waits *waits, uint64_t time_ns);
/* Writes waits whose origin has come since. */
void waits_write(struct waits *waits);
void waits_resolve(struct waits *waits, const struct perf_record *record,
                   const struct resolved *resolved);

/* Reads the times of all threads, for the books of each: when a run begins, and before it ends. */
void waits_read_times(struct waits *waits, bool is_last);
bool waits_are_reading(const struct waits *waits);

/* Fills in a line of the books of a CPU: of waits of a kind, in the order of their events. */
void waits_count(const struct waits *waits, size_t cpu_index, size_t kind,
                 struct books_event *line);
/* Of the session. */
struct counters waits_counters(const struct waits *waits);
/* Writes the books of the threads that a sink wants into its trace. False: there is no room; call
 * it again. */
bool waits_write_threads(struct waits *waits, size_t sink);
