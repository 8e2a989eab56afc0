/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An array by chain, which has first keys, beside a table of the other keys. A key has its chain in
 * it, so no two chains have one key.
 */
#include "chain_keys.h"

#include "extremes.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void chain_keys_done(struct chain_keys *table)
{
    intern_done(&table->others);
    free(table->number_of);
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

/* The number of a key that is not its chain's first. */
static int add_other(struct chain_keys *table, const void *key, uint32_t *ret_item)
{
    size_t known_count = table->others.item_count;
    uint32_t item = 0;
    if (intern_add(&table->others, key, table->key_bytes, &item) < 0 ||
        grow(table->number_of, table->number_capacity, (size_t)item + 1) < 0) {
        return -ENOMEM;
    }
    if (item == known_count) {
        table->number_of[item] = (uint32_t)table->count++;
    }
    *ret_item = table->number_of[item];
    return 0;
}

int chain_keys_add(struct chain_keys *table, const struct profile *profile,
                   const struct profile_sample *sample, const void *key, size_t key_bytes,
                   uint32_t *ret_item)
{
    if (sample->chain >= table->chain_count && extend(table, profile, key_bytes) < 0) {
        return -ENOMEM;
    }
    uint64_t *first = first_of(table, sample->chain);
    if (first[0] == 0) {
        memcpy(first + 1, key, key_bytes);
        first[0] = ++table->count;
    } else if (memcmp(first + 1, key, key_bytes) != 0) {
        return add_other(table, key, ret_item);
    }
    *ret_item = (uint32_t)(first[0] - 1);
    return 0;
}
