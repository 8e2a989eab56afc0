/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers with ranks, of which the lowest rank is at hand: for sweeps over ranges that overlap.
 */

#include <stddef.h>
#include <stdint.h>

struct heap_entry {
    uint32_t rank;
    uint32_t number;
};

struct heap {
    struct heap_entry *entries; /* owned; the first one has the lowest rank */
    size_t count;
};

/* Makes room for so many. Returns 0, or -ENOMEM. */
int heap_init(struct heap *heap, size_t capacity);
void heap_done(struct heap *heap);

/* There must be room for it. */
void heap_push(struct heap *heap, uint32_t rank, uint32_t number);
/* Takes the first one away. */
void heap_pop(struct heap *heap);
