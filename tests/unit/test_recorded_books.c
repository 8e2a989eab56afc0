/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The books of files that were put together: of one session the last count, those of different
 * sessions add up.
 */
#include "made_recording.h"
#include "recording_length.h"

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

/* Events of one name and period are one; the same event by another period stays apart. */
TEST(adds_up_events_that_are_the_same)
{
    struct recording *recording = recording_new();
    add_segment(recording, 1,
                "{\"period_ns\":5,\"events\":[{\"event\":\"cs\",\"period\":1,\"cpus\":[{\"cpu\":0,"
                "\"lost\":1}],\"total\":{\"lost\":1}},{\"event\":\"faults\",\"period\":7}]}\n");
    add_segment(
        recording, 2,
        "{\"period_ns\":5,\"events\":[{\"event\":\"faults\",\"period\":8},{\"event\":\"cs\","
        "\"period\":1,\"cpus\":[{\"cpu\":0,\"lost\":2}],\"total\":{\"lost\":2}}]}\n");
    assert_books(recording,
                 "{\"period_ns\":5,\"events\":[{\"event\":\"cs\",\"period\":1,\"cpus\":[{\"cpu\":0,"
                 "\"lost\":3}],\"total\":{\"lost\":3}},{\"event\":\"faults\",\"period\":7},"
                 "{\"event\":\"faults\",\"period\":8}]}",
                 5);
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

/* Versions may have members of their own, and another order. */
TEST(adds_members_of_any_order)
{
    struct recording *recording = recording_new();
    add_segment(recording, 1, "{\"a\":1,\"b\":1,\"c\":1,\"old\":1,\"d\":1}\n");
    add_segment(recording, 2, "{\"d\":1,\"c\":2,\"new\":1,\"b\":3,\"a\":4}\n");
    assert_books(recording, "{\"a\":5,\"b\":4,\"c\":3,\"old\":null,\"d\":2}", 0);
}

/* Books with as many members as fit in a blob, in two orders, cost no more than reading them: each
 * is looked for among some of those that follow the last one. What lies further away is not found.
 */
TEST(looks_for_a_member_among_some_others)
{
    const int count = 1000;
    char *books[2] = {malloc(32768), malloc(32768)};
    for (int order = 0; order < 2; order++) {
        size_t used = (size_t)sprintf(books[order], "{\"first\":1");
        for (int i = 0; i < count; i++) {
            int number = order == 0 ? i : count - 1 - i;
            used += (size_t)sprintf(books[order] + used, ",\"m%d\":1", number);
        }
        (void)sprintf(books[order] + used, "}\n");
    }
    struct recording *recording = recording_new();
    add_segment(recording, 1, books[0]);
    add_segment(recording, 2, books[1]);
    struct profile *profile = load_recording(recording);
    assert_ptr_equal(strstr(profile->books_json, "{\"first\":2,\"m0\":null,"), profile->books_json);
    (void)profile_free(profile);

    recording = recording_new();
    add_segment(recording, 1, books[0]);
    add_segment(recording, 2, books[0]);
    profile = load_recording(recording);
    assert_null(strstr(profile->books_json, "null"));
    (void)profile_free(profile);
    free(books[0]);
    free(books[1]);
}

TEST(a_recording_is_as_long_as_the_cpu_that_was_sampled_longest)
{
    static const char books[] = "{\"period_ns\":1000000,\"cpus\":[{\"cpu\":0,\"expected\":2500},"
                                "{\"cpu\":1,\"expected\":400}],\"total\":{\"expected\":2900}}";
    assert_int_equal(recording_length_ns(books, 7), 2500000000);
    assert_int_equal(recording_length_ns("{\"period_ns\":1000000,\"cpus\":[]}", 7), 7);
    assert_int_equal(recording_length_ns("{\"period_ns\":1e18,\"cpus\":[{\"expected\":9}]}", 7), 7);
    assert_int_equal(recording_length_ns("[]", 7), 7);
    assert_int_equal(recording_length_ns(NULL, 7), 7);
}
