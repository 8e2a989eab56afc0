/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts the samples of each item, by what they stand for, in blocks of time of equal length. The
 * blocks are of all threads together: what threads do at the same time is in them too. Samples are
 * sorted into runs of one stack in one block first, so that a stack is walked once for each run.
 * The blocks of some items are held at a time; of an item with few samples none are, for they tell
 * nothing: it counts as that many samples of one moment.
 */
#include "diff_fold.h"

#include "cleanup.h"
#include "compare.h"

#include <stdlib.h>
#include <string.h>

#define FEW_SAMPLES   4
#define ITEMS_AT_ONCE ((size_t)16384)
#define BLOCK_SAMPLES 4 /* that a block should have */
#define BLOCKS_LEAST  ((size_t)16)
#define NO_SLOT       UINT32_MAX
#define NO_BLOCKS     SIZE_MAX

/* Samples of one stack in one block. */
struct run {
    uint32_t stack;
    uint32_t block;
    uint32_t samples; /* where there are values, until runs are joined: the number of the sample */
};

/* What is at hand. */
struct folding {
    const struct profile *profile;
    struct fold *fold;
    struct diff_stacks stacks;
    struct run *runs; /* owned; by stack, then block */
    size_t run_count;
    uint64_t *run_values; /* owned; by run; NULL: each sample is 1 */
    size_t block_count;
    double *whole;     /* owned; samples by block */
    uint32_t *slot_of; /* owned; by item: where its blocks are, or NO_SLOT */
    uint32_t *blocks;  /* owned; of each slot those of self and those of total; or, in the unit, */
    double *value_blocks; /* owned; the same where there are values */
};

static void folding_done(struct folding *folding)
{
    diff_stacks_done(&folding->stacks);
    free(folding->runs);
    free(folding->run_values);
    free(folding->whole);
    free(folding->slot_of);
    free(folding->blocks);
    free(folding->value_blocks);
}

void fold_done(struct fold *fold)
{
    free(fold->tallies);
    free(fold->values);
    *fold = (struct fold){0};
}

static int compare_runs(const void *left, const void *right)
{
    const struct run *a = left;
    const struct run *b = right;
    int r = compare_u64(a->stack, b->stack);
    return r != 0 ? r : compare_u64(a->block, b->block);
}

static size_t choose_blocks(uint64_t sample_count)
{
    size_t count = SERIES_BLOCKS;
    while (count > BLOCKS_LEAST && sample_count < BLOCK_SAMPLES * count) {
        count /= 2;
    }
    return count;
}

double fold_unit(const struct profile *profile)
{
    double squares = 0;
    for (size_t i = 0; i < profile->sample_count && profile->values != NULL; i++) {
        squares += (double)profile->values[i] * (double)profile->values[i];
    }
    return squares > 0 ? squares / (double)profile_total(profile) : 1;
}

/* Makes one run of those that are of one stack in one block. */
static int join_runs(struct folding *folding)
{
    const struct profile *profile = folding->profile;
    if (profile->values != NULL) {
        folding->run_values = calloc(profile->sample_count + 1, sizeof *folding->run_values);
        if (folding->run_values == NULL) {
            return -ENOMEM;
        }
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        struct run run = folding->runs[i];
        struct run *last = folding->run_count == 0 ? NULL : &folding->runs[folding->run_count - 1];
        uint64_t value = profile->values == NULL ? 1 : profile->values[run.samples];
        if (last != NULL && compare_runs(last, &run) == 0) {
            last->samples++;
        } else {
            run.samples = 1;
            folding->runs[folding->run_count++] = run;
        }
        if (folding->run_values != NULL) {
            folding->run_values[folding->run_count - 1] += value;
        }
    }
    return 0;
}

static uint64_t value_of_run(const struct folding *folding, size_t run)
{
    return folding->run_values == NULL ? folding->runs[run].samples : folding->run_values[run];
}

static int find_runs(struct folding *folding)
{
    const struct profile *profile = folding->profile;
    double length_ns = (double)(profile->last_ns - profile->first_ns) + 1;
    folding->block_count = choose_blocks(profile->sample_count);
    folding->runs = calloc(profile->sample_count + 1, sizeof *folding->runs);
    folding->whole = calloc(folding->block_count, sizeof *folding->whole);
    if (folding->runs == NULL || folding->whole == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        double part = (double)(profile->samples[i].time_ns - profile->first_ns) / length_ns;
        size_t block = (size_t)(part * (double)folding->block_count);
        block = block < folding->block_count ? block : folding->block_count - 1;
        folding->runs[i] = (struct run){folding->stacks.of_sample[i], (uint32_t)block, (uint32_t)i};
        folding->whole[block] += (double)profile_value(profile, i) / folding->fold->unit;
    }
    qsort(folding->runs, profile->sample_count, sizeof *folding->runs, compare_runs);
    return join_runs(folding);
}

/* The items of a stack, innermost first. */
static const uint32_t *items_of(const struct folding *folding, uint32_t stack, size_t *ret_count)
{
    size_t begin = stack == 0 ? 0 : folding->stacks.ends[stack - 1];
    *ret_count = folding->stacks.ends[stack] - begin;
    return folding->stacks.items + begin;
}

/* Adds up what the samples of each item stand for, by item for now. */
static int count_values(struct folding *folding, size_t item_count)
{
    struct fold *fold = folding->fold;
    fold->values = calloc(item_count + 1, sizeof *fold->values);
    if (fold->values == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < folding->run_count; i++) {
        size_t count = 0;
        const uint32_t *items = items_of(folding, folding->runs[i].stack, &count);
        fold->values[items[0]].self += folding->run_values[i];
        for (size_t at = 0; at < count; at++) {
            fold->values[items[at]].total += folding->run_values[i];
        }
    }
    return 0;
}

/* Makes the tallies, with what they have in all. */
static int count_samples(struct folding *folding, size_t item_count)
{
    struct fold *fold = folding->fold;
    size_t kept = 0;
    fold->tallies = calloc(item_count + 1, sizeof *fold->tallies);
    if (fold->tallies == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < folding->run_count; i++) {
        size_t count = 0;
        const uint32_t *items = items_of(folding, folding->runs[i].stack, &count);
        fold->tallies[items[0]].self.samples += folding->runs[i].samples;
        for (size_t at = 0; at < count; at++) {
            fold->tallies[items[at]].total.samples += folding->runs[i].samples;
        }
    }
    if (folding->run_values != NULL && count_values(folding, item_count) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < item_count; i++) {
        if (fold->tallies[i].total.samples > 0) {
            if (fold->values != NULL) {
                fold->values[kept] = fold->values[i];
            }
            fold->tallies[kept] = fold->tallies[i];
            fold->tallies[kept++].item = (uint32_t)i;
        }
    }
    fold->tally_count = kept;
    struct fold_tally *fewer = reallocarray(fold->tallies, kept + 1, sizeof *fewer);
    fold->tallies = fewer == NULL ? fold->tallies : fewer;
    return 0;
}

/* Gives blocks to the items of the tallies from `first` on, as many as there is room for. Returns
 * where the others begin. */
static size_t give_slots(struct folding *folding, size_t first, size_t item_count)
{
    uint32_t used = 0;
    size_t next = first;
    memset(folding->slot_of, 0xff, item_count * sizeof *folding->slot_of);
    for (; next < folding->fold->tally_count && used < ITEMS_AT_ONCE; next++) {
        const struct fold_tally *tally = &folding->fold->tallies[next];
        if (tally->total.samples >= FEW_SAMPLES) {
            folding->slot_of[tally->item] = used++;
        }
    }
    size_t block_count = (size_t)used * 2 * folding->block_count;
    if (folding->value_blocks != NULL) {
        memset(folding->value_blocks, 0, block_count * sizeof *folding->value_blocks);
    } else {
        memset(folding->blocks, 0, block_count * sizeof *folding->blocks);
    }
    return next;
}

/* Adds a run to a block. */
static void add_to_block(struct folding *folding, size_t block, size_t run)
{
    if (folding->value_blocks != NULL) {
        folding->value_blocks[block] += (double)value_of_run(folding, run) / folding->fold->unit;
    } else {
        folding->blocks[block] += folding->runs[run].samples;
    }
}

static double block_at(const struct folding *folding, size_t block)
{
    return folding->value_blocks != NULL ? folding->value_blocks[block]
                                         : (double)folding->blocks[block];
}

static void fill_blocks(struct folding *folding)
{
    for (size_t i = 0; i < folding->run_count; i++) {
        const struct run *run = &folding->runs[i];
        size_t count = 0;
        const uint32_t *items = items_of(folding, run->stack, &count);
        for (size_t at = 0; at < count; at++) {
            uint32_t slot = folding->slot_of[items[at]];
            size_t of_self = (size_t)slot * 2 * folding->block_count;
            if (slot != NO_SLOT && at == 0) {
                add_to_block(folding, of_self + run->block, i);
            }
            if (slot != NO_SLOT) {
                add_to_block(folding, of_self + folding->block_count + run->block, i);
            }
        }
    }
}

/* Few samples say nothing of how they come. */
static struct noise noise_of_few(double value, size_t block_count)
{
    return (struct noise){value * value, (double)(block_count - 1)};
}

/* Of samples that are `value` in all, in the blocks from `first` on; NO_BLOCKS: in none. */
static void estimate(const struct folding *folding, size_t first, double value,
                     struct fold_count *count)
{
    double residuals[SERIES_BLOCKS];
    double part = value / fold_whole(folding->fold);
    for (enum fold_given given = 0; given < FOLD_GIVENS; given++) {
        struct noise noise = noise_of_few(value, folding->block_count);
        if (count->samples >= FEW_SAMPLES && first != NO_BLOCKS) {
            for (size_t i = 0; i < folding->block_count; i++) {
                residuals[i] = block_at(folding, first + i) -
                               (given == FOLD_GIVEN_TIME ? value / (double)folding->block_count
                                                         : part * folding->whole[i]);
            }
            noise = noise_of_series(residuals, folding->block_count);
        }
        count->noise[given] = (struct fold_noise){(float)noise.variance, (float)noise.freedom};
    }
}

static void estimate_all(struct folding *folding, size_t first, size_t next)
{
    for (size_t i = first; i < next; i++) {
        struct fold_tally *tally = &folding->fold->tallies[i];
        uint32_t slot = folding->slot_of[tally->item];
        size_t of_self = slot == NO_SLOT ? NO_BLOCKS : (size_t)slot * 2 * folding->block_count;
        size_t of_total = slot == NO_SLOT ? NO_BLOCKS : of_self + folding->block_count;
        estimate(folding, of_self, fold_self(folding->fold, i), &tally->self);
        estimate(folding, of_total, fold_total(folding->fold, i), &tally->total);
    }
}

static void estimate_whole(struct folding *folding)
{
    double residuals[SERIES_BLOCKS];
    for (size_t i = 0; i < folding->block_count; i++) {
        residuals[i] = folding->whole[i] - fold_whole(folding->fold) / (double)folding->block_count;
    }
    folding->fold->whole_noise = noise_of_series(residuals, folding->block_count);
}

int fold_recording(struct diff_items *items, const struct profile *profile, double unit,
                   struct fold *ret)
{
    cleanup_(folding_done) struct folding folding = {.profile = profile, .fold = ret};
    *ret = (struct fold){
        .sample_count = profile->sample_count, .value = profile_total(profile), .unit = unit};
    int r = diff_stacks_find(items, profile, &folding.stacks);
    size_t item_count = items->items.item_count;
    r = r < 0 ? r : find_runs(&folding);
    r = r < 0 ? r : count_samples(&folding, item_count);
    if (r < 0) {
        return r;
    }
    size_t at_once = ret->tally_count < ITEMS_AT_ONCE ? ret->tally_count : ITEMS_AT_ONCE;
    folding.slot_of = calloc(item_count + 1, sizeof *folding.slot_of);
    size_t block_count = (at_once + 1) * 2 * folding.block_count;
    if (ret->values != NULL) {
        folding.value_blocks = calloc(block_count, sizeof *folding.value_blocks);
    } else {
        folding.blocks = calloc(block_count, sizeof *folding.blocks);
    }
    if (folding.slot_of == NULL || (folding.blocks == NULL && folding.value_blocks == NULL)) {
        return -ENOMEM;
    }
    for (size_t first = 0, next = 0; first < ret->tally_count; first = next) {
        next = give_slots(&folding, first, item_count);
        fill_blocks(&folding);
        estimate_all(&folding, first, next);
    }
    estimate_whole(&folding);
    return 0;
}
