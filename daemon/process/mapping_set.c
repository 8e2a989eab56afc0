/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An ordered set of mappings in chunks of at most CHUNK_ITEMS_MAX: an ordinary process has one
 * chunk and gets a plain binary search; a hostile one with 65,536 mappings cannot make each
 * insertion move megabytes. No chunk is empty, and all items of a chunk lie below those of the
 * next.
 */
#include "mapping_set.h"

#include "cleanup.h"
#include "grow.h"

#include <errno.h>
#include <string.h>

#define CHUNK_ITEMS_MAX ((size_t)256)
#define CHUNK_ITEMS_MIN ((size_t)8)

void mapping_set_done(struct mapping_set *set)
{
    for (size_t i = 0; i < set->chunk_count; i++) {
        free(set->chunks[i].items);
    }
    free(set->chunks);
    *set = (struct mapping_set){0};
}

struct mapping_place mapping_set_seek(const struct mapping_set *set, uint64_t address)
{
    size_t low = 0;
    size_t high = set->chunk_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct mapping_chunk *chunk = &set->chunks[middle];
        if (chunk->items[chunk->count - 1].end > address) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    struct mapping_place place = {.chunk = low};
    if (low == set->chunk_count) {
        return place;
    }
    const struct mapping *items = set->chunks[low].items;
    low = 0;
    high = set->chunks[place.chunk].count - 1; /* the last one is known to end above it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (items[middle].end > address) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    place.item = low;
    return place;
}

struct mapping_place mapping_set_next(const struct mapping_set *set, struct mapping_place place)
{
    if (place.item + 1 < set->chunks[place.chunk].count) {
        place.item++;
    } else {
        place = (struct mapping_place){.chunk = place.chunk + 1};
    }
    return place;
}

struct mapping *mapping_set_at(const struct mapping_set *set, struct mapping_place place)
{
    return place.chunk < set->chunk_count ? &set->chunks[place.chunk].items[place.item] : NULL;
}

/* A new chunk at `index`, still without items: the caller puts some in, or closes it. */
static int open_chunk(struct mapping_set *set, size_t index, size_t capacity)
{
    if (grow_from(set->chunks, set->chunk_capacity, set->chunk_count + 1, 1) < 0) {
        return -ENOMEM;
    }
    struct mapping *items = calloc(capacity, sizeof *items);
    if (items == NULL) {
        return -ENOMEM;
    }
    memmove(&set->chunks[index + 1], &set->chunks[index],
            (set->chunk_count - index) * sizeof *set->chunks);
    set->chunks[index] = (struct mapping_chunk){.items = items, .capacity = capacity};
    set->chunk_count++;
    return 0;
}

/* Makes room in a full chunk and moves `place` to where that room is. At a chunk's very end a new
 * one is begun, so that a set filled in order has full chunks. */
static int split_chunk(struct mapping_set *set, struct mapping_place *place)
{
    int r = open_chunk(set, place->chunk + 1, CHUNK_ITEMS_MAX);
    if (r < 0) {
        return r;
    }
    struct mapping_chunk *full = &set->chunks[place->chunk];
    struct mapping_chunk *fresh = full + 1;
    size_t kept = place->item == full->count ? full->count : full->count / 2;
    fresh->count = full->count - kept;
    memcpy(fresh->items, &full->items[kept], fresh->count * sizeof *fresh->items);
    full->count = kept;
    if (place->item >= kept) {
        place->chunk++;
        place->item -= kept;
    }
    return 0;
}

static int make_room(struct mapping_set *set, struct mapping_place *place)
{
    if (set->chunk_count == 0) {
        return open_chunk(set, 0, CHUNK_ITEMS_MIN);
    }
    if (place->chunk == set->chunk_count) {
        place->chunk--;
        place->item = set->chunks[place->chunk].count;
    }
    struct mapping_chunk *chunk = &set->chunks[place->chunk];
    if (chunk->count < chunk->capacity) {
        return 0;
    }
    return chunk->capacity < CHUNK_ITEMS_MAX
               ? grow_from(chunk->items, chunk->capacity, chunk->count + 1, CHUNK_ITEMS_MIN)
               : split_chunk(set, place);
}

int mapping_set_insert(struct mapping_set *set, struct mapping_place place,
                       const struct mapping *mapping)
{
    int r = make_room(set, &place);
    if (r < 0) {
        return r;
    }
    struct mapping_chunk *chunk = &set->chunks[place.chunk];
    memmove(&chunk->items[place.item + 1], &chunk->items[place.item],
            (chunk->count - place.item) * sizeof *chunk->items);
    chunk->items[place.item] = *mapping;
    chunk->count++;
    set->count++;
    return 0;
}

static void close_chunk(struct mapping_set *set, size_t index)
{
    free(set->chunks[index].items);
    set->chunk_count--;
    memmove(&set->chunks[index], &set->chunks[index + 1],
            (set->chunk_count - index) * sizeof *set->chunks);
}

/* Joins a chunk with the next one when both are small, or a set could be made to consist of chunks
 * with one item each. */
static void join_small(struct mapping_set *set, size_t index)
{
    if (index + 1 >= set->chunk_count) {
        return;
    }
    struct mapping_chunk *chunk = &set->chunks[index];
    const struct mapping_chunk *next = chunk + 1;
    if (chunk->count + next->count > CHUNK_ITEMS_MAX / 2 ||
        chunk->count + next->count > chunk->capacity) {
        return;
    }
    memcpy(&chunk->items[chunk->count], next->items, next->count * sizeof *next->items);
    chunk->count += next->count;
    close_chunk(set, index + 1);
}

void mapping_set_remove(struct mapping_set *set, struct mapping_place place)
{
    struct mapping_chunk *chunk = &set->chunks[place.chunk];
    chunk->count--;
    set->count--;
    memmove(&chunk->items[place.item], &chunk->items[place.item + 1],
            (chunk->count - place.item) * sizeof *chunk->items);
    if (chunk->count == 0) {
        close_chunk(set, place.chunk);
        return;
    }
    join_small(set, place.chunk);
    if (place.chunk > 0) {
        join_small(set, place.chunk - 1);
    }
}
