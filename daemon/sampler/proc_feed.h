/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What /proc is asked for, and what comes of it into the process table, without ever waiting: the
 * reading is proc_pool.h's. Belongs to the collector thread; of sideband_feed.c only.
 */

#include "filter.h"
#include "proc_pool.h"
#include "process_table.h"

#include <stdbool.h>
#include <stdint.h>

#define PROC_FEED_PERIOD_NS UINT64_C(1000000000) /* a process is not read again before */

struct proc_feed;

/* Both borrowed. Returned; NULL when there is no memory, or no thread. */
struct proc_feed *proc_feed_new(struct process_table *processes, const struct filter *filter);
struct proc_feed *proc_feed_free(struct proc_feed *readings);

enum reading_state {
    READING_ASKED, /* now */
    READING_COMES, /* asked for before */
    READING_CAME,  /* a moment ago, whatever it said; or it cannot be had */
    READING_GONE,  /* /proc did not know the process a moment ago */
};
/* Asks for all of a process of which nothing is known, or not enough, for a sample of `time_ns`.
 * Since `from_ns` it has the pid. */
enum reading_state proc_feed_ask(struct proc_feed *readings, int32_t pid, uint64_t from_ns,
                                 uint64_t time_ns);
/* Asks for the mappings of one that seems to lack some: the less often, the less came of it. */
void proc_feed_reread(struct proc_feed *readings, struct process *process, uint64_t time_ns);
/* Asks whose a process is, if that is a target's affair, and it is not known or a second old. */
void proc_feed_identify(struct proc_feed *readings, struct process *process, uint64_t time_ns);

/* Walks all of /proc; the processes that were known before it and that /proc does not list have
 * ended. Nothing while a walk is under way. */
void proc_feed_walk(struct proc_feed *readings);
bool proc_feed_is_walking(const struct proc_feed *readings);
/* Whether a walk since the last call has not told all that it could have: another one is due. */
bool proc_feed_take_failure(struct proc_feed *readings);

/* A round begins, in which apply() may tell so much and no more. */
void proc_feed_begin_round(struct proc_feed *readings);
/*
 * Tells the table what has come, as far as the round allows. A process that is known already is
 * told of when all sideband up to the end of its reading is applied, that is when `reached_ns` is
 * not before it: what a record explains is nobody else's then. Returns whether anything was told.
 */
bool proc_feed_apply(struct proc_feed *readings, uint64_t reached_ns);

struct proc_pool_counts proc_feed_counts(struct proc_feed *readings);
