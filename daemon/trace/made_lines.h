/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What has been written already of the code that a process makes: a hash for each. A user may
 * choose what is hashed, so the hashes are seeded. Whether there is room for one more is the
 * caller's to say. Belongs to the collector thread.
 */

#include "trace_definition.h"

struct made_line {
    uint64_t hash;    /* 0: free */
    uint64_t sampled; /* the caller's; 0 in a free one */
};

/* All zero is none. */
struct made_lines {
    struct made_line *places; /* owned: a hash table of a power of two, at most half full */
    size_t count;
    size_t capacity;
};

void made_lines_done(struct made_lines *lines);

/* Of what is said of a region (or NULL: of all); `kind` is the caller's. */
uint64_t made_lines_hash(uint64_t kind, const uint64_t about[3],
                         const struct shown_mapping *region);

/* The line, or NULL. */
struct made_line *made_lines_find(const struct made_lines *lines, uint64_t hash);
/* The line, or the free place where it belongs, until another is added; NULL: it is not there, and
 * may not be added or there is no memory. */
struct made_line *made_lines_place(struct made_lines *lines, uint64_t hash, bool may_add);
/* Takes a free place. */
void made_lines_add(struct made_lines *lines, struct made_line *place, uint64_t hash);
