/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * What threads wait for that an urgent thread may tell of: to tell waits for nothing, with a lock
 * or without, while pthread_cond_signal() can wait for threads that were woken before and have had
 * no CPU since. Begins as zero bytes.
 */
struct thread_news {
    atomic_uint number;
};

/* To be asked for before the look at what is waited for. */
static inline unsigned int thread_news_number(struct thread_news *news)
{
    return atomic_load(&news->number);
}

/* Wakes up to `count` threads that wait. */
static inline void thread_news_tell(struct thread_news *news, int count)
{
    atomic_fetch_add(&news->number, 1);
    (void)syscall(SYS_futex, &news->number, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* Waits, without the lock meanwhile, until there are news since the number, or until `limit` of
 * CLOCK_MONOTONIC (NULL: for ever). Returns early now and then. False: the time is over. */
static inline bool thread_news_wait(struct thread_news *news, unsigned int number,
                                    pthread_mutex_t *lock, const struct timespec *limit)
{
    (void)pthread_mutex_unlock(lock);
    long r = syscall(SYS_futex, &news->number, FUTEX_WAIT_BITSET_PRIVATE, number, limit, NULL,
                     FUTEX_BITSET_MATCH_ANY);
    bool is_over = r < 0 && errno == ETIMEDOUT;
    (void)pthread_mutex_lock(lock);
    return !is_over;
}
