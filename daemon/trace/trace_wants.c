/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A list grows by doubling, so the memory of all is at most twice what they hold.
 */
#include "trace_wants.h"

#include "cleanup.h"
#include "quota.h"
#include "trace_definition.h"

#define SHARE_PARTS 2
#define LIST_MAX    (TRACE_WANTS_MAX / 8)

struct trace_wants {
    struct quota addresses;
    uint64_t refused_count;
};

struct trace_wants *trace_wants_new(void)
{
    struct trace_wants *wants = calloc(1, sizeof *wants);
    if (wants != NULL) {
        wants->addresses.max = TRACE_WANTS_MAX;
        wants->addresses.parts = SHARE_PARTS;
    }
    return wants;
}

struct trace_wants *trace_wants_free(struct trace_wants *wants)
{
    free(wants);
    return NULL;
}

void trace_wants_note(struct trace_wants *wants, struct wanted_addresses *list, uint64_t address)
{
    if (!trace_notes_grow((void **)&list->items, &list->capacity, list->count, LIST_MAX,
                          sizeof list->items[0]) ||
        !quota_take(&wants->addresses, list->owner, 1)) {
        wants->refused_count++;
        return;
    }
    list->items[list->count++] = address;
}

void trace_wants_pop(struct trace_wants *wants, struct wanted_addresses *list)
{
    list->count--;
    quota_give(&wants->addresses, list->owner, 1);
}

void trace_wants_clear(struct trace_wants *wants, struct wanted_addresses *list)
{
    quota_give(&wants->addresses, list->owner, list->count);
    free(take_ptr(list->items));
    list->count = list->capacity = 0;
}

uint64_t trace_wants_refused_count(const struct trace_wants *wants)
{
    return wants->refused_count;
}
