/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An array with a free list, and for each CPU a list of the waits that have ended there. A ticket
 * is an entry's number and its generation, which changes as it is freed: so a late origin finds its
 * own wait or none.
 */
#include "wait_pool.h"

#include <assert.h>
#include <stdlib.h>

struct ended {
    uint32_t first; /* 0: none */
    uint32_t last;
    uint64_t held_ns[WAIT_KINDS];
};

struct wait_pool {
    struct wait_entry *entries;
    uint32_t free;  /* the first of those that were used before */
    uint32_t count; /* entries that were ever used, with 0, which is none */
    struct ended cpus[];
};

struct wait_pool *wait_pool_new(size_t cpu_count)
{
    struct wait_pool *pool = calloc(1, sizeof *pool + cpu_count * sizeof pool->cpus[0]);
    if (pool == NULL) {
        return NULL;
    }
    pool->entries = calloc(WAITS_MAX, sizeof *pool->entries);
    pool->count = 1;
    return pool->entries != NULL ? pool : wait_pool_free(pool);
}

struct wait_pool *wait_pool_free(struct wait_pool *pool)
{
    if (pool != NULL) {
        free(pool->entries);
        free(pool);
    }
    return NULL;
}

uint32_t wait_pool_number(const struct wait_pool *pool, const struct wait_entry *entry)
{
    return (uint32_t)(entry - pool->entries);
}

struct wait_entry *wait_pool_get(struct wait_pool *pool, uint32_t number)
{
    return &pool->entries[number];
}

struct wait_entry *wait_pool_take(struct wait_pool *pool)
{
    assert(pool->entries != NULL);
    uint32_t number = pool->free;
    if (number != 0) {
        pool->free = pool->entries[number].next;
    } else if (pool->count < WAITS_MAX) {
        number = pool->count++;
    } else {
        return NULL;
    }
    struct wait_entry *entry = &pool->entries[number];
    *entry = (struct wait_entry){
        .generation = entry->generation,
        .state = WAIT_BEGUN,
        .factor = 1,
    };
    return entry;
}

uint64_t wait_pool_begin(struct wait_pool *pool, uint32_t factor)
{
    struct wait_entry *entry = wait_pool_take(pool);
    if (entry == NULL) {
        return 0;
    }
    entry->is_awaited = true;
    entry->factor = factor;
    return (uint64_t)entry->generation << 32 | wait_pool_number(pool, entry);
}

struct wait_entry *wait_pool_find(struct wait_pool *pool, uint64_t ticket)
{
    const uint32_t number = (uint32_t)ticket;
    if (number == 0 || number >= pool->count) {
        return NULL;
    }
    struct wait_entry *entry = &pool->entries[number];
    return entry->state != WAIT_FREE && entry->generation == ticket >> 32 ? entry : NULL;
}

/* A ticket of it is worth nothing from now on. Its stack is released by those who have it. */
static void free_entry(struct wait_pool *pool, struct wait_entry *entry)
{
    entry->generation++;
    entry->state = WAIT_FREE;
    entry->next = pool->free;
    pool->free = wait_pool_number(pool, entry);
}

static void list_ended(struct wait_pool *pool, struct wait_entry *entry)
{
    struct ended *cpu = &pool->cpus[entry->cpu_index];
    const uint32_t number = wait_pool_number(pool, entry);
    entry->next = 0;
    if (cpu->first == 0) {
        cpu->first = number;
    } else {
        pool->entries[cpu->last].next = number;
    }
    cpu->last = number;
}

static uint64_t *held_of(struct wait_pool *pool, const struct wait_entry *entry)
{
    return &pool->cpus[entry->cpu_index].held_ns[entry->wait.kind];
}

void wait_pool_end(struct wait_pool *pool, struct wait_entry *entry, size_t cpu_index)
{
    entry->state = WAIT_ENDED;
    entry->cpu_index = (uint32_t)cpu_index;
    if (entry->is_awaited) {
        *held_of(pool, entry) += wait_weight_ns(&entry->wait);
    } else {
        list_ended(pool, entry);
    }
}

/* One whose origin is known has a stack, which goes with it: so it is listed all the same, as one
 * of no length that is no one's. */
void wait_pool_drop(struct wait_pool *pool, struct wait_entry *entry, size_t cpu_index)
{
    if (!entry->wait.has_origin || entry->wait.origin.stack == 0) {
        free_entry(pool, entry);
        return;
    }
    entry->wait.origin.wanted = 0;
    entry->wait.from_ns = entry->wait.to_ns = entry->wait.others_ns = 0;
    wait_pool_end(pool, entry, cpu_index);
}

bool wait_pool_resolve(struct wait_pool *pool, uint64_t ticket, const struct wait_origin *origin)
{
    struct wait_entry *entry = wait_pool_find(pool, ticket);
    if (entry == NULL || !entry->is_awaited) {
        return false;
    }
    entry->is_awaited = false;
    entry->wait.has_origin = true;
    entry->wait.origin = *origin;
    if (entry->state == WAIT_ENDED) {
        *held_of(pool, entry) -= wait_weight_ns(&entry->wait);
        list_ended(pool, entry);
    }
    return true;
}

uint64_t wait_pool_held_ns(const struct wait_pool *pool, size_t cpu_index, enum wait_kind kind)
{
    return pool->cpus[cpu_index].held_ns[kind];
}

const struct wait *wait_pool_next(struct wait_pool *pool, size_t cpu_index)
{
    struct ended *cpu = &pool->cpus[cpu_index];
    if (cpu->first == 0) {
        return NULL;
    }
    struct wait_entry *entry = &pool->entries[cpu->first];
    cpu->first = entry->next;
    return &entry->wait;
}

uint32_t wait_pool_release(struct wait_pool *pool, const struct wait *wait)
{
    const uint32_t stack = wait->has_origin ? wait->origin.stack : 0;
    free_entry(pool, &pool->entries[(const struct wait_entry *)wait - pool->entries]);
    return stack;
}
