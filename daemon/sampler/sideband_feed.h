/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Applies sideband records and readings of /proc to the process table, in the order of time.
 * Belongs to the collector thread; only drain.c uses it.
 */

#include "cgroup_table.h"
#include "filter.h"
#include "kernel_code.h"
#include "perf_source.h"
#include "proc_feed.h"
#include "process_table.h"
#include "sample.h"
#include "sink.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sideband_feed;

/* All borrowed. */
struct sideband_feed_config {
    struct perf_source *source;
    struct process_table *processes;
    const struct sinks *sinks;
    struct kernel_code *kernel; /* NULL: not wanted */
};

/* Returned; NULL when there is no memory. */
struct sideband_feed *sideband_feed_new(const struct sideband_feed_config *config);
struct sideband_feed *sideband_feed_free(struct sideband_feed *feed);

/* Moves the records of the rings into the queue. True: there were some. */
bool sideband_feed_queue(struct sideband_feed *feed);
/* Applies at most `max` queued records up to the horizon, and adds their number to
 * `*applied_count`. Returns the time up to which all records are applied. */
uint64_t sideband_feed_apply(struct sideband_feed *feed, uint64_t horizon_ns, size_t max,
                             size_t *applied_count);
bool sideband_feed_has_more(const struct sideband_feed *feed, uint64_t horizon_ns);
/* Records that wait. */
size_t sideband_feed_waiting(const struct sideband_feed *feed);

/*
 * The process of a sample; NULL: unknown. A process that is unknown, or known in part, is read from
 * /proc: `*ret_awaited` is true while the reading is under way, and the sample should wait for it.
 * If the process has exited, its samples are unnamed; they never get the previous owner's name.
 * With `settle` no reading is awaited.
 */
struct process *sideband_feed_find(struct sideband_feed *feed, const struct sample *sample,
                                   bool settle, bool *ret_awaited);
/* The control group that a sample has by id, NULL: not known. With `*ret_awaited` it will be. */
const struct cgroup *sideband_feed_cgroup(struct sideband_feed *feed, uint64_t id,
                                          const struct process *process, uint64_t time_ns,
                                          bool *ret_awaited);
/* Requests the uid and cgroups of a process where the filter needs them. True: they are unknown,
 * and awaited. */
bool sideband_feed_identify(struct sideband_feed *feed, struct process *process, uint64_t time_ns);
/* Has a process read again that seems to lack a mapping. */
void sideband_feed_reread(struct sideband_feed *feed, struct process *process, uint64_t time_ns);
/* Whether records that were lost may have changed what is known of a process at a time: until it
 * forks, executes or is read anew. */
bool sideband_feed_is_doubtful(const struct sideband_feed *feed, const struct process *process,
                               uint64_t time_ns);

/*
 * True when the process may have been another program at the time of a sample: a CPU ran without
 * its sideband, and neither a record nor a reading of /proc has named the process since. Then it
 * has no name at that time.
 */
bool sideband_feed_disown(struct sideband_feed *feed, struct process *process,
                          const struct sample *sample);

/* A CPU (index into the source's, as below) went offline at `time_ns`. */
void sideband_feed_lose(struct sideband_feed *feed, size_t cpu_index, uint64_t time_ns);
/* A CPU has returned. Its sideband is missing from `from_ns`, or from its loss, to `to_ns`, and
 * counts as lost. */
void sideband_feed_gap(struct sideband_feed *feed, size_t cpu_index, uint64_t from_ns,
                       uint64_t to_ns);
/* Its rings are new, empty till `time_ns`. */
void sideband_feed_renew(struct sideband_feed *feed, size_t cpu_index, uint64_t time_ns);
/* Whether sideband was lost since the last call, so that all processes must be read again, or a
 * walk could not read them. */
bool sideband_feed_take_rescan(struct sideband_feed *feed);
/* Begins a walk of /proc, unless one is under way. */
void sideband_feed_walk(struct sideband_feed *feed);
bool sideband_feed_is_walking(const struct sideband_feed *feed);
/* The times of threads: proc_feed.h. */
void sideband_feed_read_times(struct sideband_feed *feed, proc_feed_times_fn on_times,
                              void *userdata);
bool sideband_feed_ask_times(struct sideband_feed *feed, int32_t from_pid);
/* True when readings of /proc were merged since the last call. */
bool sideband_feed_take_news(struct sideband_feed *feed);

/* With those of its readings of /proc. */
struct counters sideband_feed_counters(const struct sideband_feed *feed);
/* The first process whose reading was given up, 0: none. */
int32_t sideband_feed_hung_pid(const struct sideband_feed *feed);
