/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the rings of sideband and from /proc into the process table, in the order of time. Belongs
 * to the collector thread; of drain.c only.
 */

#include "filter.h"
#include "late_stacks.h"
#include "perf_source.h"
#include "proc_scan.h"
#include "process_table.h"
#include "sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_FEED_RESCAN_NS UINT64_C(1000000000) /* a process is not read again before */

struct process_feed;

/* All borrowed. */
struct process_feed_config {
    struct perf_source *source;
    struct process_table *processes;
    struct proc_scan *scan;
    struct filter *filter;
    struct late_stacks *late; /* NULL where no chains come later */
};

/* Returned; NULL when there is no memory. */
struct process_feed *process_feed_new(const struct process_feed_config *config);
struct process_feed *process_feed_free(struct process_feed *feed);

/* Empties the rings; what they held waits to be applied. Whether they held anything. */
bool process_feed_queue(struct process_feed *feed);
/* Applies what waits up to the horizon, `max` records at the most; `*applied_count` grows by how
 * many. Returns the time up to which everything has been applied. */
uint64_t process_feed_apply(struct process_feed *feed, uint64_t horizon_ns, size_t max,
                            size_t *applied_count);
bool process_feed_has_more(const struct process_feed *feed, uint64_t horizon_ns);
/* Records that wait. */
size_t process_feed_waiting(const struct process_feed *feed);

/* The process of a sample; one that is not known, or only half, is read from /proc first. One that
 * is gone by then has nobody's name, but not that of who had its pid before either. NULL: none. */
struct process *process_feed_find(struct process_feed *feed, const struct sample *sample);
/* Reads a process again of which something seems to be missing, one at a time. */
void process_feed_reread(struct process_feed *feed, struct process *process, uint64_t time_ns);
/* Whether records that were lost may have changed what is known of a process at a time: until it
 * forks, executes or is read anew. */
bool process_feed_is_doubtful(const struct process_feed *feed, const struct process *process,
                              uint64_t time_ns);

/* A CPU (index into the source's) has new rings, empty till now. From the one time to the other its
 * sideband may be missing, as if it were lost. */
void process_feed_gap(struct process_feed *feed, size_t cpu_index, uint64_t from_ns,
                      uint64_t to_ns);
/* Whether sideband was lost since the last call, so that all processes must be read again. */
bool process_feed_take_rescan(struct process_feed *feed);

struct process_feed_counts {
    uint64_t lost;        /* records that had no place here; the kernel's LOST included */
    uint64_t bad_records; /* that could not be parsed */
};
struct process_feed_counts process_feed_counts(const struct process_feed *feed);
