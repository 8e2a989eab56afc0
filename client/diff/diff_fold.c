/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts the samples of each item in blocks of time of equal length. The blocks are of all threads
 * together: what threads do at the same time is in them too. Samples are sorted into runs of one
 * stack in one block first, so that a stack is walked once for each run. The blocks of some items
 * are held at a time; of an item with few samples none are, for they tell nothing: it counts as
 * that many samples of one moment.
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

/* Samples of one stack in one block. */
struct run {
    uint32_t stack;
    uint32_t block;
    uint32_t samples;
};

/* What is at hand. */
struct folding {
    const struct profile *profile;
    struct fold *fold;
    struct diff_stacks stacks;
    struct run *runs; /* owned; by stack, then block */
    size_t run_count;
    size_t block_count;
    double *whole;     /* owned; samples by block */
    uint32_t *slot_of; /* owned; by item: where its blocks are, or NO_SLOT */
    uint32_t *blocks;  /* owned; of each slot those of self and those of total */
};

static void folding_done(struct folding *folding)
{
    diff_stacks_done(&folding->stacks);
    free(folding->runs);
    free(folding->whole);
    free(folding->slot_of);
    free(folding->blocks);
}

void fold_done(struct fold *fold)
{
    free(fold->tallies);
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
        folding->runs[i] = (struct run){folding->stacks.of_sample[i], (uint32_t)block, 1};
        folding->whole[block]++;
    }
    qsort(folding->runs, profile->sample_count, sizeof *folding->runs, compare_runs);
    for (size_t i = 0; i < profile->sample_count; i++) {
        struct run *last = folding->run_count == 0 ? NULL : &folding->runs[folding->run_count - 1];
        if (last != NULL && compare_runs(last, &folding->runs[i]) == 0) {
            last->samples++;
        } else {
            folding->runs[folding->run_count++] = folding->runs[i];
        }
    }
    return 0;
}

/* The items of a stack, innermost first. */
static const uint32_t *items_of(const struct folding *folding, uint32_t stack, size_t *ret_count)
{
    size_t begin = stack == 0 ? 0 : folding->stacks.ends[stack - 1];
    *ret_count = folding->stacks.ends[stack] - begin;
    return folding->stacks.items + begin;
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
    for (size_t i = 0; i < item_count; i++) {
        if (fold->tallies[i].total.samples > 0) {
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
    memset(folding->blocks, 0, (size_t)used * 2 * folding->block_count * sizeof *folding->blocks);
    return next;
}

static void fill_blocks(struct folding *folding)
{
    for (size_t i = 0; i < folding->run_count; i++) {
        const struct run *run = &folding->runs[i];
        size_t count = 0;
        const uint32_t *items = items_of(folding, run->stack, &count);
        for (size_t at = 0; at < count; at++) {
            uint32_t slot = folding->slot_of[items[at]];
            if (slot != NO_SLOT) {
                uint32_t *of_self = folding->blocks + (size_t)slot * 2 * folding->block_count;
                of_self[run->block] += at == 0 ? run->samples : 0;
                of_self[folding->block_count + run->block] += run->samples;
            }
        }
    }
}

/* Few samples say nothing of how they come. */
static struct noise noise_of_few(uint64_t samples, size_t block_count)
{
    return (struct noise){(double)samples * (double)samples, (double)(block_count - 1)};
}

static void estimate(const struct folding *folding, const uint32_t *blocks,
                     struct fold_count *count)
{
    double residuals[SERIES_BLOCKS];
    double part = (double)count->samples / (double)folding->fold->sample_count;
    for (enum fold_given given = 0; given < FOLD_GIVENS; given++) {
        struct noise noise = noise_of_few(count->samples, folding->block_count);
        if (count->samples >= FEW_SAMPLES && blocks != NULL) {
            for (size_t i = 0; i < folding->block_count; i++) {
                residuals[i] =
                    (double)blocks[i] - (given == FOLD_GIVEN_TIME
                                             ? (double)count->samples / (double)folding->block_count
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
        const uint32_t *of_self =
            slot == NO_SLOT ? NULL : folding->blocks + (size_t)slot * 2 * folding->block_count;
        estimate(folding, of_self, &tally->self);
        estimate(folding, of_self == NULL ? NULL : of_self + folding->block_count, &tally->total);
    }
}

static void estimate_whole(struct folding *folding)
{
    double residuals[SERIES_BLOCKS];
    for (size_t i = 0; i < folding->block_count; i++) {
        residuals[i] =
            folding->whole[i] - (double)folding->fold->sample_count / (double)folding->block_count;
    }
    folding->fold->whole_noise = noise_of_series(residuals, folding->block_count);
}

int fold_recording(struct diff_items *items, const struct profile *profile, struct fold *ret)
{
    cleanup_(folding_done) struct folding folding = {.profile = profile, .fold = ret};
    *ret = (struct fold){.sample_count = profile->sample_count};
    int r = diff_stacks_find(items, profile, &folding.stacks);
    size_t item_count = items->items.item_count;
    r = r < 0 ? r : find_runs(&folding);
    r = r < 0 ? r : count_samples(&folding, item_count);
    if (r < 0) {
        return r;
    }
    size_t at_once = ret->tally_count < ITEMS_AT_ONCE ? ret->tally_count : ITEMS_AT_ONCE;
    folding.slot_of = calloc(item_count + 1, sizeof *folding.slot_of);
    folding.blocks = calloc(at_once + 1, 2 * folding.block_count * sizeof *folding.blocks);
    if (folding.slot_of == NULL || folding.blocks == NULL) {
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
