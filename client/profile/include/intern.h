/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keeps every different byte string once and gives it a number, from 0 upward without holes. What
 * is kept starts 8-byte aligned and ends with a NUL that does not count, so that names, stacks and
 * small structs can all be kept in such a table. Memory is at most about twice the bytes kept and
 * 64 bytes an item.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INTERN_NONE UINT32_MAX

/* Which item has the hash. */
struct intern_slot {
    uint32_t hash;
    uint32_t at; /* its word; 0: the slot is free */
};

/* What stands before an item's bytes: one word. */
struct intern_header {
    uint32_t item;
    uint32_t size_bytes;
};

/* All zero is an empty table. */
struct intern {
    uint64_t *words; /* owned; of each item a header, and its bytes */
    size_t word_capacity;
    size_t word_count;
    uint32_t *items; /* owned; their words */
    size_t item_capacity;
    size_t item_count;
    struct intern_slot *slots; /* owned */
    size_t slot_count;
};

void intern_done(struct intern *table);

/* What the table's items take, without the room that it has for more. */
uint64_t intern_size_bytes(const struct intern *table);

/* The number of the bytes (borrowed), which are kept if they are new. Returns 0, or -ENOMEM. */
int intern_add(struct intern *table, const void *bytes, size_t size_bytes, uint32_t *ret_item);

/*
 * The same in steps, for a caller that has other work to do between them, since each would wait for
 * memory: the hash of the bytes, a call for each place that is looked at, and what is wanted.
 */
uint32_t intern_hash(const void *bytes, size_t size_bytes);
void intern_fetch_slot(const struct intern *table, uint32_t hash);
void intern_fetch_item(const struct intern *table, uint32_t hash, size_t size_bytes);
int intern_add_hashed(struct intern *table, uint32_t hash, const void *bytes, size_t size_bytes,
                      uint32_t *ret_item);

/* The number of the bytes, or INTERN_NONE. */
uint32_t intern_find(const struct intern *table, const void *bytes, size_t size_bytes);

static inline struct intern_header intern_header_at(const struct intern *table, uint32_t at)
{
    struct intern_header header;
    memcpy(&header, &table->words[at], sizeof header);
    return header;
}

/* What `item` stands for. Borrowed, until the next intern_add(). */
static inline const void *intern_bytes(const struct intern *table, uint32_t item,
                                       size_t *ret_size_bytes)
{
    uint32_t at = table->items[item];
    *ret_size_bytes = intern_header_at(table, at).size_bytes;
    return &table->words[at + 1];
}

/* Fetches it into the CPU's cache, for an intern_bytes() that comes soon. */
void intern_fetch_bytes(const struct intern *table, uint32_t item);

/* The same as intern_bytes() for a table of texts. */
static inline const char *intern_text(const struct intern *table, uint32_t item)
{
    return (const char *)&table->words[table->items[item] + 1];
}
