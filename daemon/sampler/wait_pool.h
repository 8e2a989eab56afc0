/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The waits of a table: those that begin, that are open, and that have ended and are not written
 * yet. A wait and its origin come apart, in any order; a ticket leads from the one to the other.
 * Bounded, and allocates nothing once it is there. Pure; belongs to the collector thread.
 */

#include "capacity.h"
#include "wait.h"

#include <stddef.h>

#define WAITS_MAX CAPACITY((uint32_t)131072)

enum wait_state {
    WAIT_FREE,
    WAIT_BEGUN, /* its switch record comes yet */
    WAIT_OPEN,
    WAIT_ENDED,
};

struct wait_entry {
    struct wait wait; /* first */
    uint32_t generation;
    uint32_t next; /* free, or on a list of ended ones */
    uint32_t cpu_index;
    uint32_t factor;      /* of WAIT_BEGUN and WAIT_OPEN: it stands for so many switches */
    uint64_t sampling_ns; /* of its length, that its own sample took */
    enum wait_state state;
    bool is_awaited; /* its origin comes yet */
};

struct wait_pool;

/* Returned; NULL when there is no memory, of which it takes what it uses. */
struct wait_pool *wait_pool_new(size_t cpu_count);
struct wait_pool *wait_pool_free(struct wait_pool *pool);

/* An entry in WAIT_BEGUN that stands for itself alone; NULL: all are taken. */
struct wait_entry *wait_pool_take(struct wait_pool *pool);
/* One whose origin comes by the returned ticket; 0: all are taken. */
uint64_t wait_pool_begin(struct wait_pool *pool, uint32_t factor);
/* The entry of a ticket, NULL when it is gone. */
struct wait_entry *wait_pool_find(struct wait_pool *pool, uint64_t ticket);

/* Entries by number, from 1 on: what a thread keeps of its open wait. */
uint32_t wait_pool_number(const struct wait_pool *pool, const struct wait_entry *entry);
struct wait_entry *wait_pool_get(struct wait_pool *pool, uint32_t number);

/* The wait is not to be handed out. */
void wait_pool_drop(struct wait_pool *pool, struct wait_entry *entry, size_t cpu_index);
/* It has ended on a CPU, and is handed out when its origin is known or does not come. */
void wait_pool_end(struct wait_pool *pool, struct wait_entry *entry, size_t cpu_index);
/* The origin of a ticket's wait. Returns false when that is gone: the stack is the caller's. */
bool wait_pool_resolve(struct wait_pool *pool, uint64_t ticket, const struct wait_origin *origin);

/* What those stand for that have ended on a CPU, and whose origin comes yet. */
uint64_t wait_pool_held_ns(const struct wait_pool *pool, size_t cpu_index, enum wait_kind kind);

/* The next wait that is due, borrowed until wait_pool_release(); NULL: none. */
const struct wait *wait_pool_next(struct wait_pool *pool, size_t cpu_index);
/* Returns the stack that is the caller's to release, 0: none. */
uint32_t wait_pool_release(struct wait_pool *pool, const struct wait *wait);
