/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two arrays with free lists: stacks, found by a hash of all that they say, and parts of
 * WAIT_STACKS_PART_FRAMES frames, of which a stack is a chain: its kernel frames, then its user
 * frames. So no room is lost between stacks of different depths, and all of it can be used again.
 * Number 0 is no stack, and no part.
 */
#include "wait_stacks.h"

#include "quota.h"
#include "seeded_hash.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS     WAIT_STACKS_MAX /* a power of two */
#define SHARE_PARTS 2

struct part {
    uint64_t frames[WAIT_STACKS_PART_FRAMES];
    uint32_t next; /* of its stack, or free; 0: the last */
};

struct kept_stack {
    uint64_t hash;
    uint32_t reference_count;
    uint32_t next; /* in its bucket, or free */
    uint32_t first_part;
    uint32_t part_count;
    uint32_t account; /* that is charged */
    uint16_t kernel_count;
    uint16_t user_count;
    uint16_t cfi_frame_count;
    uint16_t fp_frame_count;
    uint8_t quality;
    bool kernel_mode;
};

struct wait_stacks {
    struct quota parts_taken; /* by account */
    struct kept_stack *stacks;
    struct part *parts;
    uint32_t *buckets;
    uint32_t free_stack;  /* the first of those that were used before */
    uint32_t free_part;   /* the same */
    uint32_t stack_count; /* that were ever used, 0 among them */
    uint32_t part_count;
    size_t kept_count;
    uint64_t refused_count;
    uint64_t frames[2 * WAIT_STACKS_FRAMES_MAX]; /* what was shown last, or is looked for */
};

struct wait_stacks *wait_stacks_new(void)
{
    struct wait_stacks *stacks = calloc(1, sizeof *stacks);
    if (stacks == NULL) {
        return NULL;
    }
    stacks->parts_taken.max = WAIT_STACKS_PARTS_MAX;
    stacks->parts_taken.parts = SHARE_PARTS;
    stacks->stacks = calloc(WAIT_STACKS_MAX, sizeof *stacks->stacks);
    stacks->parts = calloc(WAIT_STACKS_PARTS_MAX, sizeof *stacks->parts);
    stacks->buckets = calloc(BUCKETS, sizeof *stacks->buckets);
    stacks->stack_count = 1;
    stacks->part_count = 1;
    bool ok = stacks->stacks != NULL && stacks->parts != NULL && stacks->buckets != NULL;
    return ok ? stacks : wait_stacks_free(stacks);
}

struct wait_stacks *wait_stacks_free(struct wait_stacks *stacks)
{
    if (stacks != NULL) {
        free(stacks->stacks);
        free(stacks->parts);
        free(stacks->buckets);
        free(stacks);
    }
    return NULL;
}

static size_t at_most(size_t count)
{
    return count < WAIT_STACKS_FRAMES_MAX ? count : WAIT_STACKS_FRAMES_MAX;
}

/* Of an account's share: its parts, and one for its place. */
static uint32_t cost_of(const struct kept_stack *stack)
{
    return stack->part_count + 1;
}

/* What is kept of a sample, its frames in `stacks->frames`. */
static struct kept_stack describe(struct wait_stacks *stacks, const struct sample *sample)
{
    struct kept_stack stack = {
        .reference_count = 1,
        .kernel_count = (uint16_t)at_most(sample->kernel_count),
        .user_count = (uint16_t)at_most(sample->user_count),
        .cfi_frame_count = sample->cfi_frame_count,
        .fp_frame_count = sample->fp_frame_count,
        .quality = (uint8_t)sample->quality,
        .kernel_mode = sample->kernel_mode,
    };
    const size_t count = (size_t)stack.kernel_count + stack.user_count;
    if (stack.kernel_count > 0) {
        memcpy(stacks->frames, sample->kernel_stack, stack.kernel_count * sizeof(uint64_t));
    }
    if (stack.user_count > 0) {
        memcpy(stacks->frames + stack.kernel_count, sample->user_stack,
               stack.user_count * sizeof(uint64_t));
    }
    stack.part_count = (uint32_t)((count + WAIT_STACKS_PART_FRAMES - 1) / WAIT_STACKS_PART_FRAMES);
    stack.hash =
        seeded_hash(stacks->frames, count * sizeof(uint64_t)) ^
        seeded_hash_pair((uint64_t)stack.kernel_count << 48 | (uint64_t)stack.user_count << 32 |
                             (uint64_t)stack.quality << 8 | stack.kernel_mode,
                         (uint64_t)stack.cfi_frame_count << 16 | stack.fp_frame_count);
    return stack;
}

static bool has_frames(const struct wait_stacks *stacks, const struct kept_stack *stack)
{
    size_t count = (size_t)stack->kernel_count + stack->user_count;
    const uint64_t *frames = stacks->frames;
    for (uint32_t at = stack->first_part; count > 0; at = stacks->parts[at].next) {
        size_t some = count < WAIT_STACKS_PART_FRAMES ? count : WAIT_STACKS_PART_FRAMES;
        if (memcmp(stacks->parts[at].frames, frames, some * sizeof *frames) != 0) {
            return false;
        }
        frames += some;
        count -= some;
    }
    return true;
}

static bool is_same(const struct wait_stacks *stacks, const struct kept_stack *kept,
                    const struct kept_stack *wanted)
{
    return kept->hash == wanted->hash && kept->kernel_count == wanted->kernel_count &&
           kept->user_count == wanted->user_count && kept->quality == wanted->quality &&
           kept->kernel_mode == wanted->kernel_mode &&
           kept->cfi_frame_count == wanted->cfi_frame_count &&
           kept->fp_frame_count == wanted->fp_frame_count && has_frames(stacks, kept);
}

/* A stack's place; 0: all are taken. */
static uint32_t take_stack(struct wait_stacks *stacks)
{
    uint32_t number = stacks->free_stack;
    if (number != 0) {
        stacks->free_stack = stacks->stacks[number].next;
    } else if (stacks->stack_count < WAIT_STACKS_MAX) {
        number = stacks->stack_count++;
    }
    return number;
}

static uint32_t take_part(struct wait_stacks *stacks)
{
    uint32_t number = stacks->free_part;
    if (number != 0) {
        stacks->free_part = stacks->parts[number].next;
        return number;
    }
    return stacks->part_count++;
}

/* The quota has had that there are as many. */
static uint32_t fill_parts(struct wait_stacks *stacks, const struct kept_stack *stack)
{
    size_t left = (size_t)stack->kernel_count + stack->user_count;
    const uint64_t *frames = stacks->frames;
    uint32_t first = 0;
    uint32_t *link = &first;
    while (left > 0) {
        size_t some = left < WAIT_STACKS_PART_FRAMES ? left : WAIT_STACKS_PART_FRAMES;
        *link = take_part(stacks);
        struct part *part = &stacks->parts[*link];
        memcpy(part->frames, frames, some * sizeof *frames);
        part->next = 0;
        link = &part->next;
        frames += some;
        left -= some;
    }
    return first;
}

uint32_t wait_stacks_add(struct wait_stacks *stacks, const struct sample *sample, uint32_t account)
{
    struct kept_stack stack = describe(stacks, sample);
    uint32_t *bucket = &stacks->buckets[stack.hash % BUCKETS];
    for (uint32_t i = *bucket; i != 0; i = stacks->stacks[i].next) {
        if (is_same(stacks, &stacks->stacks[i], &stack)) {
            stacks->stacks[i].reference_count++;
            return i;
        }
    }
    if (!quota_take(&stacks->parts_taken, account, cost_of(&stack))) {
        stacks->refused_count++;
        return 0;
    }
    uint32_t number = take_stack(stacks);
    if (number == 0) {
        quota_give(&stacks->parts_taken, account, cost_of(&stack));
        stacks->refused_count++;
        return 0;
    }
    stack.account = account;
    stack.first_part = fill_parts(stacks, &stack);
    stack.next = *bucket;
    stacks->stacks[number] = stack;
    *bucket = number;
    stacks->kept_count++;
    return number;
}

static void forget(struct wait_stacks *stacks, uint32_t number)
{
    struct kept_stack *stack = &stacks->stacks[number];
    uint32_t *link = &stacks->buckets[stack->hash % BUCKETS];
    while (*link != number) {
        link = &stacks->stacks[*link].next;
    }
    *link = stack->next;
    for (uint32_t at = stack->first_part; at != 0;) {
        uint32_t next = stacks->parts[at].next;
        stacks->parts[at].next = stacks->free_part;
        stacks->free_part = at;
        at = next;
    }
    quota_give(&stacks->parts_taken, stack->account, cost_of(stack));
    stack->next = stacks->free_stack;
    stacks->free_stack = number;
    stacks->kept_count--;
}

void wait_stacks_release(struct wait_stacks *stacks, uint32_t number)
{
    if (number != 0 && --stacks->stacks[number].reference_count == 0) {
        forget(stacks, number);
    }
}

void wait_stacks_show(struct wait_stacks *stacks, uint32_t number, struct sample *sample)
{
    const struct kept_stack *stack = &stacks->stacks[number];
    size_t count = (size_t)stack->kernel_count + stack->user_count;
    uint64_t *to = stacks->frames;
    for (uint32_t at = stack->first_part; count > 0; at = stacks->parts[at].next) {
        size_t some = count < WAIT_STACKS_PART_FRAMES ? count : WAIT_STACKS_PART_FRAMES;
        memcpy(to, stacks->parts[at].frames, some * sizeof *to);
        to += some;
        count -= some;
    }
    sample->kernel_mode = stack->kernel_mode;
    sample->quality = stack->quality;
    sample->cfi_frame_count = stack->cfi_frame_count;
    sample->fp_frame_count = stack->fp_frame_count;
    sample->kernel_stack = stacks->frames;
    sample->kernel_count = stack->kernel_count;
    sample->user_stack = stacks->frames + stack->kernel_count;
    sample->user_count = stack->user_count;
}

size_t wait_stacks_count(const struct wait_stacks *stacks)
{
    return stacks->kept_count;
}

uint64_t wait_stacks_refused(const struct wait_stacks *stacks)
{
    return stacks->refused_count;
}
