/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Open addressing with linear probing. A line is never removed, so a run of places has no gaps. Two
 * keys with one hash count as one: of 2^19 lines, with a chance of 2^-27.
 */
#include "made_lines.h"

#include "seeded_hash.h"

#include <stdlib.h>

#define PLACES_MIN 64

void made_lines_done(struct made_lines *lines)
{
    free(lines->places);
    *lines = (struct made_lines){0};
}

uint64_t made_lines_hash(uint64_t kind, const uint64_t about[3], const struct shown_mapping *region)
{
    const uint64_t words[] = {kind,
                              about[0],
                              about[1],
                              about[2],
                              region == NULL ? 0 : region->start,
                              region == NULL ? 0 : region->from_ns};
    uint64_t hash = seeded_hash(words, sizeof words);
    return hash == 0 ? 1 : hash;
}

/* The place of a line, or the free one where it belongs. */
static struct made_line *probe(struct made_line *places, size_t capacity, uint64_t hash)
{
    size_t at = hash & (capacity - 1);
    while (places[at].hash != 0 && places[at].hash != hash) {
        at = (at + 1) & (capacity - 1);
    }
    return &places[at];
}

struct made_line *made_lines_find(const struct made_lines *lines, uint64_t hash)
{
    struct made_line *place =
        lines->capacity == 0 ? NULL : probe(lines->places, lines->capacity, hash);
    return place != NULL && place->hash == hash ? place : NULL;
}

/* False: there is no memory. */
static bool double_places(struct made_lines *lines)
{
    size_t capacity = lines->capacity == 0 ? PLACES_MIN : lines->capacity * 2;
    struct made_line *places = calloc(capacity, sizeof *places);
    if (places == NULL) {
        return false;
    }
    for (size_t i = 0; i < lines->capacity; i++) {
        if (lines->places[i].hash != 0) {
            *probe(places, capacity, lines->places[i].hash) = lines->places[i];
        }
    }
    free(lines->places);
    lines->places = places;
    lines->capacity = capacity;
    return true;
}

struct made_line *made_lines_place(struct made_lines *lines, uint64_t hash, bool may_add)
{
    struct made_line *line = made_lines_find(lines, hash);
    if (line != NULL) {
        return line;
    }
    bool has_place = may_add && (lines->count * 2 < lines->capacity || double_places(lines));
    return has_place ? probe(lines->places, lines->capacity, hash) : NULL;
}

void made_lines_add(struct made_lines *lines, struct made_line *place, uint64_t hash)
{
    place->hash = hash;
    lines->count++;
}
