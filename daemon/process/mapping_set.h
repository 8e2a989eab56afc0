/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An ordered set of mappings that do not overlap. A place names a mapping, or the end of the set;
 * an insertion or a removal makes all places and pointers of the set invalid. What hangs on a
 * mapping (its file) is the caller's.
 */

#include "process_table.h"

struct mapping_chunk {
    struct mapping *items; /* count, at least 1; owned */
    size_t count;
    size_t capacity;
};

struct mapping_place {
    size_t chunk;
    size_t item;
};

/* Frees the set's own memory and leaves it empty. */
void mapping_set_done(struct mapping_set *set);

/* The first mapping that ends above `address`. */
struct mapping_place mapping_set_seek(const struct mapping_set *set, uint64_t address);
struct mapping_place mapping_set_next(const struct mapping_set *set, struct mapping_place place);
/* NULL at the end. */
struct mapping *mapping_set_at(const struct mapping_set *set, struct mapping_place place);

/* Inserts a copy of `mapping` before `place`, where it must belong. Returns 0 or -ENOMEM. */
int mapping_set_insert(struct mapping_set *set, struct mapping_place place,
                       const struct mapping *mapping);
void mapping_set_remove(struct mapping_set *set, struct mapping_place place);
