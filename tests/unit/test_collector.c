/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What one thread puts in the other takes whole, once, and in the order that collector.h promises;
 * the one with something to take is woken.
 */
#include "clock.h"
#include "collector_mail.h"
#include "unit_test.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define SAMPLED       2
#define WITH_SIDEBAND 3

static int set_up(void **state)
{
    struct collector *collector = NULL;
    assert_int_equal(collector_new(SAMPLED, WITH_SIDEBAND, &collector), 0);
    *state = collector;
    return 0;
}

static int tear_down(void **state)
{
    (void)collector_free(*state);
    return 0;
}

static bool is_awake(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 1;
}

static struct perf_opening *make_opening(size_t index)
{
    struct perf_opening *opening = calloc(1, sizeof *opening);
    assert_non_null(opening);
    opening->index = index;
    for (size_t i = 0; i < PERF_STREAMS_MAX; i++) {
        opening->cpu.streams[i].fd = -1;
    }
    return opening;
}

#define STORY(name) TEST_OF(struct collector *collector, name, set_up, tear_down)

STORY(requests_are_taken_together_and_once)
{
    const int fd = collector_request_fd(collector);
    assert_false(is_awake(fd));
    collector_drain(collector);
    collector_resume(collector, 7);
    assert_true(is_awake(fd));
    struct collector_mail mail = collector_take_mail(collector);
    assert_int_equal(mail.requests, COLLECTOR_DRAIN | COLLECTOR_RESUME);
    assert_int_equal(mail.sampling_limit_ns, 7);
    assert_false(is_awake(fd));
    assert_int_equal(collector_take_mail(collector).requests, 0);
}

STORY(the_last_books_are_those_of_the_finish)
{
    collector_finish(collector, strdup("{}"), 1);
    collector_finish(collector, strdup("{\"total\":{}}"), 2);
    struct collector_mail mail = collector_take_mail(collector);
    assert_int_equal(mail.requests, COLLECTOR_FINISH);
    assert_string_equal(mail.books_json, "{\"total\":{}}");
    assert_int_equal(mail.names_limit_ns, 2);
    free(mail.books_json);
    assert_null(collector_take_mail(collector).books_json);
    collector_finish(collector, strdup("never taken"), 3);
}

STORY(a_loss_comes_with_what_takes_its_place)
{
    collector_lose_cpu(collector, 2);
    collector_replace_cpu(collector, make_opening(2));
    assert_true(is_awake(collector_request_fd(collector)));
    struct collector_mail mail = collector_take_mail(collector);
    assert_false(mail.lost[0]);
    assert_false(mail.lost[1]);
    assert_true(mail.lost[2]);
    struct perf_opening *opening = perf_opening_pop(&mail.openings);
    assert_int_equal(opening->index, 2);
    assert_null(mail.openings);

    mail = collector_take_mail(collector);
    assert_false(mail.lost[2]);
    assert_null(mail.openings);
    assert_null(collector_take_replaced(collector));
    collector_post_replaced(collector, opening);
    assert_int_equal(collector_take_event(collector), COLLECTOR_REPLACED);
    assert_ptr_equal(collector_take_replaced(collector), opening);
    assert_null(collector_take_replaced(collector));
    collector_post_replaced(collector, opening); /* never taken, as the next one */
    collector_replace_cpu(collector, make_opening(1));
}

STORY(an_older_finish_is_told_before_a_drain)
{
    const int fd = collector_fd(collector);
    assert_int_equal(collector_take_event(collector), COLLECTOR_NOTHING);
    collector_post(collector, COLLECTOR_DRAINED);
    collector_post(collector, COLLECTOR_FINISHED);
    collector_post(collector, COLLECTOR_HUNG);
    assert_true(is_awake(fd));
    assert_int_equal(collector_take_event(collector), COLLECTOR_HUNG);
    assert_int_equal(collector_take_event(collector), COLLECTOR_FINISHED);
    assert_int_equal(collector_take_event(collector), COLLECTOR_DRAINED);
    assert_int_equal(collector_take_event(collector), COLLECTOR_NOTHING);
    assert_false(is_awake(fd));
}

STORY(a_snapshot_is_what_was_published_last)
{
    const struct counters counters = {.late_rounds = 7};
    const struct books_cpu lines[SAMPLED] = {{.offline_ns = 1}, {.offline_ns = 2, .held = 3}};
    struct books_cpu seen[SAMPLED] = {0};
    struct books books = {.cpus = seen, .cpu_count = SAMPLED};
    collector_publish(collector, &counters, lines);
    collector_snapshot(collector, &books);
    assert_int_equal(books.counters.late_rounds, 7);
    assert_int_equal(seen[0].offline_ns, 1);
    assert_int_equal(seen[1].offline_ns, 2);
    assert_int_equal(seen[1].held, 3);
    collector_post_hung(collector, 7);
    assert_int_equal(collector_take_event(collector), COLLECTOR_HUNG);
    assert_int_equal(collector_hung_pid(collector), 7);
    collector_beat(collector, 5);
    assert_int_equal(collector_beat_ns(collector), 5);
}

static atomic_bool has_walked;

/* Returns when the main thread, which has the process's id, sleeps. */
static void await_sleep_of_main(void)
{
    char path[64];
    char stat[512] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    for (char state = 'R'; state != 'S';) {
        FILE *file = fopen(path, "re");
        if (file == NULL || fgets(stat, sizeof stat, file) == NULL || fclose(file) != 0) {
            abort();
        }
        state = strrchr(stat, ')')[2];
    }
}

static void *end_walk(void *userdata)
{
    await_sleep_of_main();
    has_walked = true;
    collector_end_walk(userdata);
    return NULL;
}

STORY(waits_for_the_walk_and_not_for_ever)
{
    pthread_t walker;
    const uint64_t limit_ns = 20000000;
    const uint64_t long_ns = UINT64_C(1000000000000);
    const uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    collector_await_walk(collector, limit_ns);
    assert_true(clock_ns(CLOCK_MONOTONIC) - began_ns >= limit_ns);
    assert_int_equal(pthread_create(&walker, NULL, end_walk, collector), 0);
    collector_await_walk(collector, long_ns);
    assert_true(has_walked);
    assert_int_equal(pthread_join(walker, NULL), 0);
    /* A walk that has ended is not waited for. */
    collector_await_walk(collector, long_ns);
}
