/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which samples of a recording a profile has. The clock's are known by their number, 0. Which
 * number another event has, its session says, and that may come last; so the samples of all other
 * events are taken, and those that are not meant go at the end.
 */

#include "fault.h"
#include "fxt_format.h"
#include "profile_event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loader;
struct profile;
struct recorded_books;

/* All zero is the choice of the clock. */
struct event_choice {
    const char *name;        /* borrowed; NULL: the clock */
    struct told_event *told; /* owned; of another event than the clock: by sample of the profile */
    size_t told_capacity;
    bool takes_all;       /* the samples of every event; `told` says which each is of */
    bool ignores_weights; /* each sample counts for one */
};

void event_choice_done(struct event_choice *choice);

/* Whether the profile takes the sample for now. One that stands for nothing it does not take. */
bool event_choice_takes(const struct event_choice *choice, const struct profile *profile,
                        const struct fxt_sample *record);

/* Notes what the record says for the sample `number`, the profile's next. Returns 0, or -ENOMEM. */
int event_choice_note(struct event_choice *choice, struct profile *profile, size_t number,
                      const struct fxt_sample *record);

/*
 * Once all records have come, and segments have their sessions: leaves the samples of the event,
 * and gives each its value. Names the recording's events. Returns 0, or -errno with a sentence in
 * `reterr`
 *   -ESRCH   the recording does not have the event
 *   -ENOMEM
 */
int event_choice_apply(struct event_choice *choice, struct profile *profile,
                       const struct recorded_books *recorded, struct fault *reterr);
