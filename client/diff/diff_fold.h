/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One recording, folded: how many samples each item has, and how far that would be elsewhere.
 */

#include "diff_items.h"
#include "statistics.h"

#include <stddef.h>
#include <stdint.h>

/* Which part of the samples, or of the time, is taken as given when noise is estimated. */
enum fold_given {
    FOLD_GIVEN_TIME,    /* the ticks: the program may have more or less of them */
    FOLD_GIVEN_SAMPLES, /* all samples: only what is among them varies */
    FOLD_GIVENS,
};

/* Of these there are many. */
struct fold_noise {
    float variance;
    float freedom;
};

struct fold_count {
    uint32_t samples;
    struct fold_noise noise[FOLD_GIVENS];
};

struct fold_tally {
    uint32_t item;
    struct fold_count self;
    struct fold_count total;
};

/* All zero is empty. */
struct fold {
    struct fold_tally *tallies; /* owned; by item; of those with samples */
    size_t tally_count;
    uint64_t sample_count;
    struct noise whole_noise; /* of all samples, of the ticks */
};

/* Returns 0, or -ENOMEM. Either way fold_done() releases it. */
int fold_recording(struct diff_items *items, const struct profile *profile, struct fold *ret);
void fold_done(struct fold *fold);
