/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An experiment: could stacks that the copy cuts be completed from earlier samples of their thread?
 * Each sample is unwound once from all bytes, which is taken for the truth, and once from the first
 * of them, without the kernel's chain. A stack that is cut is completed from the newest earlier one
 * that reached its root, by itself or completed, and has the same return addresses at the same
 * places as the outermost frames of the cut one.
 *
 * Where a return address lies is not part of what unwind_stack() says. It is found by giving it
 * less and less: a frame is there exactly if its return address was copied.
 */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MATCHES_MAX ((size_t)4)

struct known_stack {
    pid_t tid;
    bool is_rooted;
    size_t count;
    uint64_t *frames; /* owned, as the other */
    uint64_t *places; /* the address behind the return address; of the sampled frame 0 */
};

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

/* How many bytes it takes to see more than `count` frames. */
static size_t find_bytes(struct oracle_ours *ours, const struct oracle_sample *sample, size_t count,
                         size_t low, size_t high)
{
    static struct oracle_stack stack;
    struct unwind_result result;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        unwind_first(ours, sample, middle, &stack, &result);
        if (stack.count > count) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static struct known_stack make_known(struct oracle_ours *ours, const struct oracle_sample *sample,
                                     size_t copy_bytes, struct unwind_result *result)
{
    static struct oracle_stack stack;
    size_t bytes = 0;
    size_t high = sample->stack_bytes < copy_bytes ? sample->stack_bytes : copy_bytes;
    unwind_first(ours, sample, copy_bytes, &stack, result);
    struct known_stack known = {
        .tid = sample->tid,
        .is_rooted = result->quality == STACK_COMPLETE,
        .count = stack.count,
        .frames = oracle_alloc(NULL, UNWIND_DEPTH_MAX * sizeof(uint64_t)),
        .places = oracle_alloc(NULL, UNWIND_DEPTH_MAX * sizeof(uint64_t)),
    };
    memcpy(known.frames, stack.frames, stack.count * sizeof *stack.frames);
    known.places[0] = 0;
    for (size_t i = 1; i < stack.count; i++) {
        bytes = find_bytes(ours, sample, i, bytes, high);
        known.places[i] = sample->registers[ARCH_DWARF_SP] + bytes;
    }
    return known;
}

/* Which frame of `other` is the outermost one of `known`, or 0. */
static size_t find_match(const struct known_stack *known, const struct known_stack *other,
                         size_t match_count)
{
    size_t last = known->count - 1;
    for (size_t i = match_count; i < other->count && match_count <= last; i++) {
        size_t same = 0;
        while (same < match_count && other->places[i - same] == known->places[last - same] &&
               other->frames[i - same] == known->frames[last - same]) {
            same++;
        }
        if (same == match_count) {
            return i;
        }
    }
    return 0;
}

/* The newest stack before this one goes on as this one, if there is such a one. */
static bool stitch(struct known_stack *stacks, size_t index, size_t match_count)
{
    struct known_stack *known = &stacks[index];
    for (size_t i = index; i-- > 0;) {
        const struct known_stack *other = &stacks[i];
        size_t at = other->tid == known->tid && other->is_rooted
                        ? find_match(known, other, match_count)
                        : 0;
        if (at == 0 || known->count + other->count - at > UNWIND_DEPTH_MAX) {
            continue;
        }
        for (size_t from = at + 1; from < other->count; from++) {
            known->frames[known->count] = other->frames[from];
            known->places[known->count++] = other->places[from];
        }
        known->is_rooted = true;
        return true;
    }
    return false;
}

static struct outcome try_stitching(struct oracle_ours *ours, const struct oracle_process *process,
                                    size_t copy_bytes, size_t match_count)
{
    struct known_stack *stacks = oracle_alloc(NULL, (process->sample_count + 1) * sizeof *stacks);
    struct outcome outcome = {0};
    for (size_t i = 0; i < process->sample_count; i++) {
        static struct oracle_stack whole;
        struct unwind_result result;
        struct unwind_result whole_result;
        stacks[i] = make_known(ours, &process->samples[i], copy_bytes, &result);
        if (result.quality != STACK_SHORT_COPY) {
            continue;
        }
        outcome.cut_count++;
        if (!stitch(stacks, i, match_count)) {
            continue;
        }
        outcome.stitched_count++;
        unwind_first(ours, &process->samples[i], SIZE_MAX, &whole, &whole_result);
        if (whole_result.quality != STACK_COMPLETE) {
            outcome.unknown_count++;
        } else if (whole.count == stacks[i].count &&
                   memcmp(whole.frames, stacks[i].frames, whole.count * sizeof *whole.frames) ==
                       0) {
            outcome.right_count++;
        }
    }
    for (size_t i = 0; i < process->sample_count; i++) {
        free(stacks[i].frames);
        free(stacks[i].places);
    }
    free(stacks);
    return outcome;
}

void oracle_stitch(struct oracle_ours *ours, const struct oracle_process *process,
                   size_t copy_bytes)
{
    for (size_t match_count = 1; match_count <= MATCHES_MAX; match_count *= 2) {
        struct outcome outcome = try_stitching(ours, process, copy_bytes, match_count);
        size_t known_count = outcome.stitched_count - outcome.unknown_count;
        (void)printf("    of %zu bytes, by %zu frames: %zu cut, %zu stitched (%.1f %%), %zu of %zu "
                     "right (%.2f %%)\n",
                     copy_bytes, match_count, outcome.cut_count, outcome.stitched_count,
                     outcome.cut_count == 0
                         ? 0.0
                         : 100.0 * (double)outcome.stitched_count / (double)outcome.cut_count,
                     outcome.right_count, known_count,
                     known_count == 0 ? 0.0
                                      : 100.0 * (double)outcome.right_count / (double)known_count);
    }
}
