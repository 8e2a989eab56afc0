/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table with one place for each hash. Most lookups find their place in no cache of the CPU, nor
 * the entry of its page; so it asks for huge pages, of which there are few. The hash is seeded,
 * since users choose their addresses.
 */
#include "address_cache.h"

#include <stdlib.h>
#include <sys/mman.h>

_Static_assert(sizeof(struct address_place) == 64, "a lookup waits for one cache line");

struct address_cache {
    struct address_place places[ADDRESS_CACHE_PLACES];
};

struct address_cache *address_cache_new(void)
{
    struct address_cache *cache =
        mmap(NULL, sizeof *cache, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (cache == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(cache, sizeof *cache, MADV_HUGEPAGE); /* it works without as well */
    return cache;
}

struct address_cache *address_cache_free(struct address_cache *cache)
{
    if (cache != NULL) {
        (void)munmap(cache, sizeof *cache);
    }
    return NULL;
}

struct address_place *address_cache_place(struct address_cache *cache, uint64_t generation,
                                          uint64_t address)
{
    return &cache->places[seeded_hash_pair(address, generation) % ADDRESS_CACHE_PLACES];
}

void address_place_take(struct address_place *place, uint64_t generation, uint64_t address,
                        uint64_t from_ns)
{
    if (place->generation != generation || place->address != address) {
        *place = (struct address_place){
            .generation = generation, .address = address, .from_ns = from_ns};
    } else if (place->from_ns < from_ns) {
        place->from_ns = from_ns;
    }
}

void address_cache_forget_frames(struct address_cache *cache)
{
    for (size_t i = 0; i < ADDRESS_CACHE_PLACES; i++) {
        if (cache->places[i].has_frame) {
            cache->places[i].has_frame = false;
        }
    }
}
