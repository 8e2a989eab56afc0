/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>
#include <stdlib.h>

/*
 * Memory that one thread is done with and that another is to free. free() waits for the lock of the
 * arena that the memory is from, and its holder may have no CPU. So an urgent thread leaves to
 * other threads what they have allocated, and they leave to it what is from its own arena. To add
 * waits for nothing. Begins as zero bytes.
 */
struct spent_memory {
    _Atomic(void *) last; /* each begins with a pointer to the one before */
};

/* `memory` (taken) has room for a pointer; NULL is none. */
static inline void spent_memory_add(struct spent_memory *spent, void *memory)
{
    if (memory == NULL) {
        return;
    }
    void **link = memory;
    *link = atomic_load(&spent->last);
    while (!atomic_compare_exchange_weak(&spent->last, link, memory)) {
    }
}

/* To be called by the thread that allocated it, or one like it. */
static inline void spent_memory_free(struct spent_memory *spent)
{
    void *memory = atomic_exchange(&spent->last, NULL);
    while (memory != NULL) {
        void **link = memory;
        void *next = *link;
        free(memory);
        memory = next;
    }
}
