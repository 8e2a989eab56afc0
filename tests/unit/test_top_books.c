/* SPDX-License-Identifier: Apache-2.0 */

/* What the books say of a window. */
#include "json.h"
#include "top_books.h"
#include "unit_test.h"

#include <errno.h>

#define SECOND UINT64_C(1000000000)

/* Books of two CPUs, of which the first is always busy and the second never. */
static struct top_books books_at(uint64_t seconds, const char *session)
{
    char text[512];
    struct top_books books = {0};
    int ticks = (int)(100 * seconds);
    (void)snprintf(
        text, sizeof text,
        "{\"period_ns\":10000000,\"cpus\":["
        "{\"cpu\":3,\"expected\":%d,\"received\":%d,\"lost\":%d,\"throttled\":0,"
        "\"missed\":null,\"idle\":0},"
        "{\"cpu\":1,\"expected\":%d,\"received\":0,\"lost\":0,\"throttled\":0,"
        "\"missed\":0,\"idle\":%d}],"
        "\"total\":{\"expected\":%d,\"received\":%d,\"lost\":%d,\"missed\":7,\"throttled\":1,"
        "\"dropped\":%d}}",
        ticks, ticks - (int)seconds, (int)seconds, ticks, ticks, 2 * ticks, ticks - (int)seconds,
        (int)seconds, (int)(2 * seconds));
    cJSON *tree = cJSON_Parse(text);
    assert_non_null(tree);
    assert_int_equal(top_books_read(tree, session, seconds * SECOND, &books), 0);
    cJSON_Delete(tree);
    return books;
}

TEST(has_what_came_within_the_window)
{
    struct top_history history = {.window_ns = 10 * SECOND};
    struct top_books window;
    for (uint64_t second = 1; second <= 1000; second++) {
        struct top_books books = books_at(second, "a");
        top_history_add(&history, &books);
        assert_true(history.count <= TOP_BOOKS_POINTS + 1);
    }
    assert_int_equal(top_history_difference(&history, &window), 0);
    assert_int_equal(window.period_ns, 10000000);
    assert_int_equal(window.expected, 2000);
    assert_int_equal(window.lost, 10);
    assert_int_equal(window.missed, 0);
    assert_int_equal(window.dropped, 20);
    assert_int_equal(window.cpu_count, 2);
    assert_int_equal(window.cpus[0].cpu, 3);
    assert_int_equal(window.cpus[0].expected, 1000);
    assert_int_equal(window.cpus[0].busy, 1000);
    assert_int_equal(window.cpus[1].busy, 0);
    top_books_done(&window);
    top_history_done(&history);
}

TEST(keeps_few_books_of_a_long_window)
{
    struct top_history history = {.window_ns = 600 * SECOND};
    struct top_books window;
    for (uint64_t second = 1; second <= 5000; second++) {
        struct top_books books = books_at(second, "a");
        top_history_add(&history, &books);
        assert_true(history.count <= TOP_BOOKS_POINTS + 1);
    }
    assert_int_equal(top_history_difference(&history, &window), 0);
    assert_in_range(window.lost, 600 - 600 / TOP_BOOKS_POINTS, 600 + 600 / TOP_BOOKS_POINTS);
    top_books_done(&window);
    top_history_done(&history);
}

TEST(begins_anew_with_another_session)
{
    struct top_history history = {.window_ns = 10 * SECOND};
    struct top_books window;
    struct top_books old = books_at(500, "a");
    struct top_books new = books_at(3, "b");
    top_history_add(&history, &old);
    top_history_add(&history, &new);
    assert_int_equal(top_history_difference(&history, &window), 0);
    assert_int_equal(window.lost, 3); /* since it began */
    assert_int_equal(window.missed, 8);
    top_books_done(&window);
    top_history_done(&history);
}

TEST(the_first_look_waits_for_what_was_taken_until_it_was_due)
{
    struct top_history history = {.window_ns = 10 * SECOND};
    struct top_first_look look = {.due_ns = 2 * SECOND};
    struct top_books books = books_at(1, "a");
    top_history_add(&history, &books);
    assert_false(top_first_look_is_due(&look, &history, 2 * SECOND, 1000)); /* books are older */
    books = books_at(2, "a");
    top_history_add(&history, &books);
    const uint64_t wanted = history.points[history.count - 1].wanted;
    assert_int_equal(wanted, 194); /* 198 received, 4 dropped */
    assert_false(top_first_look_is_due(&look, &history, 2 * SECOND, 8));
    assert_int_equal(top_history_pending(&history, 8), wanted - 8);
    books = books_at(3, "a");
    top_history_add(&history, &books);
    assert_false(top_first_look_is_due(&look, &history, 3 * SECOND, wanted - 1));
    assert_true(top_first_look_is_due(&look, &history, 3 * SECOND, wanted));
    assert_true(top_first_look_is_due(&look, &history, 2 * SECOND + TOP_FIRST_LOOK_NS, 8));
    assert_int_equal(top_history_pending(&history, UINT64_MAX), 0);
    top_history_done(&history);
}

TEST(is_all_zero_of_nothing)
{
    struct top_history history = {.window_ns = SECOND};
    struct top_books window = {.lost = 1};
    assert_int_equal(top_history_difference(&history, &window), 0);
    assert_int_equal(window.lost, 0);
    assert_int_equal(window.cpu_count, 0);
}

TEST(refuses_what_are_no_books)
{
    static const char *const texts[] = {"{}", "[]", "{\"total\":{}}", "{\"total\":1,\"cpus\":[]}"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct top_books books = {0};
        cJSON *tree = cJSON_Parse(texts[i]);
        assert_int_equal(top_books_read(tree, "a", 0, &books), -EBADMSG);
        cJSON_Delete(tree);
    }
}
