/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The places of the threads that a wait_table follows, found by their tids. Bounded: they are
 * shared among accounts (quota.h). What a thread does is not decided here. Pure; belongs to the
 * collector thread; of wait_lives.h and wait_table.c only.
 */

#include "capacity.h"
#include "quota.h"
#include "thread_line.h"
#include "wait.h"
#include "wait_estimate.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACKED_THREADS_MAX CAPACITY((uint32_t)65536)

enum thread_state {
    STATE_ASSUMED, /* blocked since the run began, unless its first record shows that it ran */
    STATE_RUNNING,
    STATE_BLOCKED,
    STATE_PREEMPTED,
    STATE_NEW, /* it began, and had no CPU yet */
    STATE_ENDED,
};

struct tracked {
    int32_t pid;
    int32_t tid;
    uint32_t next;       /* in its bucket */
    uint32_t next_ended; /* after this one */
    uint32_t wait;       /* that is open; 0: none */
    uint32_t account;
    bool is_sampler;    /* struct wait_owner */
    uint32_t cpu_index; /* where it runs */
    uint32_t period;    /* as in struct wait_switch, of the last one; the next too */
    uint64_t long_ns;
    enum thread_state state;
    bool is_hashed; /* it is found by its tid; one that has ended, until another has the tid: what
                     * it does on its way out is not told */
    bool is_there;  /* /proc had it at the end of the run */
    uint64_t since_ns; /* it is in that state */
    uint64_t losses;   /* of that CPU or, where it has none, of all, when the state began */
    struct thread_run run;
    struct thread_line line; /* of the runs that are over */
    struct wait_estimate estimates[WAIT_KINDS];
};

struct tracked_threads {
    struct quota living; /* threads, by account */
    struct tracked *all; /* by their places; 0 is none */
    uint32_t *buckets;
    uint32_t end;         /* of the places that were ever used */
    uint32_t first_ended; /* threads that ended, and keep their place */
    uint32_t last_ended;
    uint64_t refused_count;   /* no place was left */
    uint64_t forgotten_count; /* ended ones whose place others took */
};

/* False: there is no memory; tracked_threads_done() is due all the same. */
bool tracked_threads_init(struct tracked_threads *threads);
void tracked_threads_done(struct tracked_threads *threads);

/* The thread of a tid that was added last, NULL: none, or it was unlinked. */
struct tracked *tracked_threads_find(struct tracked_threads *threads, int32_t tid);
/* A place for a thread of an account, zero but for what is given here; NULL: there is none. */
struct tracked *tracked_threads_add(struct tracked_threads *threads, uint32_t account, int32_t pid,
                                    int32_t tid);
/* It is found no more, and keeps its place. */
void tracked_threads_unlink(struct tracked_threads *threads, struct tracked *thread);
/* It has ended: it keeps its place until others need it. */
void tracked_threads_end(struct tracked_threads *threads, struct tracked *thread);

static inline uint32_t tracked_threads_place(const struct tracked_threads *threads,
                                             const struct tracked *thread)
{
    return (uint32_t)(thread - threads->all);
}
