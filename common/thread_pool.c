/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A thread that takes work starts another one if no thread is idle and a slot is free, so that one
 * is there when the first hangs. Threads and the owner hold the object; the last one frees it, so a
 * thread that returns late finds it still there.
 *
 * A thread hangs by the time for which it was seen asleep, sampled now and then. Time in which the
 * whole program was stopped does not count. A thread that has been at work for the limit, asleep or
 * not, is slow.
 *
 * An urgent owner has a higher priority than the threads. There the lock's holder inherits that
 * priority, and does little under the lock. Such a lock takes longer when it is contended.
 */
#include "thread_pool.h"

#include "cleanup.h"
#include "limit_clock.h"
#include "threads.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SLOW_PART  20  /* of the time after which a thread is given up: it is slow */
#define LOOK_PART  8   /* this much of it counts between two looks, at the most, */
#define PAUSE_PART 200 /* and no look follows another one sooner */

void thread_pool_init(struct thread_pool *pool, const struct thread_pool_calls *calls, void *owner,
                      uint64_t hang_ns, size_t idle_max, bool is_urgent)
{
    *pool = (struct thread_pool){.calls = calls,
                                 .owner = owner,
                                 .hang_ns = hang_ns,
                                 .idle_max = idle_max,
                                 .holder_count = 1};
    if (is_urgent) {
        threads_init_lock(&pool->lock);
    } else {
        (void)pthread_mutex_init(&pool->lock, NULL);
    }
}

void thread_pool_tell(struct thread_pool *pool)
{
    thread_news_tell(&pool->changed, 1);
}

void thread_pool_release(struct thread_pool *pool)
{
    pool->holder_count--;
    bool is_last = pool->holder_count == 0;
    thread_news_tell(&pool->changed, INT_MAX);
    (void)pthread_mutex_unlock(&pool->lock);
    if (is_last) {
        (void)pthread_mutex_destroy(&pool->lock);
        pool->calls->free(pool->owner);
    }
}

/* True when the thread sleeps, or nothing tells; false when it runs or waits for a CPU. */
static bool is_asleep(const struct thread_pool_slot *slot)
{
    char path[64];
    char text[256];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", slot->tid);
    cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[size > 0 ? size : 0] = '\0';
    const char *state = strrchr(text, ')');
    return state == NULL || state[1] == '\0' || strchr("SD", state[2]) != NULL;
}

static void become_slow(struct thread_pool *pool, struct thread_pool_slot *slot)
{
    if (!slot->is_slow) {
        slot->is_slow = true;
        if (pool->calls->slow != NULL) {
            pool->calls->slow(pool->owner, (size_t)(slot - pool->slots));
        }
    }
}

void thread_pool_look(struct thread_pool *pool)
{
    const uint64_t now_ns = limit_clock_ns();
    const uint64_t look_max_ns = pool->hang_ns / LOOK_PART;
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++) {
        struct thread_pool_slot *slot = &pool->slots[i];
        const uint64_t since_ns = now_ns - slot->look_ns;
        if (!slot->is_busy || slot->is_given_up || since_ns < pool->hang_ns / PAUSE_PART) {
            continue;
        }
        slot->look_ns = now_ns;
        if (is_asleep(slot)) {
            slot->asleep_ns += since_ns < look_max_ns ? since_ns : look_max_ns;
        }
        if (slot->asleep_ns >= pool->hang_ns / SLOW_PART ||
            now_ns - slot->begin_ns >= pool->hang_ns) {
            become_slow(pool, slot);
        }
    }
}

size_t thread_pool_working_count(struct thread_pool *pool)
{
    size_t count = 0;
    thread_pool_look(pool);
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++) {
        count += pool->slots[i].is_busy && !pool->slots[i].is_slow;
    }
    return count;
}

bool thread_pool_is_hung(const struct thread_pool *pool, size_t slot)
{
    const struct thread_pool_slot *looked = &pool->slots[slot];
    return looked->is_busy && !looked->is_given_up && looked->asleep_ns >= pool->hang_ns;
}

void thread_pool_give_up(struct thread_pool *pool, size_t slot)
{
    become_slow(pool, &pool->slots[slot]);
    pool->slots[slot].is_given_up = true;
    thread_news_tell(&pool->changed, INT_MAX);
}

static size_t count_idle(const struct thread_pool *pool)
{
    size_t count = 0;
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++) {
        count += pool->slots[i].is_running && !pool->slots[i].is_busy;
    }
    return count;
}

/* Does what there is to do. False: nothing. */
static bool work(struct thread_pool *pool, size_t number)
{
    struct thread_pool_slot *slot = &pool->slots[number];
    if (!pool->calls->begin(pool->owner, number)) {
        return false;
    }
    slot->is_busy = true;
    slot->begin_ns = slot->look_ns = limit_clock_ns();
    slot->asleep_ns = 0;
    (void)thread_pool_keep_one_idle(pool);
    (void)pthread_mutex_unlock(&pool->lock);
    pool->calls->work(pool->owner, number);
    (void)pthread_mutex_lock(&pool->lock);
    bool was_given_up = slot->is_given_up;
    slot->is_busy = slot->is_slow = slot->is_given_up = false;
    pool->calls->finish(pool->owner, number, was_given_up);
    return true;
}

/* While threads work, one without work looks again after a while: one may be slow then. */
static void wait_for_work(struct thread_pool *pool, unsigned int news)
{
    if (thread_pool_working_count(pool) == 0) {
        (void)thread_news_wait(&pool->changed, news, &pool->lock, NULL);
        return;
    }
    const struct timespec limit = clock_timespec(limit_clock_ns() + pool->hang_ns / SLOW_PART);
    (void)thread_news_wait(&pool->changed, news, &pool->lock, &limit);
}

static void *run_thread(void *userdata)
{
    struct thread_pool_slot *slot = userdata;
    struct thread_pool *pool = slot->pool;
    size_t number = (size_t)(slot - pool->slots);
    slot->tid = gettid();
    if (pool->calls->enter != NULL) {
        pool->calls->enter(pool->owner, number);
    }
    (void)pthread_mutex_lock(&pool->lock);
    for (;;) {
        unsigned int news = thread_news_number(&pool->changed);
        if (work(pool, number)) {
            continue;
        }
        if (pool->is_ending || count_idle(pool) > pool->idle_max) {
            break;
        }
        wait_for_work(pool, news);
    }
    if (pool->calls->leave != NULL) {
        pool->calls->leave(pool->owner, number);
    }
    slot->is_running = false;
    thread_pool_release(pool);
    return NULL;
}

int thread_pool_keep_one_idle(struct thread_pool *pool)
{
    size_t i = 0;
    while (i < THREAD_POOL_SLOTS && pool->slots[i].is_running) {
        i++;
    }
    if (i == THREAD_POOL_SLOTS || count_idle(pool) > 0 || pool->is_ending) {
        return 0;
    }
    pool->slots[i] = (struct thread_pool_slot){.pool = pool, .is_running = true};
    pool->holder_count++;
    (void)pthread_mutex_unlock(&pool->lock);
    int r = threads_start(run_thread, &pool->slots[i]);
    (void)pthread_mutex_lock(&pool->lock);
    if (r < 0) {
        pool->slots[i].is_running = false;
        pool->holder_count--;
    }
    return r;
}

/* True when threads are left that are not given up, and so end soon. */
static bool has_company(const struct thread_pool *pool)
{
    size_t lost_count = 0;
    for (size_t i = 0; i < THREAD_POOL_SLOTS; i++) {
        lost_count += pool->slots[i].is_given_up;
    }
    return pool->holder_count > 1 + lost_count;
}

void thread_pool_end(struct thread_pool *pool, uint64_t wait_ns)
{
    const struct timespec limit = clock_timespec(limit_clock_ns() + wait_ns);
    bool has_time = true;
    pool->is_ending = true;
    thread_news_tell(&pool->changed, INT_MAX);
    while (has_company(pool) && has_time) {
        unsigned int news = thread_news_number(&pool->changed);
        has_time = thread_news_wait(&pool->changed, news, &pool->lock, &limit);
    }
}
