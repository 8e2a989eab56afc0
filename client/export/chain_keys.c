/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An array by chain beside a table of all keys.
 */
#include "chain_keys.h"

#include "extremes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void chain_keys_done(struct chain_keys *table)
{
    intern_done(&table->keys);
    free(table->first);
    *table = (struct chain_keys){0};
}

static size_t entry_words(const struct chain_keys *table)
{
    return 1 + table->key_bytes / sizeof *table->first;
}

static uint64_t *first_of(const struct chain_keys *table, uint32_t chain)
{
    return &table->first[chain * entry_words(table)];
}

/* Makes room for all chains that the profile has by now: for at least twice as many as before,
 * since a profile that is live has more each time. */
static int extend(struct chain_keys *table, const struct profile *profile, size_t key_bytes)
{
    size_t chain_count = max_u64(profile->chains.item_count, 2 * table->chain_count);
    table->key_bytes = key_bytes;
    size_t entry_bytes = entry_words(table) * sizeof *table->first;
    uint64_t *first = calloc(chain_count, entry_bytes);
    if (first == NULL) {
        return -ENOMEM;
    }
    if (table->first != NULL) {
        memcpy(first, table->first, table->chain_count * entry_bytes);
    }
    free(table->first);
    table->first = first;
    table->chain_count = chain_count;
    return 0;
}

void chain_keys_fetch(const struct chain_keys *table, const struct profile_sample *sample)
{
    if (sample->chain < table->chain_count) {
        const uint64_t *first = first_of(table, sample->chain);
        __builtin_prefetch(first);
        __builtin_prefetch(first + entry_words(table) - 1);
    }
}

uint32_t chain_keys_first(const struct chain_keys *table, const struct profile_sample *sample)
{
    uint64_t number = sample->chain < table->chain_count ? first_of(table, sample->chain)[0] : 0;
    return number == 0 ? INTERN_NONE : (uint32_t)(number - 1);
}

int chain_keys_add(struct chain_keys *table, const struct profile *profile,
                   const struct profile_sample *sample, const void *key, size_t key_bytes,
                   uint32_t *ret_item)
{
    if (sample->chain >= table->chain_count && extend(table, profile, key_bytes) < 0) {
        return -ENOMEM;
    }
    uint64_t *first = first_of(table, sample->chain);
    if (first[0] > 0 && memcmp(first + 1, key, key_bytes) == 0) {
        *ret_item = (uint32_t)(first[0] - 1);
        return 0;
    }
    int r = intern_add(&table->keys, key, key_bytes, ret_item);
    if (r == 0 && first[0] == 0) {
        first[0] = (uint64_t)*ret_item + 1;
        memcpy(first + 1, key, key_bytes);
    }
    return r;
}
