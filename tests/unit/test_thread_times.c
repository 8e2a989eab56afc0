/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which threads are there at the end of a run is known where a whole walk through /proc came in
 * time, and only then. The walks here are the test's own: it answers what is asked.
 */
#include "thread_times.h"
#include "unit_test.h"

#include <errno.h>
#include <stdlib.h>

static proc_feed_times_fn on_times;
static void *on_userdata;
static int32_t asked_from; /* -1: nothing is asked */
static size_t asked_count;

void sideband_feed_read_times(struct sideband_feed *feed, proc_feed_times_fn fn, void *userdata)
{
    (void)feed;
    on_times = fn;
    on_userdata = userdata;
}

bool sideband_feed_ask_times(struct sideband_feed *feed, int32_t from_pid)
{
    (void)feed;
    assert_int_equal(asked_from, -1); /* one at a time */
    asked_from = from_pid;
    asked_count++;
    return true;
}

static int set_up(void **state)
{
    static struct thread_times times;
    asked_from = -1;
    asked_count = 0;
    thread_times_init(&times, NULL);
    *state = &times;
    return 0;
}

static int tear_down(void **state)
{
    thread_times_done(*state);
    return 0;
}

#define STORY(name) TEST_WITH(name, set_up, tear_down)

static const struct thread_reading one_thread = {.pid = 7, .tid = 7, .at_ns = 5};

/* Answers what is asked: one thread, and where the next part begins. */
static void answer(struct proc_reading reading)
{
    struct proc_reading *given = malloc(sizeof *given);
    assert_non_null(given);
    assert_int_not_equal(asked_from, -1);
    *given = reading;
    given->times = &one_thread;
    given->time_count = reading.error == 0 && reading.time_count == 0 ? 1 : 0;
    asked_from = -1;
    on_times(given, on_userdata);
}

static size_t take(struct thread_times *times, bool *ret_is_last)
{
    size_t count = 0;
    while (thread_times_next_ns(times) != UINT64_MAX) {
        (void)thread_times_take(times, ret_is_last);
        count++;
    }
    return count;
}

STORY(knows_all_after_a_whole_walk)
{
    struct thread_times *times = *state;
    bool is_last = false;
    thread_times_start(times);
    answer((struct proc_reading){.next_pid = 9});
    assert_int_equal(asked_from, 9);
    answer((struct proc_reading){0});
    assert_int_equal(take(times, &is_last), 2);
    assert_false(is_last);
    thread_times_read(times, true);
    answer((struct proc_reading){0});
    assert_int_equal(take(times, &is_last), 1);
    assert_true(is_last);
    assert_int_not_equal(thread_times_stop(times), UINT64_MAX);
}

/* A folder that cannot be opened, a kernel that counts nothing: what was not read may be there all
 * the same. */
STORY(does_not_know_all_where_something_was_not_read)
{
    static const struct proc_reading parts[][2] = {
        {{.has_failed = true, .next_pid = 9}, {0}},
        {{.next_pid = 9}, {.has_failed = true}},
        {{.next_pid = 9}, {.error = -EMFILE}},
        {{.next_pid = 9, .time_count = 1}, {.time_count = 1}}, /* which answer() makes none */
    };
    struct thread_times *times = *state;
    bool is_last = false;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        thread_times_start(times);
        answer((struct proc_reading){0});
        thread_times_read(times, true);
        answer(parts[i][0]);
        answer(parts[i][1]);
        (void)take(times, &is_last);
        assert_int_equal(thread_times_stop(times), UINT64_MAX);
    }
}

/* On a machine with many threads a short run ends before the first walk has come. */
STORY(begins_the_last_walk_behind_a_part_of_the_first)
{
    struct thread_times *times = *state;
    bool is_last = true;
    thread_times_start(times);
    thread_times_read(times, true);
    assert_int_equal(asked_count, 1);
    assert_true(thread_times_are_coming(times));
    answer((struct proc_reading){.next_pid = 9});
    assert_int_equal(asked_from, 0);
    assert_int_equal(take(times, &is_last), 1);
    assert_false(is_last);
    answer((struct proc_reading){0});
    assert_int_equal(take(times, &is_last), 1);
    assert_true(is_last);
    assert_false(thread_times_are_coming(times));
    assert_int_not_equal(thread_times_stop(times), UINT64_MAX);
}

/* What the run before had asked for says nothing of this one, which reads all threads itself. */
STORY(drops_what_a_run_before_has_asked_for)
{
    struct thread_times *times = *state;
    bool is_last = true;
    thread_times_start(times);
    answer((struct proc_reading){0});
    thread_times_read(times, true);
    assert_int_equal(thread_times_stop(times), UINT64_MAX);
    thread_times_start(times);
    answer((struct proc_reading){.next_pid = 9});
    assert_int_equal(thread_times_next_ns(times), UINT64_MAX);
    assert_int_equal(asked_from, 0);
    answer((struct proc_reading){0});
    assert_int_equal(take(times, &is_last), 1);
    assert_false(is_last);
    assert_int_equal(thread_times_stop(times), UINT64_MAX); /* no last one */
}
