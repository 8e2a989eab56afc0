/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers what tells samples apart in a format: keys of a fixed length, from 0 upward in the order
 * in which they come. A recording has many chains of frames, and most of them in samples of one
 * key. So each chain has its first key at hand, in one place of memory that can be fetched ahead;
 * only others are kept in a table, and looked up by their hash.
 */

#include "profile.h"

#include <stddef.h>
#include <stdint.h>

/* What a sample's stack is in formats, besides the time. Padded by hand, since its bytes are a key.
 */
struct stack_key {
    uint64_t pid;
    uint32_t segment;
    uint32_t chain;
    uint32_t user_stack;
    uint32_t rest_stack;
    uint32_t kernel_stack;
    uint32_t is_truncated; /* it does not reach its root */
};

static inline struct stack_key stack_key(const struct profile *profile,
                                         const struct profile_sample *sample)
{
    const struct profile_task *task = profile_task(profile, sample->task);
    return (struct stack_key){
        .pid = task->pid,
        .segment = task->segment,
        .chain = sample->chain,
        .user_stack = sample->user_stack,
        .rest_stack = sample->rest_stack,
        .kernel_stack = sample->kernel_stack,
        .is_truncated = profile_rooted(sample) == PROFILE_STACK_TRUNCATED,
    };
}

/* All zero is empty. */
struct chain_keys {
    struct intern others; /* keys that are no chain's first */
    uint32_t *number_of;  /* owned; by item of `others` */
    size_t number_capacity;
    size_t count;     /* of keys */
    size_t key_bytes; /* of each key; a multiple of 8 */
    uint64_t *first;  /* owned; by chain: 1 + the number of its first key (0: none yet), the key */
    size_t chain_count;
};

void chain_keys_done(struct chain_keys *table);

/* The number of a key (borrowed) of a sample of the profile, new or not. All keys have the same
 * length. Returns 0, or -ENOMEM. */
int chain_keys_add(struct chain_keys *table, const struct profile *profile,
                   const struct profile_sample *sample, const void *key, size_t key_bytes,
                   uint32_t *ret_item);

/* Fetches into the CPU's cache what chain_keys_add() will look at for a sample that comes soon. */
void chain_keys_fetch(const struct chain_keys *table, const struct profile_sample *sample);

/* The number of the first key that the sample's chain had, or INTERN_NONE. */
uint32_t chain_keys_first(const struct chain_keys *table, const struct profile_sample *sample);

/* So many samples ahead keys are fetched. */
#define CHAIN_KEYS_AHEAD ((size_t)16)

/* Fetches what will be needed for the sample so far behind the one `at`, where there is one. */
static inline void chain_keys_fetch_ahead(const struct chain_keys *table,
                                          const struct profile *profile, size_t at)
{
    if (profile->sample_count - at > CHAIN_KEYS_AHEAD) {
        chain_keys_fetch(table, &profile->samples[at + CHAIN_KEYS_AHEAD]);
    }
}
