/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Threads by what their CPUs did with them: on a CPU, ready for one, or blocked. A wait is the time
 * from a switch away from a thread to the next switch to it; each that ends is handed out. The
 * thread's books close: wall = running + waiting + blocked + unexplained. Calls come in the order
 * of time. Bounded: threads are shared among accounts (quota.h). Pure; belongs to the collector
 * thread.
 */

#include "thread_line.h"
#include "wait.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Waits of a kind that ended on a CPU, or were open at the end: counted = all that were handed out,
 * once each, + short + uncertain + held + thinned. */
struct wait_counts {
    uint64_t counted_ns;
    uint64_t short_count; /* below the least length */
    uint64_t short_ns;
    uint64_t uncertain_count; /* records were lost meanwhile, or there was no place */
    uint64_t uncertain_ns;
    uint64_t bare_count;    /* handed out without an origin */
    uint64_t held_ns;       /* ended, and the origin comes yet: what they stand for */
    uint64_t thinned_count; /* not sampled, and others stand for them */
    uint64_t thinned_ns;
    uint64_t long_count; /* of those that began there: handed out without an origin, as they were
                          * long */
    /* Of the sum of what is handed out, if chance has one switch in so many sampled, in ns^2: by
     * the lengths of all waits, which are known. */
    double variance;
    uint64_t largest_ns; /* the most that it depends on for one of them whether it is sampled */
};

struct wait_table;

/* Whose a process is, as far as that is known. */
struct wait_owner {
    uint32_t account;
    bool is_sampler; /* it takes the samples: each wait of its threads stands for itself */
};
typedef struct wait_owner (*wait_owner_fn)(int32_t pid, uint64_t time_ns, void *userdata);
/* When a thread that was there at `time_ns` began and ended, as far as other records say. */
struct wait_life {
    uint64_t from_ns; /* 0: not known */
    uint64_t to_ns;   /* UINT64_MAX: not known, or it lives */
};
typedef struct wait_life (*wait_life_fn)(int32_t pid, int32_t tid, uint64_t time_ns,
                                         void *userdata);
/* Sets what else is known of the line's thread at a time: its name, and which sinks want it. */
typedef void (*wait_describe_fn)(struct thread_line *line, uint64_t time_ns, void *userdata);

struct wait_table_config {
    size_t cpu_count;
    uint64_t min_wait_ns;
    wait_owner_fn owner;
    wait_life_fn life;
    wait_describe_fn describe;
    void *userdata; /* of all three */
};

/* Returned; NULL when there is no memory, of which it takes what it uses. */
struct wait_table *wait_table_new(const struct wait_table_config *config);
struct wait_table *wait_table_free(struct wait_table *table);

/* A run begins; it ends, and with it all open waits, as far as they have come. `read_ns`: /proc was
 * read since then, and all threads that were there have been told with `is_last`; UINT64_MAX: it
 * was not. One that was not there has ended in this run, and its wait is not certain. */
void wait_table_start(struct wait_table *table, uint64_t time_ns);
void wait_table_stop(struct wait_table *table, uint64_t time_ns, uint64_t read_ns);

/*
 * A sample of a switch away from a thread: a wait may begin. Returns its ticket, 0: there is no
 * place. Either wait_table_out() or wait_table_cancel() follows. wait_table_resolve() says the
 * origin at any time, even when the wait is over. It returns false when nothing is known of the
 * ticket any more: the stack is the caller's to release.
 */
uint64_t wait_table_begin(struct wait_table *table, uint32_t factor);
void wait_table_cancel(struct wait_table *table, uint64_t ticket);
bool wait_table_resolve(struct wait_table *table, uint64_t ticket,
                        const struct wait_origin *origin);

/* A switch away from a thread. */
struct wait_switch {
    int32_t pid;
    int32_t tid;
    uint64_t time_ns;
    enum wait_kind kind;
    uint64_t ticket;      /* 0: without a sample */
    uint64_t sampling_ns; /* what that took */
    uint32_t period;      /* one switch in so many is sampled */
    uint64_t long_ns;     /* a wait of this length or more stands for no others, and none for it: it
                           * is handed out, with or without an origin; 0: each is, of any length */
};
/* A CPU (index into the source's) went over from a thread, or to one. */
void wait_table_out(struct wait_table *table, size_t cpu_index, const struct wait_switch *away);
void wait_table_in(struct wait_table *table, size_t cpu_index, int32_t pid, int32_t tid,
                   uint64_t time_ns);
void wait_table_fork(struct wait_table *table, int32_t pid, int32_t tid, uint64_t time_ns);
void wait_table_exit(struct wait_table *table, size_t cpu_index, int32_t pid, int32_t tid,
                     uint64_t time_ns);
/* An exec: its thread is the leader from now on. */
void wait_table_exec(struct wait_table *table, size_t cpu_index, int32_t pid, uint64_t time_ns);
/* Records of a CPU are missing from now on or, with false, up to now: any thread that is on no CPU
 * may have that one meanwhile. */
void wait_table_blind(struct wait_table *table, size_t cpu_index, bool is_blind);
/* Ends threads whose end only other records told, up to a time; these remember it for a second.
 * Each call looks at a part of all threads. All records of switches up to that time have been
 * taken. */
void wait_table_settle(struct wait_table *table, uint64_t time_ns);
/* What /proc said of a thread, as the run began or, with `is_last`, as it ends; or that a process
 * has more threads than were read, of which none has ended for not being there. */
void wait_table_read(struct wait_table *table, const struct thread_reading *reading, bool is_last);

/*
 * The next wait that has ended on a CPU and whose origin is known or does not come; NULL: none. It
 * is borrowed until wait_table_release(), which follows.
 */
const struct wait *wait_table_next(struct wait_table *table, size_t cpu_index);
/* Returns the stack that is the caller's to release, 0: none. */
uint32_t wait_table_release(struct wait_table *table, const struct wait *wait);

struct wait_counts wait_table_counts(const struct wait_table *table, size_t cpu_index,
                                     enum wait_kind kind);

/* Of the whole session. */
struct wait_thread_counts {
    uint64_t refused;   /* times that a thread found no place: nothing is known of it */
    uint64_t forgotten; /* that had exited, and whose place others took */
};
struct wait_thread_counts wait_table_thread_counts(const struct wait_table *table);

/* The lines of all threads, after a stop: `*place` is 0 at first, and is moved on. Returns false
 * when there is none left. */
bool wait_table_line(const struct wait_table *table, uint32_t *place, struct thread_line *ret);
