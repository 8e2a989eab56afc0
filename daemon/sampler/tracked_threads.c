/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Threads are an array with a hash of their tids. A thread whose tid another has by now is found no
 * more, but keeps its place for its line, until the table is full: then the one that ended first
 * gives way.
 */
#include "tracked_threads.h"

#include "seeded_hash.h"

#include <stdlib.h>

#define BUCKETS     TRACKED_THREADS_MAX /* a power of two */
#define SHARE_PARTS 2

bool tracked_threads_init(struct tracked_threads *threads)
{
    threads->living.max = TRACKED_THREADS_MAX - 1;
    threads->living.parts = SHARE_PARTS;
    threads->all = calloc(TRACKED_THREADS_MAX, sizeof *threads->all);
    threads->buckets = calloc(BUCKETS, sizeof *threads->buckets);
    threads->end = 1;
    return threads->all != NULL && threads->buckets != NULL;
}

void tracked_threads_done(struct tracked_threads *threads)
{
    free(threads->all);
    free(threads->buckets);
}

static uint32_t *bucket_of(struct tracked_threads *threads, int32_t tid)
{
    return &threads->buckets[seeded_hash(&tid, sizeof tid) % BUCKETS];
}

struct tracked *tracked_threads_find(struct tracked_threads *threads, int32_t tid)
{
    for (uint32_t i = *bucket_of(threads, tid); i != 0; i = threads->all[i].next) {
        if (threads->all[i].tid == tid) {
            return &threads->all[i];
        }
    }
    return NULL;
}

void tracked_threads_unlink(struct tracked_threads *threads, struct tracked *thread)
{
    uint32_t *link = bucket_of(threads, thread->tid);
    while (&threads->all[*link] != thread) {
        link = &threads->all[*link].next;
    }
    *link = thread->next;
    thread->is_hashed = false;
}

/* A place for a thread; NULL: there is none. */
static struct tracked *take_place(struct tracked_threads *threads, uint32_t account)
{
    if (!quota_take(&threads->living, account, 1)) {
        threads->refused_count++;
        return NULL;
    }
    if (threads->end < TRACKED_THREADS_MAX) {
        return &threads->all[threads->end++];
    }
    /* Fewer live than there are places, so another has ended. */
    struct tracked *ended = &threads->all[threads->first_ended];
    threads->first_ended = ended->next_ended;
    threads->forgotten_count++;
    if (ended->is_hashed) {
        tracked_threads_unlink(threads, ended);
    }
    return ended;
}

struct tracked *tracked_threads_add(struct tracked_threads *threads, uint32_t account, int32_t pid,
                                    int32_t tid)
{
    struct tracked *thread = take_place(threads, account);
    if (thread == NULL) {
        return NULL;
    }
    uint32_t *bucket = bucket_of(threads, tid);
    *thread = (struct tracked){
        .pid = pid,
        .tid = tid,
        .next = *bucket,
        .account = account,
        .is_hashed = true,
        .line = {.pid = pid, .tid = tid},
    };
    *bucket = tracked_threads_place(threads, thread);
    return thread;
}

void tracked_threads_end(struct tracked_threads *threads, struct tracked *thread)
{
    const uint32_t place = tracked_threads_place(threads, thread);
    thread->next_ended = 0;
    quota_give(&threads->living, thread->account, 1);
    if (threads->first_ended == 0) {
        threads->first_ended = place;
    } else {
        threads->all[threads->last_ended].next_ended = place;
    }
    threads->last_ended = place;
}
