/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The books of files that were put together: of one session the last count, those of different
 * sessions add up.
 */
#include "made_recording.h"

/* A segment that names its session, 0: none, and has books, NULL: none. */
static void add_segment(struct recording *recording, int session, const char *books)
{
    char line[64];
    fxt_write_segment_begin(&recording->writer, 1, "test");
    if (session != 0) {
        (void)snprintf(line, sizeof line, "{\"session\":\"id%d\"}\n", session);
        add_data(recording, FXT_STRING_SESSION, line);
    }
    if (books != NULL) {
        add_data(recording, FXT_STRING_BOOKS, books);
    }
}

static void assert_books(struct recording *recording, const char *expected, uint64_t period_ns)
{
    struct profile *profile = load_recording(recording);
    if (expected == NULL) {
        assert_null(profile->books_json);
    } else {
        assert_string_equal(profile->books_json, expected);
    }
    assert_int_equal(profile_period_ns(profile), period_ns);
    (void)profile_free(profile);
}

TEST(adds_up_the_last_books_of_each_session)
{
    struct recording *recording = recording_new();
    add_segment(recording, 1, "{\"period_ns\":5,\"n\":1}\n");
    add_segment(recording, 2, "{\"period_ns\":5,\"n\":10}\n");
    add_segment(recording, 1, "{\"period_ns\":5,\"n\":2}\n");
    add_segment(recording, 1, NULL);
    add_segment(recording, 0, "{\"period_ns\":5,\"n\":100}\n");
    add_segment(recording, 0, "{\"period_ns\":5,\"n\":100}\n");
    add_segment(recording, 2, "{\"period_ns\":5,\"n\":20}\n");
    assert_books(recording, "{\"period_ns\":5,\"n\":222}", 5);

    recording = recording_new();
    add_segment(recording, 1, NULL);
    assert_books(recording, NULL, 0);
}

TEST(adds_up_books_cpu_by_cpu_and_says_where_they_differ)
{
    struct recording *recording = recording_new();
    add_segment(recording, 1,
                "{\"period_ns\":5,\"cpus\":[{\"cpu\":0,\"kept\":1,\"idle\":3},{\"cpu\":1,"
                "\"kept\":1,\"idle\":3}],\"total\":{\"kept\":2,\"missed\":null},"
                "\"idle_source\":\"a\"}\n");
    add_segment(recording, 2,
                "{\"period_ns\":6,\"cpus\":[{\"cpu\":1,\"kept\":-3,\"idle\":null},{\"cpu\":7,"
                "\"kept\":4}],\"total\":{\"kept\":1,\"missed\":null},\"idle_source\":\"b\"}\n");
    assert_books(recording,
                 "{\"period_ns\":null,\"cpus\":[{\"cpu\":0,\"kept\":1,\"idle\":3},{\"cpu\":1,"
                 "\"kept\":-2,\"idle\":null},{\"cpu\":7,\"kept\":4}],\"total\":{\"kept\":3,"
                 "\"missed\":null},\"idle_source\":null}",
                 0);
}

/* More CPUs than any machine's books have in a blob cost no more than reading them. */
TEST(bounds_the_cpus_of_a_sum)
{
    char *books = malloc(32768);
    size_t used = (size_t)sprintf(books, "{\"n\":1,\"cpus\":[");
    for (int i = 0; i < 1000; i++) {
        used += (size_t)sprintf(books + used, "%s{\"cpu\":%d}", i == 0 ? "" : ",", i);
    }
    (void)sprintf(books + used, "]}\n");
    struct recording *recording = recording_new();
    add_segment(recording, 1, books);
    add_segment(recording, 2, books);
    struct profile *profile = load_recording(recording);
    assert_memory_equal(profile->books_json, "{\"n\":2,", 7);
    assert_int_equal(strlen(profile->books_json), strlen(books) - 1);
    (void)profile_free(profile);
    free(books);
}

/* What stands for a CPU may be a tree, of which a comparison takes twice as long with each level.
 */
TEST(compares_no_trees)
{
    char tree[512] = "0";
    char books[sizeof tree + 64];
    char expected[2 * sizeof books];
    for (size_t level = 0; level < 12; level++) {
        char inner[sizeof tree];
        memcpy(inner, tree, sizeof tree);
        (void)snprintf(tree, sizeof tree, "{\"a\":%.500s}", inner);
    }
    struct recording *recording = recording_new();
    (void)snprintf(books, sizeof books, "{\"cpus\":[{\"cpu\":%s}]}\n", tree);
    add_segment(recording, 1, books);
    add_segment(recording, 2, books);
    (void)snprintf(expected, sizeof expected, "{\"cpus\":[{\"cpu\":%s},{\"cpu\":%s}]}", tree, tree);
    assert_books(recording, expected, 0);
}
