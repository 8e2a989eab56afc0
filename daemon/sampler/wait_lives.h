/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The threads of a wait_table, and what is known of their lives. Belongs to the collector thread;
 * of wait_table.c only.
 */

#include "tracked_threads.h"
#include "wait_pool.h"
#include "wait_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAIT_LIVES_RESTS_MAX 8 /* as many processes as the readings of a walk can cut */

struct wait_cpu {
    bool is_blind;    /* its records are missing now */
    uint32_t running; /* the thread that was switched to last; 0: none */
    uint64_t losses;
    struct wait_counts counts[WAIT_KINDS];
};

struct wait_table {
    struct wait_table_config config;
    struct tracked_threads threads;
    struct wait_pool *waits;
    struct wait_estimate estimates[WAIT_KINDS]; /* of the threads that have few samples */
    uint64_t losses;                            /* of all CPUs */
    size_t blind_count;
    uint64_t start_ns;
    int32_t rests[WAIT_LIVES_RESTS_MAX]; /* processes with more threads than were read at the end */
    size_t rest_count;                   /* more than there is room for: any may be one */
    uint32_t settled;                    /* the place at which wait_table_settle() has arrived */
    bool is_running;
    struct wait_cpu cpus[];
};

/* The losses that count for a thread: of its CPU or, where it has none, of all. */
uint64_t wait_lives_losses(const struct wait_table *table, const struct tracked *thread);
/* Whether nothing that was lost can have changed the thread's state. */
bool wait_lives_is_certain(const struct wait_table *table, const struct tracked *thread);
/* The sums, with what has passed of the state that it is in. */
struct thread_sums wait_lives_sums(const struct wait_table *table, const struct tracked *thread,
                                   uint64_t time_ns);
void wait_lives_enter(struct wait_table *table, struct tracked *thread, enum thread_state state,
                      uint64_t time_ns);
/* The first record of a thread shows that it had a CPU since the run began: so it was, too, when
 * /proc was read. */
void wait_lives_correct(struct tracked *thread, size_t cpu_index);

/* The thread of a tid; NULL: none. One of another process had the tid before, and has gone unseen.
 */
struct tracked *wait_lives_find(struct wait_table *table, int32_t pid, int32_t tid,
                                uint64_t time_ns);
/* The thread that a record tells of; NULL: there is no place for it, or it has ended. */
struct tracked *wait_lives_meet(struct wait_table *table, int32_t pid, int32_t tid,
                                uint64_t time_ns);
/* One that begins; NULL: there is no place. */
struct tracked *wait_lives_add(struct wait_table *table, int32_t pid, int32_t tid,
                               enum thread_state state, uint64_t time_ns);
/* Another has the tid of a thread, which may have ended unseen: when, is not known. */
void wait_lives_replace(struct wait_table *table, struct tracked *thread, uint64_t time_ns);
/* The thread has gone; its line stays while there is room. */
void wait_lives_end(struct wait_table *table, struct tracked *thread, uint64_t time_ns);
/* When it ended, as other records say; UINT64_MAX: they do not, or it lives. */
uint64_t wait_lives_told_end(const struct wait_table *table, const struct tracked *thread);
/* When one that is not there at the end of the run ended: when other records say so, else after the
 * last moment at which anything is known of it. */
uint64_t wait_lives_assume_end(const struct wait_table *table, const struct tracked *thread,
                               uint64_t stop_ns);

/* A run of a thread begins, and is over. */
void wait_lives_begin_run(struct wait_table *table, struct tracked *thread, enum thread_state state,
                          uint64_t time_ns);
void wait_lives_close_run(struct wait_table *table, struct tracked *thread, uint64_t time_ns);
