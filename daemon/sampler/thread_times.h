/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads the times of all threads from /proc, as a run begins and before it ends, and hands them out
 * in the order of time, beside what the rings have. Belongs to the collector thread.
 */

#include "proc_feed.h"
#include "sideband_feed.h"
#include "thread_reading.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At one place from thread_times_init() on, which gives it to the feed. */
struct thread_times {
    struct sideband_feed *feed;
    struct proc_reading *first; /* that were not handed out yet, in the order of time */
    struct proc_reading *last;
    size_t taken_count; /* of the first */
    bool is_running;
    bool is_reading;
    bool is_stale;    /* what is under way was asked for by a run that is over */
    bool is_last;     /* as the run ends */
    bool is_due;      /* a further reading of all threads is, */
    bool is_due_last; /* as the run ends */
    bool has_failed;  /* some threads could not be read */
    bool has_all;     /* each thread that there was, but for those of which it is said */
    uint64_t walk_ns; /* when the reading of all of them began */
    uint64_t wanted_ns;
    uint64_t asked_ns;
    size_t read_count;
};

/* The feed is borrowed. */
void thread_times_init(struct thread_times *times, struct sideband_feed *feed);
void thread_times_done(struct thread_times *times);

/* A run begins: all threads are read. It ends: what was not handed out is dropped. Returns since
 * when all threads have been read, if they were read once more before the end; else UINT64_MAX. */
void thread_times_start(struct thread_times *times);
uint64_t thread_times_stop(struct thread_times *times);

/* Has all threads read, from now on or once what is under way has come. */
void thread_times_read(struct thread_times *times, bool is_last);
/* True while they are read, for two seconds at the most. */
bool thread_times_are_coming(const struct thread_times *times);

/* Up to when records may be handled: up to the horizon, but not past a reading that was asked for
 * a moment ago. */
uint64_t thread_times_limit_ns(const struct thread_times *times, uint64_t horizon_ns);

/* When the next thread was read; UINT64_MAX: none is left. */
uint64_t thread_times_advance(struct thread_times *times);
static inline uint64_t thread_times_next_ns(struct thread_times *times)
{
    return times->first == NULL ? UINT64_MAX : thread_times_advance(times);
}
/* That thread, borrowed until the next call; as the run ends, or as it began. */
const struct thread_reading *thread_times_take(struct thread_times *times, bool *ret_is_last);
