/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One arena, one array of the items' places in it, one open-addressing table of their hashes, each
 * doubled when it is full. A recording's tables do not fit into a cache, so what an access costs is
 * how many places it looks at: a slot has the hash, and what an item is stands before its bytes.
 * The hash is seeded per process, so that a file cannot be made to collide with itself.
 */
#include "intern.h"

#include "grow.h"
#include "huge_pages.h"
#include "seeded_hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN   64
#define WORD_BYTES  sizeof(uint64_t)
#define LINE_WORDS  8 /* of a cache */
#define GUESSES_MAX 8

#define FETCHED_WORDS_MAX 32 /* of an item */

void intern_done(struct intern *table)
{
    huge_pages_free(table->words, table->word_capacity * WORD_BYTES);
    free(table->items);
    huge_pages_free(table->slots, table->slot_count * sizeof *table->slots);
    *table = (struct intern){0};
}

uint64_t intern_size_bytes(const struct intern *table)
{
    return (uint64_t)table->word_count * WORD_BYTES +
           (uint64_t)table->item_count * (sizeof *table->items + sizeof *table->slots);
}

/* The slot where an item with these bytes is, or would go. */
static struct intern_slot *find_slot(const struct intern *table, uint32_t hash, const void *bytes,
                                     size_t size_bytes)
{
    size_t mask = table->slot_count - 1;
    struct intern_slot *slot = &table->slots[hash & mask];
    while (slot->at != 0) {
        if (slot->hash == hash && intern_header_at(table, slot->at).size_bytes == size_bytes &&
            memcmp(&table->words[slot->at + 1], bytes, size_bytes) == 0) {
            break;
        }
        slot = slot == &table->slots[mask] ? table->slots : slot + 1;
    }
    return slot;
}

static int double_slots(struct intern *table)
{
    size_t count = table->slot_count == 0 ? SLOTS_MIN : table->slot_count * 2;
    struct intern_slot *slots = huge_pages_new(count * sizeof *slots);
    if (slots == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < table->slot_count; i++) {
        if (table->slots[i].at != 0) {
            size_t at = table->slots[i].hash & (count - 1);
            while (slots[at].at != 0) {
                at = (at + 1) & (count - 1);
            }
            slots[at] = table->slots[i];
        }
    }
    huge_pages_free(table->slots, table->slot_count * sizeof *slots);
    table->slots = slots;
    table->slot_count = count;
    return 0;
}

/* Appends an item. Word 0 of the arena is not used. */
static int keep(struct intern *table, const void *bytes, size_t size_bytes, uint32_t *ret_at)
{
    size_t at = table->word_count == 0 ? 1 : table->word_count;
    size_t word_count = at + 1 + size_bytes / WORD_BYTES + 1; /* room for the NUL */
    const struct intern_header header = {(uint32_t)table->item_count, (uint32_t)size_bytes};
    if (size_bytes > UINT32_MAX || word_count > UINT32_MAX ||
        huge_pages_grow(table->words, table->word_capacity, word_count) < 0 ||
        grow(table->items, table->item_capacity, table->item_count + 1) < 0) {
        return -ENOMEM;
    }
    table->words[word_count - 1] = 0;
    memcpy(&table->words[at], &header, sizeof header);
    memcpy(&table->words[at + 1], bytes, size_bytes);
    table->items[table->item_count++] = (uint32_t)at;
    table->word_count = word_count;
    *ret_at = (uint32_t)at;
    return 0;
}

uint32_t intern_hash(const void *bytes, size_t size_bytes)
{
    return (uint32_t)seeded_hash_of_file(bytes, size_bytes);
}

void intern_fetch_slot(const struct intern *table, uint32_t hash)
{
    if (table->slot_count > 0) {
        __builtin_prefetch(&table->slots[hash & (table->slot_count - 1)]);
    }
}

/* The word of the first item that may be the one of a hash; 0: there is none. */
static uint32_t guess(const struct intern *table, uint32_t hash)
{
    size_t mask = table->slot_count - 1;
    for (size_t i = 0; i < GUESSES_MAX && table->slot_count > 0; i++) {
        const struct intern_slot *slot = &table->slots[(hash + i) & mask];
        if (slot->hash == hash || slot->at == 0) {
            return slot->at;
        }
    }
    return 0;
}

void intern_fetch_item(const struct intern *table, uint32_t hash, size_t size_bytes)
{
    uint32_t at = guess(table, hash);
    size_t words = size_bytes / WORD_BYTES + 1;
    for (size_t i = 0; at != 0 && i < words && i < FETCHED_WORDS_MAX; i += LINE_WORDS) {
        __builtin_prefetch(&table->words[at + i]);
    }
}

int intern_add_hashed(struct intern *table, uint32_t hash, const void *bytes, size_t size_bytes,
                      uint32_t *ret_item)
{
    if (table->item_count * 2 >= table->slot_count) {
        int r = double_slots(table);
        if (r < 0) {
            return r;
        }
    }
    struct intern_slot *slot = find_slot(table, hash, bytes, size_bytes);
    if (slot->at == 0) {
        int r = keep(table, bytes, size_bytes, &slot->at);
        if (r < 0) {
            return r;
        }
        slot->hash = hash;
    }
    *ret_item = intern_header_at(table, slot->at).item;
    return 0;
}

int intern_add(struct intern *table, const void *bytes, size_t size_bytes, uint32_t *ret_item)
{
    static const uint8_t nothing[1];
    const void *from = size_bytes == 0 ? nothing : bytes;
    return intern_add_hashed(table, intern_hash(from, size_bytes), from, size_bytes, ret_item);
}

uint32_t intern_find(const struct intern *table, const void *bytes, size_t size_bytes)
{
    if (table->slot_count == 0) {
        return INTERN_NONE;
    }
    uint32_t hash = intern_hash(bytes, size_bytes);
    uint32_t at = find_slot(table, hash, bytes, size_bytes)->at;
    return at == 0 ? INTERN_NONE : intern_header_at(table, at).item;
}

void intern_fetch_bytes(const struct intern *table, uint32_t item)
{
    const uint64_t *words = &table->words[table->items[item]];
    __builtin_prefetch(words);
    __builtin_prefetch(words + LINE_WORDS);
}
