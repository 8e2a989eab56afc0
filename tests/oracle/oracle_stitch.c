/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How often is a stack right that stitch.c has completed? Each sample is unwound once from all
 * bytes, which is taken for the truth, and once from the first of them, without the kernel's chain.
 */
#include "oracle.h"
#include "stitch.h"

#include <stdio.h>
#include <string.h>

struct outcome {
    size_t cut_count;
    size_t stitched_count;
    size_t right_count;
    size_t unknown_count; /* all bytes do not reach the root either */
};

static void unwind_first(struct oracle_ours *ours, const struct oracle_sample *sample,
                         size_t stack_bytes, struct oracle_stack *ret, struct unwind_result *result)
{
    struct oracle_sample cut = *sample;
    cut.chain_count = 0;
    if (stack_bytes < cut.stack_bytes) {
        cut.stack_bytes = stack_bytes;
        cut.stack_cut = true;
    }
    oracle_ours_unwind(ours, &cut, ret, result);
}

static void judge(struct oracle_ours *ours, const struct oracle_sample *sample,
                  const struct stitch_stack *stitched, struct outcome *outcome)
{
    static struct oracle_stack whole;
    struct unwind_result result;
    outcome->stitched_count++;
    unwind_first(ours, sample, SIZE_MAX, &whole, &result);
    if (result.quality != STACK_COMPLETE) {
        outcome->unknown_count++;
    } else if (whole.count == stitched->count &&
               memcmp(whole.frames, stitched->frames, whole.count * sizeof *whole.frames) == 0) {
        outcome->right_count++;
    }
}

static double percent(size_t part, size_t whole)
{
    return whole == 0 ? 0.0 : 100.0 * (double)part / (double)whole;
}

void oracle_stitch(struct oracle_ours *ours, const struct oracle_process *process,
                   size_t copy_bytes)
{
    static struct oracle_stack stack;
    struct stitch *stitch = stitch_new(UNWIND_DEPTH_MAX);
    struct outcome outcome = {0};
    for (size_t i = 0; stitch != NULL && i < process->sample_count; i++) {
        const struct oracle_sample *sample = &process->samples[i];
        struct unwind_result result;
        unwind_first(ours, sample, copy_bytes, &stack, &result);
        struct stitch_stack found = {stack.frames, stack.places, stack.count};
        bool is_rooted = result.quality == STACK_COMPLETE;
        if (result.quality == STACK_SHORT_COPY) {
            outcome.cut_count++;
            is_rooted = stitch_complete(stitch, 1, sample->tid, &found);
            if (is_rooted) {
                judge(ours, sample, &found, &outcome);
            }
        }
        if (is_rooted) {
            stitch_learn(stitch, 1, sample->tid, &found);
        }
    }
    (void)stitch_free(stitch);
    size_t known_count = outcome.stitched_count - outcome.unknown_count;
    (void)printf("    of %zu bytes: %zu cut, %zu stitched (%.1f %%), %zu of %zu right (%.2f %%)\n",
                 copy_bytes, outcome.cut_count, outcome.stitched_count,
                 percent(outcome.stitched_count, outcome.cut_count), outcome.right_count,
                 known_count, percent(outcome.right_count, known_count));
}
