/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A ring. A stack's slot is fetched when it comes, its item when it is half-way, and it is looked
 * up when the ring is full.
 */
#include "pending_stacks.h"

#include <string.h>

static void give_number(struct profile *profile, enum pending_owner owner, size_t index,
                        uint32_t number)
{
    switch (owner) {
    case PENDING_SAMPLE_USER:
        profile->samples[index].user_stack = number;
        break;
    case PENDING_SAMPLE_KERNEL:
        profile->samples[index].kernel_stack = number;
        break;
    case PENDING_GROUP_USER:
        profile->groups[index].user_stack = number;
        break;
    case PENDING_GROUP_KERNEL:
        profile->groups[index].kernel_stack = number;
        break;
    }
}

/* Gives the oldest its number. */
static int settle_first(struct pending_stacks *pending, struct profile *profile)
{
    size_t at = pending->first;
    uint32_t number = 0;
    int r = intern_add_hashed(&profile->stacks, pending->ring[at].hash, pending->ring[at].words,
                              pending->ring[at].count * sizeof(uint64_t), &number);
    if (r == 0) {
        give_number(profile, pending->ring[at].owner, pending->ring[at].index, number);
        pending->first = (at + 1) % PENDING_MAX;
        pending->count--;
    }
    return r;
}

int pending_stacks_settle(struct pending_stacks *pending, struct profile *profile)
{
    int r = 0;
    while (pending->count > 0 && r == 0) {
        r = settle_first(pending, profile);
    }
    return r;
}

static int add_long(struct pending_stacks *pending, struct profile *profile,
                    enum pending_owner owner, size_t index, const uint64_t *stack, size_t count)
{
    uint32_t number = 0;
    int r = pending_stacks_settle(pending, profile);
    if (r == 0) {
        r = intern_add(&profile->stacks, stack, count * sizeof *stack, &number);
    }
    if (r == 0) {
        give_number(profile, owner, index, number);
    }
    return r;
}

int pending_stacks_add(struct pending_stacks *pending, struct profile *profile,
                       enum pending_owner owner, size_t index, const uint64_t *stack, size_t count)
{
    if (count == 0 || count > PENDING_WORDS_MAX) {
        return count == 0 ? 0 : add_long(pending, profile, owner, index, stack, count);
    }
    int r = pending->count == PENDING_MAX ? settle_first(pending, profile) : 0;
    if (r < 0) {
        return r;
    }
    size_t at = (pending->first + pending->count++) % PENDING_MAX;
    memcpy(pending->ring[at].words, stack, count * sizeof *stack);
    pending->ring[at].count = count;
    pending->ring[at].index = index;
    pending->ring[at].owner = owner;
    pending->ring[at].hash = intern_hash(stack, count * sizeof *stack);
    intern_fetch_slot(&profile->stacks, pending->ring[at].hash);
    if (pending->count > PENDING_MAX / 2) {
        size_t half_way = (at + PENDING_MAX / 2) % PENDING_MAX;
        intern_fetch_item(&profile->stacks, pending->ring[half_way].hash,
                          pending->ring[half_way].count * sizeof *stack);
    }
    return 0;
}
