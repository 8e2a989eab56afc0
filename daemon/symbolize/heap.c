/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A binary heap in an array: an entry's rank is not higher than those of the two below it. No order
 * of calls costs more than log n each.
 */
#include "heap.h"

#include <errno.h>
#include <stdlib.h>

int heap_init(struct heap *heap, size_t capacity)
{
    *heap = (struct heap){.entries = calloc(capacity + 1, sizeof *heap->entries)};
    return heap->entries == NULL ? -ENOMEM : 0;
}

void heap_done(struct heap *heap)
{
    free(heap->entries);
    *heap = (struct heap){0};
}

static void swap(struct heap *heap, size_t a, size_t b)
{
    struct heap_entry entry = heap->entries[a];
    heap->entries[a] = heap->entries[b];
    heap->entries[b] = entry;
}

void heap_push(struct heap *heap, uint32_t rank, uint32_t number)
{
    size_t at = heap->count++;
    heap->entries[at] = (struct heap_entry){rank, number};
    for (; at > 0 && rank < heap->entries[(at - 1) / 2].rank; at = (at - 1) / 2) {
        swap(heap, at, (at - 1) / 2);
    }
}

void heap_pop(struct heap *heap)
{
    heap->entries[0] = heap->entries[--heap->count];
    for (size_t at = 0;;) {
        size_t lowest = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap->count; child++) {
            lowest = heap->entries[child].rank < heap->entries[lowest].rank ? child : lowest;
        }
        if (lowest == at) {
            return;
        }
        swap(heap, at, lowest);
        at = lowest;
    }
}
