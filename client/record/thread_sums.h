/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a recording says of the time of threads, summed up for each process. */

#include "json_out.h"
#include "thread_books.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define THREAD_SUMS_MAX        ((size_t)65536) /* processes, those of the lowest pids */
#define THREAD_SUMS_NAME_BYTES 64

struct thread_sum {
    int64_t pid;
    char name[THREAD_SUMS_NAME_BYTES]; /* of its leader, else of a thread; "": not known */
    uint64_t thread_count;
    uint64_t unread_count; /* of its threads, those that ended before they could be read again */
    bool has_leader;       /* the name is its leader's */
    struct thread_split times;
};

/* All zero: there are none. */
struct thread_sums {
    struct thread_sum *all; /* owned; `count` of them; several of a process until the end */
    size_t count;
    size_t capacity;
    bool is_cut; /* processes behind `last_pid` had no place */
    int64_t last_pid;
    uint64_t left_out_count; /* threads of these */
};
void thread_sums_done(struct thread_sums *sums);

/* A data_line_fn; `userdata` is the sums. What a process has is whole, or left out and counted.
 * Returns 0 or -ENOMEM. */
int thread_sums_take(const cJSON *line, void *userdata);
/* Sums up what was taken, the process that had or wanted a CPU for longest first. Then they can be
 * printed: the first few as a table, nothing where there are none; all as an array of JSON. */
void thread_sums_order(struct thread_sums *sums);
void thread_sums_print(FILE *to, const struct thread_sums *sums);
void thread_sums_print_json(struct json_out *out, const struct thread_sums *sums);
