/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What of the books an export can carry. */

#include "export_cost.h"
#include "profile.h"

#include <stdbool.h>
#include <stdint.h>

/* Ticks that may have been the target's and have no sample: lost, throttled, missed and dropped
 * ones. Of another event the samples that were lost or dropped, and those that would stand for what
 * was counted without one; of waits lost and dropped ones alone. 0 where there are no books. */
uint64_t export_books_lost(const struct profile *profile);

/* What they would have cost. */
uint64_t export_books_lost_cost(const struct profile *profile, const struct export_cost *cost);

/* Whether some waits stand for others too, so that what a sample stands for is not how long its own
 * wait was: where the books say so, or there are none. False of another event. */
bool export_books_has_estimates(const struct profile *profile);

/* Hands over one line at a time of what a reader should know of the recording: samples, period,
 * each term of the books, counters that are not 0; of another event than the clock its own books.
 * Lines are plain ASCII without control characters; borrowed. */
typedef void export_line_fn(const char *line, void *userdata);
void export_books_lines(const struct profile *profile, export_line_fn *on_line, void *userdata);

/* A number of the books. */
struct export_count {
    const char *name; /* borrowed; "ticks lost", or a counter's member */
    int64_t value;    /* `unexplained` is signed */
    uint64_t number;  /* which one it is: 1 and up, the same in all recordings */
};

/* Hands over each term and each counter that the books know and that is a number; of counters those
 * that are not 0. */
typedef void export_count_fn(const struct export_count *count, void *userdata);
void export_books_counts(const struct profile *profile, export_count_fn *on_count, void *userdata);
