/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A reading is of processes from a pid on, and says where the next one goes on: so each is asked
 * for when the one before has come. Its place is among the records of its own time, so these stand
 * still while it is under way, but for no longer than rings hold what comes meanwhile. A walk
 * through all threads that is wanted while another is under way begins behind the part that comes
 * next; one of a run that is over is dropped.
 */
#include "thread_times.h"

#include "capacity.h"
#include "clock.h"

#include <stdlib.h>

#define READING_PAUSE_NS (50 * NS_PER_MS)        /* the least that rings hold */
#define READING_LIMIT_NS (2 * NS_PER_S)          /* on a machine with much else to do */
#define TIMES_MAX        CAPACITY((size_t)65536) /* threads whose times are read */

static void ask_times(struct thread_times *times, int32_t from_pid)
{
    times->asked_ns = clock_ns(CLOCK_BOOTTIME);
    times->is_reading = sideband_feed_ask_times(times->feed, from_pid);
}

/* A reading of all threads begins. */
static void begin_walk(struct thread_times *times, bool is_last)
{
    times->is_due = false;
    times->is_last = is_last;
    times->has_all = false;
    times->has_failed = false;
    times->walk_ns = clock_ns(CLOCK_BOOTTIME);
    times->read_count = 0;
    ask_times(times, 0);
}

static void keep_reading(struct thread_times *times, struct proc_reading *reading)
{
    reading->next = NULL;
    reading->is_last = times->is_last;
    times->has_failed = times->has_failed || reading->has_failed;
    times->read_count += reading->time_count;
    if (times->last == NULL) {
        times->first = times->last = reading;
    } else {
        times->last->next = reading;
        times->last = reading;
    }
}

/* A kernel that counts nothing has no times of any thread. */
static void take_reading(struct proc_reading *reading, void *userdata)
{
    struct thread_times *times = userdata;
    const int error = reading->error;
    const int32_t next_pid = error == 0 ? reading->next_pid : 0;
    const bool is_wanted = error == 0 && times->is_running && !times->is_stale;
    times->is_reading = times->is_stale = false;
    if (is_wanted) {
        keep_reading(times, reading);
    } else {
        proc_reading_free(reading);
    }
    times->has_all = is_wanted && next_pid == 0 && !times->has_failed && times->read_count > 0;
    if (times->is_due) {
        begin_walk(times, times->is_due_last);
    } else if (is_wanted && next_pid != 0 && times->read_count < TIMES_MAX) {
        ask_times(times, next_pid);
    }
}

void thread_times_init(struct thread_times *times, struct sideband_feed *feed)
{
    *times = (struct thread_times){.feed = feed};
    sideband_feed_read_times(feed, take_reading, times);
}

static void drop_reading(struct thread_times *times)
{
    struct proc_reading *reading = times->first;
    times->first = reading->next;
    times->last = reading->next == NULL ? NULL : times->last;
    times->taken_count = 0;
    proc_reading_free(reading);
}

static void drop_all(struct thread_times *times)
{
    while (times->first != NULL) {
        drop_reading(times);
    }
}

void thread_times_done(struct thread_times *times)
{
    drop_all(times);
}

void thread_times_read(struct thread_times *times, bool is_last)
{
    times->wanted_ns = clock_ns(CLOCK_BOOTTIME);
    if (times->is_reading) {
        times->is_due = true;
        times->is_due_last = is_last;
    } else {
        begin_walk(times, is_last);
    }
}

bool thread_times_are_coming(const struct thread_times *times)
{
    return times->is_reading && clock_ns(CLOCK_BOOTTIME) < times->wanted_ns + READING_LIMIT_NS;
}

void thread_times_start(struct thread_times *times)
{
    times->is_running = true;
    thread_times_read(times, false);
}

uint64_t thread_times_stop(struct thread_times *times)
{
    const bool are_all_read = times->is_last && !times->is_reading && times->has_all;
    times->is_running = times->is_due = false;
    times->is_stale = times->is_reading;
    drop_all(times);
    return are_all_read ? times->walk_ns : UINT64_MAX;
}

uint64_t thread_times_limit_ns(const struct thread_times *times, uint64_t horizon_ns)
{
    bool waits_for_times = times->is_reading && !times->is_stale && horizon_ns != UINT64_MAX &&
                           horizon_ns < times->asked_ns + READING_PAUSE_NS;
    return waits_for_times && times->asked_ns < horizon_ns ? times->asked_ns : horizon_ns;
}

uint64_t thread_times_advance(struct thread_times *times)
{
    while (times->first != NULL && times->taken_count == times->first->time_count) {
        drop_reading(times);
    }
    return times->first == NULL ? UINT64_MAX : times->first->times[times->taken_count].at_ns;
}

const struct thread_reading *thread_times_take(struct thread_times *times, bool *ret_is_last)
{
    *ret_is_last = times->first->is_last;
    return &times->first->times[times->taken_count++];
}
