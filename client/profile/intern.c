/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One arena, one array of items, one open-addressing table of their numbers, each doubled when it
 * is full. The hash is seeded per process, so that a file cannot be made to collide with itself.
 */
#include "intern.h"

#include "grow.h"
#include "seeded_hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN 64

void intern_done(struct intern *table)
{
    free(table->bytes);
    free(table->items);
    free(table->slots);
    *table = (struct intern){0};
}

uint64_t intern_size_bytes(const struct intern *table)
{
    return table->used_bytes +
           (uint64_t)table->item_count * (sizeof *table->items + sizeof *table->slots);
}

/* The slot where an item with these bytes is, or would go. */
static size_t find_slot(const struct intern *table, uint64_t hash, const void *bytes,
                        size_t size_bytes)
{
    size_t mask = table->slot_count - 1;
    size_t slot = (size_t)hash & mask;
    while (table->slots[slot] != 0) {
        const struct intern_item *item = &table->items[table->slots[slot] - 1];
        if (item->hash == hash && item->size_bytes == size_bytes &&
            memcmp(table->bytes + item->offset_bytes, bytes, size_bytes) == 0) {
            break;
        }
        slot = (slot + 1) & mask;
    }
    return slot;
}

static int double_slots(struct intern *table)
{
    size_t count = table->slot_count == 0 ? SLOTS_MIN : table->slot_count * 2;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (slots == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < table->item_count; i++) {
        size_t slot = (size_t)table->items[i].hash & (count - 1);
        while (slots[slot] != 0) {
            slot = (slot + 1) & (count - 1);
        }
        slots[slot] = (uint32_t)(i + 1);
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = count;
    return 0;
}

static int keep(struct intern *table, uint64_t hash, const void *bytes, size_t size_bytes)
{
    size_t padded_bytes = (size_bytes / 8 + 1) * 8; /* room for the NUL */
    int r = grow(table->bytes, table->capacity_bytes, table->used_bytes + padded_bytes);
    if (r == 0) {
        r = grow(table->items, table->item_capacity, table->item_count + 1);
    }
    if (r < 0 || table->item_count >= INTERN_NONE - 1) {
        return -ENOMEM;
    }
    uint8_t *at = table->bytes + table->used_bytes;
    memcpy(at, bytes, size_bytes);
    memset(at + size_bytes, 0, padded_bytes - size_bytes);
    table->items[table->item_count++] = (struct intern_item){
        .hash = hash,
        .offset_bytes = table->used_bytes,
        .size_bytes = size_bytes,
    };
    table->used_bytes += padded_bytes;
    return 0;
}

int intern_add(struct intern *table, const void *bytes, size_t size_bytes, uint32_t *ret_item)
{
    static const uint8_t nothing[1];
    const void *from = size_bytes == 0 ? nothing : bytes;
    if (table->item_count * 2 >= table->slot_count) {
        int r = double_slots(table);
        if (r < 0) {
            return r;
        }
    }
    uint64_t hash = seeded_hash(from, size_bytes);
    size_t slot = find_slot(table, hash, from, size_bytes);
    if (table->slots[slot] == 0) {
        int r = keep(table, hash, from, size_bytes);
        if (r < 0) {
            return r;
        }
        table->slots[slot] = (uint32_t)table->item_count;
    }
    *ret_item = table->slots[slot] - 1;
    return 0;
}

uint32_t intern_find(const struct intern *table, const void *bytes, size_t size_bytes)
{
    if (table->slot_count == 0) {
        return INTERN_NONE;
    }
    size_t slot = find_slot(table, seeded_hash(bytes, size_bytes), bytes, size_bytes);
    return table->slots[slot] == 0 ? INTERN_NONE : table->slots[slot] - 1;
}

const void *intern_bytes(const struct intern *table, uint32_t item, size_t *ret_size_bytes)
{
    *ret_size_bytes = table->items[item].size_bytes;
    return table->bytes + table->items[item].offset_bytes;
}

const char *intern_text(const struct intern *table, uint32_t item)
{
    return (const char *)(table->bytes + table->items[item].offset_bytes);
}
