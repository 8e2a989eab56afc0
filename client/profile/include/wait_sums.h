/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the samples of waits say of each thread, whichever event a profile is of: how many there
 * are, and what they stand for. Beside the lines of threads, which are exact, that says how much of
 * the ready time was after a preemption, and of which threads each wait has a sample of its own.
 */

#include "fxt_format.h"
#include "intern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;
struct profile_sample;
struct profile_task;
struct recorded_books;

struct wait_sum {
    uint64_t time_ns;
    uint64_t count;
};

/* All zero is an empty one. */
struct wait_sums {
    struct intern keys;    /* struct wait_sum_key: a thread in a segment, and an event */
    struct wait_sum *sums; /* owned; by item of `keys` */
    size_t sum_capacity;
};

void wait_sums_done(struct wait_sums *sums);

/* Adds a sample of another event than the clock. Which of them are of waits, the session says
 * later. Returns 0, or -ENOMEM. */
int wait_sums_add(struct wait_sums *sums, uint32_t segment, const struct fxt_sample *record);

/* Once segments have their sessions, and the profile's threads are in the order of their sessions:
 * gives these threads what the samples say. Returns 0, or -ENOMEM. */
int wait_sums_settle(const struct wait_sums *sums, const struct recorded_books *recorded,
                     struct profile *profile);

/* Whether each wait of a thread has a sample, which stands for that wait alone: there are as many
 * samples as switches, and they stand for no more than the thread's line has. */
bool wait_sums_are_whole(const struct profile *profile, const struct profile_task *task);

/* Whether a sample may stand for other waits than its own, where not each had a sample. One without
 * a stack does not: it was written as it was too long to be left out. */
bool wait_sums_stand_for_others(const struct profile *profile, const struct profile_sample *sample);
