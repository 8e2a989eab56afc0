/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The thread that holds a lock has the priority of the one that waits for it, as the kernel says.
 * Only root may have a real-time priority, so any other user skips this.
 */
#include "threads.h"
#include "unit_test.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 10000

static pthread_mutex_t lock;
static atomic_int urgent_tid;

/* What the kernel says of a thread. */
struct stat_line {
    char state;
    long priority; /* 20 + nice, or -1 - real-time priority */
};

static struct stat_line stat_of(int tid)
{
    char path[64];
    char text[512] = "";
    struct stat_line line = {0};
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    (void)fclose(file);
    char *field = strrchr(text, ')'); /* the second one, of proc_pid_stat(5) */
    assert_non_null(field);
    line.state = field[2];
    for (int i = 2; i < 18; i++) {
        field = strchr(field + 1, ' ');
        assert_non_null(field);
    }
    line.priority = strtol(field, NULL, 10);
    return line;
}

static void *wait_urgently(void *userdata)
{
    const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    (void)userdata;
    int r = sched_setscheduler(0, SCHED_RR, &lowest);
    urgent_tid = r < 0 ? -1 : gettid();
    if (r == 0) {
        (void)pthread_mutex_lock(&lock);
        (void)pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* Waits until the thread sleeps; what it waits for is the lock. */
static bool sleeps(int tid)
{
    for (int ms = 0; ms < WAIT_MS; ms++) {
        if (stat_of(tid).state == 'S') {
            return true;
        }
        (void)usleep(1000);
    }
    return false;
}

TEST(the_holder_inherits_the_priority_of_the_waiter)
{
    pthread_t waiter;
    threads_init_lock(&lock);
    (void)pthread_mutex_lock(&lock);
    const long before = stat_of(gettid()).priority;
    assert_int_equal(pthread_create(&waiter, NULL, wait_urgently, NULL), 0);
    while (urgent_tid == 0) {
        (void)usleep(1000);
    }
    if (urgent_tid < 0) {
        (void)pthread_mutex_unlock(&lock);
        (void)pthread_join(waiter, NULL);
        skip();
    }
    assert_true(sleeps(urgent_tid));
    const long meanwhile = stat_of(gettid()).priority;
    (void)pthread_mutex_unlock(&lock);
    const long after = stat_of(gettid()).priority;
    (void)pthread_join(waiter, NULL);
    assert_true(before >= 0);
    assert_true(meanwhile < -1);
    assert_int_equal(after, before);
}
