/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table of entries, doubled when it is half full, so that a look-up is one access to memory as a
 * rule. The hash is seeded per process, as for all tables that a file fills.
 */
#include "frame_cache.h"

#include "huge_pages.h"
#include "seeded_hash.h"

#include <errno.h>
#include <stdlib.h>

#define CAPACITY_MIN 1024
#define OWNER_MASK   ((UINT32_C(1) << 30) - 1)

void frame_cache_done(struct frame_cache *cache)
{
    free(cache->entries);
    *cache = (struct frame_cache){0};
}

uint64_t frame_cache_size_bytes(const struct frame_cache *cache)
{
    return (uint64_t)cache->count * sizeof *cache->entries;
}

/* The entry of the key, or the free one where it goes. */
static struct frame_cache_entry *find_entry(const struct frame_cache *cache, uint32_t owner,
                                            uint64_t address)
{
    size_t mask = cache->capacity - 1;
    size_t at = (size_t)seeded_hash_pair(address, owner) & mask;
    struct frame_cache_entry *entry = &cache->entries[at];
    while (entry->is_used && (entry->address != address || entry->owner != owner)) {
        at = (at + 1) & mask;
        entry = &cache->entries[at];
    }
    return entry;
}

static int double_entries(struct frame_cache *cache)
{
    struct frame_cache doubled = {
        .capacity = cache->capacity == 0 ? CAPACITY_MIN : cache->capacity * 2,
        .count = cache->count,
    };
    doubled.entries = calloc(doubled.capacity, sizeof *doubled.entries);
    if (doubled.entries == NULL) {
        return -ENOMEM;
    }
    huge_pages_want(doubled.entries, doubled.capacity * sizeof *doubled.entries);
    for (size_t i = 0; i < cache->capacity; i++) {
        const struct frame_cache_entry *entry = &cache->entries[i];
        if (entry->is_used) {
            *find_entry(&doubled, entry->owner, entry->address) = *entry;
        }
    }
    free(cache->entries);
    *cache = doubled;
    return 0;
}

void frame_cache_fetch(const struct frame_cache *cache, uint32_t owner, uint64_t address)
{
    if (cache->capacity > 0) {
        size_t at = (size_t)seeded_hash_pair(address, owner) & (cache->capacity - 1);
        __builtin_prefetch(&cache->entries[at]);
    }
}

int frame_cache_find(struct frame_cache *cache, uint32_t owner, uint64_t address,
                     struct frame_cache_entry **ret)
{
    if (cache->count * 2 >= cache->capacity) {
        int r = double_entries(cache);
        if (r < 0) {
            return r;
        }
    }
    struct frame_cache_entry *entry = find_entry(cache, owner, address);
    if (!entry->is_used) {
        *entry = (struct frame_cache_entry){
            .address = address, .owner = owner & OWNER_MASK, .is_used = true};
        cache->count++;
    }
    *ret = entry;
    return 0;
}
