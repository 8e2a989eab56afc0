/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Threads each of which may hang for ever in what it does for its owner. A thread that has slept
 * for a while is slow, and another one goes on beside it. One that sleeps longer than a limit is
 * given up: its work counts as failed, and it is left behind when the owner goes. A thread that
 * waits for a CPU does not hang. What there is to do, and in which order, is the owner's.
 *
 * All but thread_pool_init() and thread_pool_tell() is called under the lock.
 */

#include "thread_news.h"

#include <stdint.h>

#define THREAD_POOL_SLOTS 16

/* `slot` is the thread's number, below THREAD_POOL_SLOTS. A call that may be NULL says so. */
struct thread_pool_calls {
    /* A thread begins, without the lock, and ends, under it; both may be NULL. */
    void (*enter)(void *owner, size_t slot);
    void (*leave)(void *owner, size_t slot);
    /* Under the lock: takes work for the thread. False: there is none now. */
    bool (*begin)(void *owner, size_t slot);
    /* Does it, without the lock. */
    void (*work)(void *owner, size_t slot);
    /* Under the lock: it has become slow. May be NULL. */
    void (*slow)(void *owner, size_t slot);
    /* Under the lock: it is done. */
    void (*finish)(void *owner, size_t slot, bool was_given_up);
    /* Without the lock: thread_pool_release() was called, and no thread is left. Frees the owner.
     */
    void (*free)(void *owner);
};

struct thread_pool_slot {
    struct thread_pool *pool;
    pid_t tid;
    bool is_running; /* there is a thread */
    bool is_busy;    /* at work; the next ones are of that work */
    bool is_slow;
    bool is_given_up;
    uint64_t begin_ns;
    uint64_t look_ns;   /* when it was looked at last */
    uint64_t asleep_ns; /* for which it was seen asleep */
};

/* A part of the owner. */
struct thread_pool {
    pthread_mutex_t lock;
    struct thread_news changed;
    const struct thread_pool_calls *calls;
    void *owner;
    uint64_t hang_ns;      /* after which a thread is given up; slow after a twentieth of it */
    size_t idle_max;       /* threads without work; others end */
    uint32_t holder_count; /* threads, and the owner */
    bool is_ending;
    struct thread_pool_slot slots[THREAD_POOL_SLOTS];
};

/* `calls` and `owner` are borrowed until calls->free(). `is_urgent`: the owner has a higher
 * priority than the threads. */
void thread_pool_init(struct thread_pool *pool, const struct thread_pool_calls *calls, void *owner,
                      uint64_t hang_ns, size_t idle_max, bool is_urgent);

/* There is work: wakes an idle thread. Never waits. */
void thread_pool_tell(struct thread_pool *pool);

/* Starts a thread unless one is idle, or all slots have one. Leaves the lock meanwhile. Returns 0,
 * or -errno. */
int thread_pool_keep_one_idle(struct thread_pool *pool);

/* Looks which threads sleep. To be called now and then. */
void thread_pool_look(struct thread_pool *pool);

/* Looks, and counts the threads at work that are not slow. */
size_t thread_pool_working_count(struct thread_pool *pool);

/* True when a thread that was not given up has hung, as of the last look. */
bool thread_pool_is_hung(const struct thread_pool *pool, size_t slot);
/* Gives up a thread that is at work. */
void thread_pool_give_up(struct thread_pool *pool, size_t slot);

/* From now on threads end when there is no work. Waits up to `wait_ns` for all that are not given
 * up, and leaves the lock meanwhile. */
void thread_pool_end(struct thread_pool *pool, uint64_t wait_ns);

/* The owner's last call. Leaves the lock for good. */
void thread_pool_release(struct thread_pool *pool);
