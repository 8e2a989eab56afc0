/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The two halves that process_table.c is built on, one process each: its threads with their names
 * (process_threads.c) and its mappings over time (process_mappings.c). Nobody else includes this.
 */

#include "path_set.h"
#include "process_table.h"

/* What all processes of a table share. */
struct process_account {
    mapped_file_free_fn on_file_free;
    void *userdata;
    struct process_table_counts counts;
    uint64_t last_generation;
    size_t unreserved_weight; /* of mappings, beyond what each process has reserved */
    size_t older_name_count;
    uint64_t lost_ns; /* until when records were lost, the last time */
    struct path_set paths;
};

/* The thread `tid` that lived at `time_ns`, or NULL. */
struct thread *process_threads_find(struct process *process, int32_t tid, uint64_t time_ns);
/* The same, made when it was not known. NULL when the record is too late to
 * say anything, or there is no place. */
struct thread *process_threads_get(struct process_account *account, struct process *process,
                                   int32_t tid, uint64_t time_ns);
/* A thread that began at `time_ns`, with the name that `parent` (may be NULL) had then. */
void process_threads_fork(struct process_account *account, struct process *process, int32_t tid,
                          struct thread *parent, uint64_t time_ns);
/* The name from `time_ns` on, until the one that follows, should there be a newer one already. */
void process_threads_rename(struct process_account *account, struct process *process,
                            struct thread *thread, const char *comm, uint64_t time_ns);
void process_threads_exit(struct process_account *account, struct process *process, int32_t tid,
                          uint64_t time_ns);
/* Ends the threads that were there before `time_ns` but for `kept_tid`; with 0, all threads. */
void process_threads_end_others(struct process *process, int32_t kept_tid, uint64_t time_ns);
void process_threads_scan(struct process_account *account, struct process *process,
                          const struct process_scan *scan);
/* Returns whether some thread has ended that is still kept, or some name. */
bool process_threads_prune(struct process_account *account, struct process *process,
                           uint64_t horizon_ns);
void process_threads_done(struct process_account *account, struct process *process);

void process_mappings_mmap(struct process_account *account, struct process *process,
                           const struct mapping_description *description, uint64_t time_ns);
/* Ends all that was mapped before `time_ns`. */
void process_mappings_exec(struct process_account *account, struct process *process,
                           uint64_t time_ns);
/* Copies what `parent` had mapped at `time_ns` beneath what the child has. */
void process_mappings_inherit(struct process_account *account, struct process *child,
                              const struct process *parent, uint64_t time_ns);
void process_mappings_scan(struct process_account *account, struct process *process,
                           const struct process_scan *scan);
/* Returns whether history is left. */
bool process_mappings_prune(struct process_account *account, struct process *process,
                            uint64_t horizon_ns);
void process_mappings_done(struct process_account *account, struct process *process);
