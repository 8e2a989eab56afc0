/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a recording says of one thread's time: a line of the blob DATA_NAME_THREADS
 * (docs/books.md#threads).
 */

#include <stdbool.h>
#include <stdint.h>

struct cJSON;

/* wall = running + ready + blocked + unexplained, which is signed. */
struct thread_split {
    int64_t wall_ns;
    int64_t running_ns;
    int64_t ready_ns; /* waiting for a CPU: `waiting_ns` of the line */
    int64_t blocked_ns;
    int64_t unexplained_ns;
    int64_t preempted_ns; /* of ready_ns: by samples, which a profile adds; the line has none */
};

struct thread_books {
    int64_t pid;
    int64_t tid;
    uint64_t begin_ns; /* of CLOCK_BOOTTIME: of the session, or of the thread if that was later */
    const char *name;  /* borrowed, of the line; NULL: not known */
    uint64_t voluntary_count; /* switches */
    uint64_t involuntary_count;
    bool is_unread; /* the scheduler's sums were not read again, as it had ended, or in time */
    struct thread_split times;
};

/* Reads a line, as data_each_line() gives it (NULL, too). False, and nothing is written: it names
 * no thread. Numbers that make no sense are 0. */
bool thread_books_read(const struct cJSON *line, struct thread_books *ret);

/* Adds times to a sum, which does not overflow. */
void thread_split_add(struct thread_split *sum, const struct thread_split *other);
