/* SPDX-License-Identifier: Apache-2.0 */

/* What profctl top keeps to be saved: always a recording, never too much. */
#include "made_recording.h"
#include "top_store.h"
#include "unit_test.h"

#define SECOND UINT64_C(1000000000)

struct copy {
    uint64_t memory[65536];
    size_t size_bytes;
};

static int copy_bytes(const void *bytes, size_t size_bytes, void *userdata)
{
    struct copy *copy = userdata;
    assert_true(copy->size_bytes + size_bytes <= sizeof copy->memory);
    memcpy((uint8_t *)copy->memory + copy->size_bytes, bytes, size_bytes);
    copy->size_bytes += size_bytes;
    return 0;
}

static int sum_bytes(const void *bytes, size_t size_bytes, void *userdata)
{
    (void)bytes;
    *(size_t *)userdata += size_bytes;
    return 0;
}

/* Adds the records of a recording as one piece, and frees it. */
static void add_piece(struct top_store *store, struct recording *recording, uint64_t now_ns)
{
    size_t size_bytes = recording->writer.used_bytes;
    assert_true(fxt_writer_ok(&recording->writer));
    for (size_t at = 0; at < size_bytes;) {
        const uint8_t *record = (const uint8_t *)recording->memory + at;
        uint64_t header = 0;
        memcpy(&header, record, sizeof header);
        size_t record_bytes = fxt_get(header, FXT_HEADER_WORDS) * FXT_WORD_BYTES;
        assert_int_equal(top_store_add(store, record, record_bytes), 0);
        at += record_bytes;
    }
    assert_int_equal(top_store_end_piece(store, now_ns), 0);
    free(recording);
}

/* A segment that names a process and has a sample of it. */
static struct recording *begin_segment(uint64_t pid, const char *name)
{
    struct recording *recording = recording_new();
    add_name(recording, pid, 0, 0, name);
    add_sample(recording, 1000, pid, COMPLETE, ADDRESSES(0x1000));
    return recording;
}

/* What goes on in a segment. */
static struct recording *go_on(uint64_t pid, const char *name)
{
    struct recording *recording = recording_new();
    recording->writer.used_bytes = 0;
    if (name != NULL) {
        add_name(recording, pid, 0, 0, name);
    }
    add_sample(recording, 2000, pid, COMPLETE, ADDRESSES(0x1000));
    return recording;
}

/* "name name": of the samples that a reader finds in what is kept. */
static const char *names_in(const struct top_store *store)
{
    static char text[8192];
    struct copy *copy = calloc(1, sizeof *copy);
    struct profile *profile = NULL;
    struct fault fault = {0};
    text[0] = '\0';
    assert_non_null(copy);
    assert_int_equal(top_store_walk(store, copy_bytes, copy), 0);
    if (profile_load_memory((const uint8_t *)copy->memory, copy->size_bytes, NULL, &profile,
                            &fault) < 0) {
        fail_msg("%s", fault.text);
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        (void)strcat(text, i == 0 ? "" : " ");
        (void)strcat(
            text,
            profile_text(profile, profile_task(profile, profile->samples[i].task)->process_name));
    }
    (void)profile_free(profile);
    free(copy);
    return text;
}

TEST_MADE(struct top_store *store, forgets_samples_by_age_and_keeps_their_names,
          top_store_new(1 << 20, 10 * SECOND), top_store_free)
{
    add_piece(store, begin_segment(7, "one"), SECOND);
    add_piece(store, go_on(8, "two"), 5 * SECOND);
    assert_string_equal(names_in(store), "one two");
    assert_int_equal(top_store_since_ns(store), SECOND);
    add_piece(store, go_on(7, NULL), 12 * SECOND);
    assert_string_equal(names_in(store), "two one"); /* the second by what the first piece said */
    assert_int_equal(top_store_since_ns(store), 5 * SECOND);
    add_piece(store, go_on(8, NULL), 20 * SECOND);
    assert_string_equal(names_in(store), "one two");
}

TEST_MADE(struct top_store *store, forgets_a_segment_with_its_last_sample,
          top_store_new(1 << 20, 10 * SECOND), top_store_free)
{
    size_t definitions = 0;
    size_t all = 0;
    add_piece(store, begin_segment(7, "one"), SECOND);
    add_piece(store, begin_segment(7, "other"), 5 * SECOND);
    assert_string_equal(names_in(store), "one other");
    add_piece(store, go_on(7, NULL), 13 * SECOND);
    assert_string_equal(names_in(store), "other other");
    assert_int_equal(top_store_walk(store, sum_bytes, &all), 0);
    assert_int_equal(top_store_size_bytes(store), all);
    assert_int_equal(top_store_walk_definitions(store, sum_bytes, &definitions), 0);
    struct recording *one_sample = go_on(7, NULL);
    assert_int_equal(definitions, all - 2 * one_sample->writer.used_bytes);
    free(one_sample);
}

/* Hours with a new name in each second: definitions that nothing needs go with their segments. */
TEST_MADE(struct top_store *store, stays_small_for_hours, top_store_new(65536, 300 * SECOND),
          top_store_free)
{
    for (uint64_t second = 1; second <= UINT64_C(4) * 3600; second++) {
        char name[32];
        (void)snprintf(name, sizeof name, "process%d", (int)second);
        add_piece(store, second % 100 == 1 ? begin_segment(second, name) : go_on(second, name),
                  second * SECOND);
        assert_true(top_store_size_bytes(store) <= 65536);
        assert_true(second * SECOND - top_store_since_ns(store) <= 300 * SECOND);
    }
    assert_true(top_store_size_bytes(store) > 20000);
    assert_contains(names_in(store) + strlen(names_in(store)) - 12, "process14400");
}

TEST_MADE(struct top_store *store, forgets_the_oldest_samples_of_too_many_bytes,
          top_store_new(4096, 300 * SECOND), top_store_free)
{
    add_piece(store, begin_segment(7, "one"), SECOND);
    for (int i = 0; i < 200; i++) {
        add_piece(store, go_on(7, NULL), 2 * SECOND);
        assert_true(top_store_size_bytes(store) <= 4096);
    }
    assert_contains(names_in(store), "one one");
}

TEST_MADE(struct top_store *store, has_nothing_at_first, top_store_new(4096, SECOND),
          top_store_free)
{
    size_t all = 0;
    assert_int_equal(top_store_end_piece(store, SECOND), 0);
    assert_int_equal(top_store_walk(store, sum_bytes, &all), 0);
    assert_int_equal(top_store_walk_definitions(store, sum_bytes, &all), 0);
    assert_int_equal(all, 0);
    assert_int_equal(top_store_since_ns(store), 0);
}
