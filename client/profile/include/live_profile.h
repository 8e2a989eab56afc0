/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One segment of a recording as it comes: records in, samples out as soon as their stacks are
 * whole. What the segment defines is kept, and so is each different stack; samples are not. A
 * sample is resolved by what is known when it is handed out: a definition that comes later changes
 * only later samples. A new segment is another live profile.
 */

#include "fxt_reader.h"
#include "profile.h"

#include <stdbool.h>

struct live_profile;

/* `has_events`: samples of all events are taken, else those of the clock. Returned:
 * live_profile_free(). NULL when there is no memory. */
struct live_profile *live_profile_new(enum profile_names names, bool has_events);
struct live_profile *live_profile_free(struct live_profile *live);

/* Adds a record, of the segment that live_profile_new() began. Returns 0, or -ENOMEM. */
int live_profile_add(struct live_profile *live, const struct fxt_record *record);

/*
 * Hands the samples out that came since the last call: they are the profile's until
 * live_profile_forget(), which comes before the next record. Samples that wait for the rest of
 * their stack stay, unless the segment has ended. Returns 0, or -ENOMEM.
 */
int live_profile_resolve(struct live_profile *live, bool has_ended);

/* Borrowed, as long as the live profile. */
const struct profile *live_profile_get(const struct live_profile *live);

/* With `has_events`: what the samples that were handed out are of, one for each. Borrowed, until
 * live_profile_forget(). */
const struct told_event *live_profile_told(const struct live_profile *live);

/* Forgets the samples that were handed out. Returns 0, or -ENOMEM. */
int live_profile_forget(struct live_profile *live);

/* Whether the different stacks take much memory. live_profile_renumber(), behind
 * live_profile_forget(), forgets them: numbers of stacks, chains and frames are given anew. Returns
 * 0, or -ENOMEM. */
bool live_profile_is_large(const struct live_profile *live);
int live_profile_renumber(struct live_profile *live);
