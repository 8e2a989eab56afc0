/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An array of rows, and an open-addressing table of their numbers, each doubled when it is full. A
 * slot has no hash: a row is so small that it is compared as fast, and hashed anew for a larger
 * table.
 */
#include "call_nodes.h"

#include "huge_pages.h"
#include "seeded_hash.h"

#include <errno.h>

#define SLOTS_MIN ((size_t)64)

void call_nodes_done(struct call_nodes *table)
{
    huge_pages_free(table->rows, table->capacity * sizeof *table->rows);
    huge_pages_free(table->slots, table->slot_count * sizeof *table->slots);
    *table = (struct call_nodes){0};
}

static size_t first_slot(const struct call_node *node, size_t slot_count)
{
    return (size_t)seeded_hash_pair(node->parent, node->frame) & (slot_count - 1);
}

static int double_slots(struct call_nodes *table)
{
    size_t count = table->slot_count == 0 ? SLOTS_MIN : table->slot_count * 2;
    uint32_t *slots = huge_pages_new(count * sizeof *slots);
    if (slots == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < table->count; i++) {
        size_t at = first_slot(&table->rows[i], count);
        while (slots[at] != 0) {
            at = (at + 1) & (count - 1);
        }
        slots[at] = (uint32_t)i + 1;
    }
    huge_pages_free(table->slots, table->slot_count * sizeof *slots);
    table->slots = slots;
    table->slot_count = count;
    return 0;
}

/* The slot where the row is, or would go. */
static uint32_t *find_slot(const struct call_nodes *table, const struct call_node *node)
{
    size_t at = first_slot(node, table->slot_count);
    while (table->slots[at] != 0) {
        const struct call_node *row = &table->rows[table->slots[at] - 1];
        if (row->parent == node->parent && row->frame == node->frame) {
            break;
        }
        at = (at + 1) & (table->slot_count - 1);
    }
    return &table->slots[at];
}

int call_nodes_add(struct call_nodes *table, const struct call_node *node, uint32_t *ret_row)
{
    if (table->count * 2 >= table->slot_count && double_slots(table) < 0) {
        return -ENOMEM;
    }
    uint32_t *slot = find_slot(table, node);
    if (*slot == 0) {
        if (table->count >= CALL_NODE_NONE - 1 ||
            huge_pages_grow(table->rows, table->capacity, table->count + 1) < 0) {
            return -ENOMEM;
        }
        table->rows[table->count++] = *node;
        *slot = (uint32_t)table->count;
    }
    *ret_row = *slot - 1;
    return 0;
}
