/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The books of one thread: wall = running + waiting + blocked + unexplained. What the switch
 * records of its CPUs say, and what the scheduler itself counted of the thread, are brought
 * together. Pure.
 */

#include "thread_reading.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By switch records. */
struct thread_sums {
    uint64_t running_ns;
    uint64_t blocked_ns;   /* from a switch away to the next switch to it: with the time for which
                            * it was ready */
    uint64_t preempted_ns; /* the same where it could have gone on; and before its first switch */
};

/* A run of the session, as far as the thread lived. */
struct thread_run {
    uint64_t from_ns;
    uint64_t to_ns;
    bool is_seen; /* by any record */
    struct thread_sums sums;
    bool has_first; /* what /proc said early in the run; of a thread that began in it zeros at its
                     * beginning */
    bool has_last;
    struct thread_reading first;
    struct thread_reading last;
    struct thread_sums first_sums; /* by records, up to these moments */
    struct thread_sums last_sums;
};

#define THREAD_LINE_NAME_BYTES 16

struct thread_line {
    int32_t pid;
    int32_t tid;
    char name[THREAD_LINE_NAME_BYTES]; /* "": not known */
    unsigned wanted;                   /* sinks */
    uint64_t boot_ts_ns;               /* when the session began, or the thread */
    uint64_t wall_ns;
    uint64_t running_ns;
    uint64_t waiting_ns;
    uint64_t blocked_ns;
    uint64_t voluntary; /* switches away from it by itself, */
    uint64_t involuntary;
    bool has_runs;
    bool by_schedstat; /* in every run; else some terms are of switch records alone */
};

int64_t thread_line_unexplained(const struct thread_line *line);

/* Adds a run. */
void thread_line_add(struct thread_line *line, const struct thread_run *run);

/* The JSON object of docs/trace-format.md with its newline. Returns its length, which is less than
 * THREAD_LINE_BYTES. */
#define THREAD_LINE_BYTES 512
size_t thread_line_print(const struct thread_line *line, char into[THREAD_LINE_BYTES]);
