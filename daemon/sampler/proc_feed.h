/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Requests readings of /proc and merges their results into the process table. Never waits: the
 * threads of proc_pool.h read. Belongs to the collector thread; only sideband_feed.c uses it.
 */

#include "cgroup_feed.h"
#include "filter.h"
#include "proc_pool.h"
#include "process_table.h"

#include <stdbool.h>
#include <stdint.h>

#define PROC_FEED_PERIOD_NS UINT64_C(1000000000) /* a process is not read again before */

struct proc_feed;

/* All borrowed (the array of filters for the call), each filter of the number that is its place;
 * `cgroups` may be NULL. Returned; NULL when there is no memory, or no thread. */
struct proc_feed *proc_feed_new(struct process_table *processes, struct cgroup_feed *cgroups,
                                struct filter *const *filters, size_t filter_count);
struct proc_feed *proc_feed_free(struct proc_feed *readings);

/* Has command lines read as far as the right goes. `on_command` is called for each process whose
 * command line has been read. */
typedef void (*proc_feed_command_fn)(struct process *process, void *userdata);
void proc_feed_read_commands(struct proc_feed *readings, const struct command_right *right,
                             proc_feed_command_fn on_command, void *userdata);
/* Requests the command line of a process that has executed a program, if the right may cover it. */
void proc_feed_ask_command(struct proc_feed *readings, const struct process *process);

enum reading_state {
    READING_ASKED, /* now */
    READING_COMES, /* asked for before */
    READING_CAME,  /* a moment ago, whatever it said; or it cannot be had */
    READING_GONE,  /* /proc did not know the process a moment ago */
};
/* Requests all of a process that is unknown, or known in part, for a sample at `time_ns`.
 * `from_ns`: when this process got the pid; older answers are ignored. */
enum reading_state proc_feed_ask(struct proc_feed *readings, int32_t pid, uint64_t from_ns,
                                 uint64_t time_ns);
/* Requests the mappings of a process that seems to lack some; less often after each useless one. */
void proc_feed_reread(struct proc_feed *readings, const struct process *process, uint64_t time_ns);
/* Whether a process may be read again, and from when on it may. */
bool proc_feed_is_due(struct proc_feed *readings, const struct process *process, uint64_t time_ns);
void proc_feed_put_off(struct proc_feed *readings, const struct process *process, uint64_t time_ns);
/* Requests the uid and cgroups of a process if targets need them and they are unknown or a second
 * old. True: they are unknown, and asked for. */
bool proc_feed_identify(struct proc_feed *readings, const struct process *process,
                        uint64_t time_ns);

/*
 * Asks for the times of threads, of processes from `from_pid` on; the reading is given to
 * `on_times` (taken), whatever its error. False: it cannot be asked for.
 */
typedef void (*proc_feed_times_fn)(struct proc_reading *reading, void *userdata);
void proc_feed_read_times(struct proc_feed *readings, proc_feed_times_fn on_times, void *userdata);
bool proc_feed_ask_times(struct proc_feed *readings, int32_t from_pid);

/* Asks for a walk through the control groups where one is due. */
void proc_feed_list_cgroups(struct proc_feed *readings);

/* Begins a walk of /proc, unless one is under way. A known process that /proc does not list has
 * ended. */
void proc_feed_walk(struct proc_feed *readings);
bool proc_feed_is_walking(const struct proc_feed *readings);
/* True when a walk since the last call was incomplete: another one is due. */
bool proc_feed_take_failure(struct proc_feed *readings);

/* Begins a round, with a new limit for apply(). */
void proc_feed_begin_round(struct proc_feed *readings);
/*
 * Merges the readings that have come, within the limit of the round. The reading of a known process
 * is merged when all sideband up to its end is applied (`reached_ns` is not before it), so that no
 * change that a record explains counts as unexplained. Returns whether any was merged.
 */
bool proc_feed_apply(struct proc_feed *readings, uint64_t reached_ns);

struct proc_pool_counts proc_feed_counts(struct proc_feed *readings);
