/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A list grows by doubling, so the memory of all is at most twice what they hold. Owners that meet
 * in one place of the table share it; the hash is seeded.
 */
#include "trace_wants.h"

#include "cleanup.h"
#include "fair_share.h"
#include "seeded_hash.h"
#include "trace_definition.h"

#define OWNERS      1024
#define SHARE_PARTS 2
#define LIST_MAX    (TRACE_WANTS_MAX / 8)

struct trace_wants {
    size_t count; /* of all */
    size_t count_of[OWNERS];
    uint64_t refused_count;
};

struct trace_wants *trace_wants_new(void)
{
    return calloc(1, sizeof(struct trace_wants));
}

struct trace_wants *trace_wants_free(struct trace_wants *wants)
{
    free(wants);
    return NULL;
}

static size_t *count_of(struct trace_wants *wants, uint32_t owner)
{
    return &wants->count_of[seeded_hash(&owner, sizeof owner) % OWNERS];
}

void trace_wants_note(struct trace_wants *wants, struct wanted_addresses *list, uint64_t address)
{
    size_t *own_count = count_of(wants, list->owner);
    if (!fair_share_allows(TRACE_WANTS_MAX, SHARE_PARTS, wants->count, *own_count, 1) ||
        !trace_notes_grow((void **)&list->items, &list->capacity, list->count, LIST_MAX,
                          sizeof list->items[0])) {
        wants->refused_count++;
        return;
    }
    list->items[list->count++] = address;
    ++*own_count;
    wants->count++;
}

void trace_wants_pop(struct trace_wants *wants, struct wanted_addresses *list)
{
    list->count--;
    --*count_of(wants, list->owner);
    wants->count--;
}

void trace_wants_clear(struct trace_wants *wants, struct wanted_addresses *list)
{
    *count_of(wants, list->owner) -= list->count;
    wants->count -= list->count;
    free(take_ptr(list->items));
    list->count = list->capacity = 0;
}

uint64_t trace_wants_refused_count(const struct trace_wants *wants)
{
    return wants->refused_count;
}
