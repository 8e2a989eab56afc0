/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What process_table.c is built on. Two halves of one process: its threads with their names
 * (process_threads.c) and its mappings over time (process_mappings.c). And what all processes of an
 * account hold together (process_shares.c). No other file includes this.
 */

#include "path_set.h"
#include "process_table.h"
#include "quota.h"

#define PROCESS_SHARE_BUCKETS_LOG 8

/* What the processes of one account hold of a table. */
struct process_share {
    uint32_t account;
    size_t process_count;
    size_t thread_count;
    size_t unreserved_weight; /* as of process_totals, next line too */
    size_t older_name_count;
    struct process_share *next;
};

/* What all processes of a table share. */
struct process_totals {
    mapped_file_free_fn on_file_free;
    void *userdata;
    struct process_table_counts counts;
    uint64_t last_generation;
    uint64_t last_number;
    size_t unreserved_weight; /* of mappings, beyond what each process has reserved */
    size_t older_name_count;
    uint64_t lost_ns;    /* until when records were lost, the last time */
    uint64_t reached_ns; /* all records up to it are applied */
    struct path_set paths;
    struct quota command_bytes;
    struct process_share *shares[1 << PROCESS_SHARE_BUCKETS_LOG];
    bool root_refused; /* something of root's found no place */
};

/* What of a process's weight is not in the room that each process has reserved. */
static inline size_t process_unreserved_weight(size_t weight)
{
    return weight < PROCESS_MAPPINGS_RESERVED ? 0 : weight - PROCESS_MAPPINGS_RESERVED;
}

/* Since when what /proc showed at `seen_ns` may have held, where nothing else is known of it: since
 * `since_ns`, a fork, an exec or the beginning, if no record was lost after that. */
static inline uint64_t process_held_since_ns(const struct process_totals *totals, uint64_t since_ns,
                                             uint64_t seen_ns)
{
    return totals->lost_ns > since_ns ? seen_ns : since_ns;
}

/* The share of an account, made when it has none. NULL when there is no memory. */
struct process_share *process_share_get(struct process_totals *totals, uint32_t account);
/* Frees a share to which no process is charged. */
void process_share_put(struct process_totals *totals, struct process_share *share);
/* True when an account that holds `own` of the `total` in use may have `more` of a thing of which
 * there are at most `max`. */
bool process_share_allows(struct process_totals *totals, const struct process_share *share,
                          size_t max, size_t total, size_t own, size_t more);
/* Charges all that a process holds to another account, which is never refused. Without memory
 * nothing changes. */
void process_share_move(struct process_totals *totals, struct process *process, uint32_t account);

/* Gives a reference back; NULL is none. */
void process_command_put(struct process_totals *totals, struct process_command *command);
void process_command_inherit(struct process *child, struct process *parent);
void process_command_forget(struct process_totals *totals, struct process *process);
/* Takes that of a scan, if it has one. */
void process_command_take(struct process_totals *totals, struct process *process,
                          const struct process_scan *scan);

/* The thread `tid` that lived at `time_ns`, or NULL. */
struct thread *process_threads_find(struct process *process, int32_t tid, uint64_t time_ns);
/* The same, made when it was not known. NULL when the record is too late to
 * say anything, or there is no place. */
struct thread *process_threads_get(struct process_totals *totals, struct process *process,
                                   int32_t tid, uint64_t time_ns);
/* A thread that began at `time_ns`, with the name that `parent` (may be NULL) had then. */
void process_threads_fork(struct process_totals *totals, struct process *process, int32_t tid,
                          struct thread *parent, uint64_t time_ns);
/* The name from `time_ns` on, until the one that follows, should there be a newer one already. */
void process_threads_rename(struct process_totals *totals, struct process *process,
                            struct thread *thread, const char *comm, uint64_t time_ns);
/* No name from `time_ns` on, until the one that follows or the process's last scan. */
void process_threads_doubt(struct process_totals *totals, struct process *process,
                           struct thread *thread, uint64_t time_ns);
void process_threads_exit(struct process_totals *totals, struct process *process, int32_t tid,
                          uint64_t time_ns);
/* The last thread `tid` has not ended after all. */
void process_threads_undo_exit(struct process *process, int32_t tid);
/* Ends the threads that were there before `time_ns` but for `kept_tid`; with 0, all threads. */
void process_threads_end_others(struct process *process, int32_t kept_tid, uint64_t time_ns);
/* Returns whether the leader was known by another name. */
bool process_threads_scan(struct process_totals *totals, struct process *process,
                          const struct process_scan *scan);
/* Looks at `steps` threads at most, and goes on behind them in the next call: prune_at is where, 0
 * when it has seen all. Returns whether some thread has ended that is still kept, or some name. */
bool process_threads_prune(struct process_totals *totals, struct process *process,
                           uint64_t horizon_ns, size_t steps);
void process_threads_done(struct process_totals *totals, struct process *process);

void process_mappings_mmap(struct process_totals *totals, struct process *process,
                           const struct mapping_description *description, uint64_t time_ns);
/* Ends all that was mapped before `time_ns`. */
void process_mappings_exec(struct process_totals *totals, struct process *process,
                           uint64_t time_ns);
/* Copies what `parent` had mapped at `time_ns` beneath what the child has. */
void process_mappings_inherit(struct process_totals *totals, struct process *child,
                              const struct process *parent, uint64_t time_ns);
void process_mappings_scan(struct process_totals *totals, struct process *process,
                           const struct process_scan *scan);
/* Returns whether history is left. */
bool process_mappings_prune(struct process_totals *totals, struct process *process,
                            uint64_t horizon_ns);
void process_mappings_done(struct process_totals *totals, struct process *process);
