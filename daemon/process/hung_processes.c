/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A ring under a lock that is held for a walk over it. The collector may wait for the lock, so its
 * holder inherits that priority.
 */
#include "hung_processes.h"

#include "threads.h"

#include <pthread.h>
#include <stddef.h>

static struct {
    pthread_mutex_t lock;
    struct hung {
        int32_t pid; /* 0: a free place */
        uint64_t start_time_ns;
    } places[HUNG_PROCESSES_MAX];
    size_t count; /* that were ever added */
} hung;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void)
{
    threads_init_lock(&hung.lock);
}

static void lock(void)
{
    (void)pthread_once(&once, init);
    (void)pthread_mutex_lock(&hung.lock);
}

/* Under the lock; NULL: it is not there. */
static struct hung *find(int32_t pid, uint64_t start_time_ns)
{
    for (size_t i = 0; i < HUNG_PROCESSES_MAX; i++) {
        if (hung.places[i].pid == pid && hung.places[i].start_time_ns == start_time_ns) {
            return &hung.places[i];
        }
    }
    return NULL;
}

void hung_processes_add(int32_t pid, uint64_t start_time_ns)
{
    lock();
    if (find(pid, start_time_ns) == NULL) {
        hung.places[hung.count++ % HUNG_PROCESSES_MAX] = (struct hung){pid, start_time_ns};
    }
    (void)pthread_mutex_unlock(&hung.lock);
}

void hung_processes_remove(int32_t pid, uint64_t start_time_ns)
{
    lock();
    struct hung *place = find(pid, start_time_ns);
    if (place != NULL) {
        *place = (struct hung){0};
    }
    (void)pthread_mutex_unlock(&hung.lock);
}

bool hung_processes_have(int32_t pid, uint64_t start_time_ns)
{
    lock();
    bool known = pid != 0 && find(pid, start_time_ns) != NULL;
    (void)pthread_mutex_unlock(&hung.lock);
    return known;
}
