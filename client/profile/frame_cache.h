/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What addresses of processes turned out to be: an address is in many stacks, and its frames are
 * the same in all of them until an Mmap record changes what the process has there. Each entry has
 * the times between which it holds; a look-up for another time resolves the address anew, and
 * replaces the entry.
 */

#include "mappings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct frame_cache_entry {
    uint64_t address;
    struct mapping_validity validity; /* no time is in it at first */
    uint32_t answer;                  /* by the caller's own numbering */
    uint32_t owner : 30; /* whose address it is, by the caller's own numbering: of an intern table,
                            which has fewer items of a key's size */
    uint32_t is_run : 1; /* the caller's: of which kind the answer is */
    uint32_t is_used : 1;
};
_Static_assert(sizeof(struct frame_cache_entry) == 32, "two are a line of the CPU's cache");

/* All zero is an empty cache. */
struct frame_cache {
    struct frame_cache_entry *entries; /* owned; open addressing */
    size_t capacity;
    size_t count;
};

void frame_cache_done(struct frame_cache *cache);

/* What the entries take, without the room that there is for more. */
uint64_t frame_cache_size_bytes(const struct frame_cache *cache);

/* Fetches the entry into the CPU's cache, for a frame_cache_find() that comes soon. */
void frame_cache_fetch(const struct frame_cache *cache, uint32_t owner, uint64_t address);

/* The entry of an owner's address, made where there is none. Borrowed, until the next call.
 * Returns 0, or -ENOMEM. */
int frame_cache_find(struct frame_cache *cache, uint32_t owner, uint64_t address,
                     struct frame_cache_entry **ret);
