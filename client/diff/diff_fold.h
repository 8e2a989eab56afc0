/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One recording, folded: how many samples each item has, and how far that would be elsewhere. Where
 * samples stand for different amounts, these count, in a unit in which a sample is about 1: so the
 * noise of a sum is that of so many samples.
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

/* What an item's samples stand for. */
struct fold_value {
    uint64_t self;
    uint64_t total;
};

/* All zero is empty. */
struct fold {
    struct fold_tally *tallies; /* owned; by item; of those with samples */
    struct fold_value *values;  /* owned; by tally; NULL: each sample is 1 */
    size_t tally_count;
    uint64_t sample_count;
    uint64_t value;           /* of all samples */
    double unit;              /* in which noise is, and what follows; 1 where each sample is 1 */
    struct noise whole_noise; /* of all samples, of the ticks */
};

/* The unit for a profile: what a sample stands for, each counted by that. So many samples of that
 * value each would be as sure as the profile's. */
double fold_unit(const struct profile *profile);

/* Returns 0, or -ENOMEM. Either way fold_done() releases it. */
int fold_recording(struct diff_items *items, const struct profile *profile, double unit,
                   struct fold *ret);
void fold_done(struct fold *fold);

/* In the unit: of a tally, and of all samples. */
static inline double fold_self(const struct fold *fold, size_t tally)
{
    return fold->values == NULL ? (double)fold->tallies[tally].self.samples
                                : (double)fold->values[tally].self / fold->unit;
}

static inline double fold_total(const struct fold *fold, size_t tally)
{
    return fold->values == NULL ? (double)fold->tallies[tally].total.samples
                                : (double)fold->values[tally].total / fold->unit;
}

static inline double fold_whole(const struct fold *fold)
{
    return fold->values == NULL ? (double)fold->sample_count : (double)fold->value / fold->unit;
}
