/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What one thread puts in the other takes whole, once, and in the order that collector.h promises;
 * who has something to take is woken.
 */
#include "clock.h"
#include "collector_mailbox.h"
#include "unit_test.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define SAMPLED       2
#define WITH_SIDEBAND 3

static int set_up(void **state)
{
    struct collector_mailbox *mailbox = NULL;
    assert_int_equal(collector_mailbox_new(SAMPLED, WITH_SIDEBAND, &mailbox), 0);
    *state = mailbox;
    return 0;
}

static int tear_down(void **state)
{
    (void)collector_mailbox_free(*state);
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

#define STORY(name) TEST_WITH(name, set_up, tear_down)

STORY(requests_are_taken_together_and_once)
{
    struct collector_mailbox *mailbox = *state;
    const int fd = collector_mailbox_request_fd(mailbox);
    assert_false(is_awake(fd));
    collector_mailbox_request(mailbox, COLLECTOR_DRAIN);
    collector_mailbox_request(mailbox, COLLECTOR_RESUME);
    assert_true(is_awake(fd));
    assert_int_equal(collector_mailbox_take(mailbox).requests, COLLECTOR_DRAIN | COLLECTOR_RESUME);
    assert_false(is_awake(fd));
    assert_int_equal(collector_mailbox_take(mailbox).requests, 0);
}

STORY(the_last_books_are_those_of_the_finish)
{
    struct collector_mailbox *mailbox = *state;
    collector_mailbox_finish(mailbox, strdup("{}"), 1);
    collector_mailbox_finish(mailbox, strdup("{\"total\":{}}"), 2);
    struct collector_mail mail = collector_mailbox_take(mailbox);
    assert_int_equal(mail.requests, COLLECTOR_FINISH);
    assert_string_equal(mail.books_json, "{\"total\":{}}");
    assert_int_equal(mail.names_limit_ns, 2);
    free(mail.books_json);
    assert_null(collector_mailbox_take(mailbox).books_json);
    collector_mailbox_finish(mailbox, strdup("never taken"), 3);
}

STORY(a_loss_comes_with_what_takes_its_place)
{
    struct collector_mailbox *mailbox = *state;
    collector_mailbox_lose_cpu(mailbox, 2);
    collector_mailbox_replace_cpu(mailbox, make_opening(2));
    assert_true(is_awake(collector_mailbox_request_fd(mailbox)));
    struct collector_mail mail = collector_mailbox_take(mailbox);
    assert_false(mail.lost[0]);
    assert_false(mail.lost[1]);
    assert_true(mail.lost[2]);
    struct perf_opening *opening = perf_opening_pop(&mail.openings);
    assert_int_equal(opening->index, 2);
    assert_null(mail.openings);

    mail = collector_mailbox_take(mailbox);
    assert_false(mail.lost[2]);
    assert_null(mail.openings);
    assert_null(collector_mailbox_take_replaced(mailbox));
    collector_mailbox_post_replaced(mailbox, opening);
    assert_int_equal(collector_mailbox_take_event(mailbox), COLLECTOR_REPLACED);
    assert_ptr_equal(collector_mailbox_take_replaced(mailbox), opening);
    assert_null(collector_mailbox_take_replaced(mailbox));
    collector_mailbox_post_replaced(mailbox, opening); /* never taken, as the next one */
    collector_mailbox_replace_cpu(mailbox, make_opening(1));
}

STORY(an_older_finish_is_told_before_a_drain)
{
    struct collector_mailbox *mailbox = *state;
    const int fd = collector_mailbox_event_fd(mailbox);
    assert_int_equal(collector_mailbox_take_event(mailbox), COLLECTOR_NOTHING);
    collector_mailbox_post(mailbox, COLLECTOR_DRAINED);
    collector_mailbox_post(mailbox, COLLECTOR_FINISHED);
    collector_mailbox_post(mailbox, COLLECTOR_HUNG);
    assert_true(is_awake(fd));
    assert_int_equal(collector_mailbox_take_event(mailbox), COLLECTOR_HUNG);
    assert_int_equal(collector_mailbox_take_event(mailbox), COLLECTOR_FINISHED);
    assert_int_equal(collector_mailbox_take_event(mailbox), COLLECTOR_DRAINED);
    assert_int_equal(collector_mailbox_take_event(mailbox), COLLECTOR_NOTHING);
    assert_false(is_awake(fd));
}

STORY(a_snapshot_is_what_was_published_last)
{
    struct collector_mailbox *mailbox = *state;
    const struct counters counters = {.late_rounds = 7};
    const struct books_cpu lines[SAMPLED] = {{.offline_ns = 1}, {.offline_ns = 2, .held = 3}};
    struct books_cpu seen[SAMPLED] = {0};
    struct books books = {.cpus = seen, .cpu_count = SAMPLED};
    collector_mailbox_publish(mailbox, &counters, lines);
    collector_mailbox_snapshot(mailbox, &books);
    assert_int_equal(books.counters.late_rounds, 7);
    assert_int_equal(seen[0].offline_ns, 1);
    assert_int_equal(seen[1].offline_ns, 2);
    assert_int_equal(seen[1].held, 3);
    collector_mailbox_post_hung(mailbox, 7);
    assert_int_equal(collector_mailbox_take_event(mailbox), COLLECTOR_HUNG);
    assert_int_equal(collector_mailbox_hung_pid(mailbox), 7);
    collector_mailbox_beat(mailbox, 5);
    assert_int_equal(collector_mailbox_beat_ns(mailbox), 5);
}

static atomic_bool has_walked;

static void *end_walk(void *userdata)
{
    (void)poll(NULL, 0, 10);
    has_walked = true;
    collector_mailbox_end_walk(userdata);
    return NULL;
}

STORY(waits_for_the_walk_and_not_for_ever)
{
    struct collector_mailbox *mailbox = *state;
    pthread_t walker;
    const uint64_t limit_ns = 20000000;
    const uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    collector_mailbox_await_walk(mailbox, limit_ns);
    assert_true(clock_ns(CLOCK_MONOTONIC) - began_ns >= limit_ns);
    assert_int_equal(pthread_create(&walker, NULL, end_walk, mailbox), 0);
    collector_mailbox_await_walk(mailbox, UINT64_C(1000000000000));
    assert_true(has_walked);
    assert_int_equal(pthread_join(walker, NULL), 0);
}
