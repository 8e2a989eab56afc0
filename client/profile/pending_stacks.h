/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Stacks of a profile that is loaded, on their way to their numbers. A table of many stacks is
 * larger than a cache, so looking one up waits for memory twice. A stack is queued, and while
 * others come its places are fetched; numbers are given in the order in which stacks came.
 */

#include "profile.h"

#define PENDING_MAX       16
#define PENDING_WORDS_MAX 64 /* longer stacks do not wait */

/* What has the number. */
enum pending_owner {
    PENDING_SAMPLE_USER,
    PENDING_SAMPLE_KERNEL,
    PENDING_GROUP_USER,
    PENDING_GROUP_KERNEL,
};

/* All zero is empty. */
struct pending_stacks {
    struct {
        uint64_t words[PENDING_WORDS_MAX];
        size_t count;
        size_t index; /* of the owner */
        enum pending_owner owner;
        uint32_t hash;
    } ring[PENDING_MAX];
    size_t first;
    size_t count;
};

/* Queues a stack (borrowed) of the sample or group `index` of the profile. Returns 0, or -ENOMEM.
 */
int pending_stacks_add(struct pending_stacks *pending, struct profile *profile,
                       enum pending_owner owner, size_t index, const uint64_t *stack, size_t count);

/* Gives all that are queued their numbers. Returns 0, or -ENOMEM. */
int pending_stacks_settle(struct pending_stacks *pending, struct profile *profile);
