/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the rings of sideband and from /proc into the process table, in the order of time. Belongs
 * to the collector thread; of drain.c only.
 */

#include "deferred_write.h"
#include "filter.h"
#include "kernel_code.h"
#include "perf_source.h"
#include "process_table.h"
#include "sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sideband_feed;

/* All borrowed. */
struct sideband_feed_config {
    struct perf_source *source;
    struct process_table *processes;
    struct filter *filter;
    struct deferred_write *late; /* NULL where no chains come later */
    struct kernel_code *kernel;  /* NULL: not wanted */
};

/* Returned; NULL when there is no memory. */
struct sideband_feed *sideband_feed_new(const struct sideband_feed_config *config);
struct sideband_feed *sideband_feed_free(struct sideband_feed *feed);

/* Empties the rings; what they held waits to be applied. Whether they held anything. */
bool sideband_feed_queue(struct sideband_feed *feed);
/* Applies what waits up to the horizon, `max` records at the most; `*applied_count` grows by how
 * many. Returns the time up to which everything has been applied. */
uint64_t sideband_feed_apply(struct sideband_feed *feed, uint64_t horizon_ns, size_t max,
                             size_t *applied_count);
bool sideband_feed_has_more(const struct sideband_feed *feed, uint64_t horizon_ns);
/* Records that wait. */
size_t sideband_feed_waiting(const struct sideband_feed *feed);

/*
 * The process of a sample; one that is not known, or only half, has to be read from /proc first:
 * `*ret_awaited` says that the reading is on its way, and that the sample had better wait for it.
 * One that is gone by then has nobody's name, but not that of who had its pid before either. NULL:
 * none, or not yet. With `settle` nothing is awaited, and it is as if nobody knew.
 */
struct process *sideband_feed_find(struct sideband_feed *feed, const struct sample *sample,
                                   bool settle, bool *ret_awaited);
/* Asks whose a process is, where the filter wants to know. Returns whether that is awaited, since
 * nothing is known of it. */
bool sideband_feed_identify(struct sideband_feed *feed, struct process *process, uint64_t time_ns);
/* Has a process read again of which something seems to be missing. */
void sideband_feed_reread(struct sideband_feed *feed, struct process *process, uint64_t time_ns);
/* Whether records that were lost may have changed what is known of a process at a time: until it
 * forks, executes or is read anew. */
bool sideband_feed_is_doubtful(const struct sideband_feed *feed, const struct process *process,
                               uint64_t time_ns);

/*
 * Whether a process may have been another program at the time of a sample: a CPU was there without
 * its sideband, and neither a record nor a reading of /proc has told since. Then it has no name at
 * that time.
 */
bool sideband_feed_disown(struct sideband_feed *feed, struct process *process,
                          const struct sample *sample);

/* A CPU (index into the source's, as below) works no more since `time_ns`. */
void sideband_feed_lose(struct sideband_feed *feed, size_t cpu_index, uint64_t time_ns);
/* A CPU has come back: from the one time, or since it was lost, to the other its sideband is
 * missing, as if it were lost. */
void sideband_feed_gap(struct sideband_feed *feed, size_t cpu_index, uint64_t from_ns,
                       uint64_t to_ns);
/* Its rings are new, empty till `time_ns`. */
void sideband_feed_renew(struct sideband_feed *feed, size_t cpu_index, uint64_t time_ns);
/* Whether sideband was lost since the last call, so that all processes must be read again, or a
 * walk could not read them. */
bool sideband_feed_take_rescan(struct sideband_feed *feed);
/* Has all of /proc read, unless that is under way. */
void sideband_feed_walk(struct sideband_feed *feed);
bool sideband_feed_is_walking(const struct sideband_feed *feed);
/* Whether readings of /proc have come since the last call. */
bool sideband_feed_take_news(struct sideband_feed *feed);

/* With those of its readings of /proc. */
struct counters sideband_feed_counters(const struct sideband_feed *feed);
/* The first process whose reading was given up, 0: none. */
int32_t sideband_feed_hung_pid(const struct sideband_feed *feed);
