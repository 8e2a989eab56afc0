/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What casts doubt on a view of another event than the clock, by the books of that event. */

#include "summary.h"

#include <stdbool.h>
#include <stdio.h>

/* Writes a clause, or nothing. */
typedef void doubts_clause_fn(const struct profile *profile, const struct summary *summary,
                              FILE *file);

/* In the place of those that are of ticks. */
#define DOUBTS_OF_EVENTS 7
extern doubts_clause_fn *const doubts_of_events[DOUBTS_OF_EVENTS];

/* " of 1 of the 2 sessions": which sessions have no books, if others have some. */
void doubts_write_bookless(FILE *file, const struct profile *profile);

/* Whether each single event has a sample, so that no number of them is too few. */
bool doubts_event_is_whole(const struct profile *profile);

/* The part of what was counted that the samples stand for, in percent; false: it is not known. */
bool doubts_event_percent(const struct profile *profile, double *ret);

/*
 * The standard error of what the samples that are shown stand for, at the most. Each stands for
 * what its CPU counted since the sample before, by whichever task, so of a part of the tasks the
 * sum is an estimate, as it is of waits that were too many to be sampled each. 0: it is none, as
 * where each event has a sample. Returns false where it is not known: a follower's samples stand
 * where its leader's do, whatever the follower counts, so those of a part of the tasks are biased.
 */
bool doubts_event_error(const struct profile *profile, double *ret);

/* Of waits: by how much, in ns, the sum of those that are shown is off at the most in 19 of 20
 * recordings; 0 of another event. */
double doubts_wait_error_95(const struct profile *profile);
