/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keeps every different byte string once and gives it a number, from 0 upward without holes. What
 * is kept starts 8-byte aligned and ends with a NUL that does not count, so that names, stacks and
 * small structs can all be kept in such a table. Memory is at most about three times the bytes kept
 * and 32 bytes an item.
 */

#include <stddef.h>
#include <stdint.h>

#define INTERN_NONE UINT32_MAX

struct intern_item {
    uint64_t hash;
    size_t offset_bytes;
    size_t size_bytes;
};

/* All zero is an empty table. */
struct intern {
    uint8_t *bytes; /* owned */
    size_t capacity_bytes;
    size_t used_bytes;
    struct intern_item *items; /* owned */
    size_t item_capacity;
    size_t item_count;
    uint32_t *slots; /* owned; item + 1, 0 is free */
    size_t slot_count;
};

void intern_done(struct intern *table);

/* What the table's items take, without the room that it has for more. */
uint64_t intern_size_bytes(const struct intern *table);

/* The number of the bytes (borrowed), which are kept if they are new. Returns 0, or -ENOMEM. */
int intern_add(struct intern *table, const void *bytes, size_t size_bytes, uint32_t *ret_item);

/* The number of the bytes, or INTERN_NONE. */
uint32_t intern_find(const struct intern *table, const void *bytes, size_t size_bytes);

/* What `item` stands for. Borrowed, until the next intern_add(). */
const void *intern_bytes(const struct intern *table, uint32_t item, size_t *ret_size_bytes);
/* The same for a table of texts. */
const char *intern_text(const struct intern *table, uint32_t item);
