/* SPDX-License-Identifier: Apache-2.0 */

/* Which of several recordings have samples in common. */
#include "first_samples.h"
#include "recording.h"
#include "unit_test.h"

#include <stdio.h>
#include <string.h>

static void see_sample(struct first_samples *firsts, uint64_t time_ns)
{
    const struct fxt_record record = {
        .kind = FXT_RECORD_SAMPLE, .sample = {.pid = 7, .tid = 8, .cpu = 1, .boot_ts_ns = time_ns}};
    assert_int_equal(first_samples_see(firsts, &record), 0);
}

static void see_session(struct first_samples *firsts, const char *id)
{
    char line[128];
    struct fxt_record record = {.kind = FXT_RECORD_DATA};
    (void)snprintf(line, sizeof line, "{\"session\":\"%s\"}\n", id);
    record.data.name =
        (struct fxt_string){.text = DATA_NAME_SESSION, .text_bytes = strlen(DATA_NAME_SESSION)};
    record.data.payload = (const uint8_t *)line;
    record.data.payload_bytes = strlen(line);
    assert_int_equal(first_samples_see(firsts, &record), 0);
}

/* A segment of the session ("": it names none) with two samples. */
static void see_segment(struct first_samples *firsts, const char *id, uint64_t first_ns)
{
    const struct fxt_record magic = {.kind = FXT_RECORD_MAGIC};
    const struct fxt_record completion = {.kind = FXT_RECORD_SAMPLE,
                                          .sample = {.fields = FXT_SAMPLE_CONTINUATION_COMPLETION}};
    assert_int_equal(first_samples_see(firsts, &magic), 0);
    if (id[0] != '\0') {
        see_session(firsts, id);
    }
    assert_int_equal(first_samples_see(firsts, &completion), 0);
    see_sample(firsts, first_ns);
    see_sample(firsts, first_ns + 5);
}

static void see_recording(struct first_samples *firsts, const char *id, uint64_t first_ns)
{
    see_segment(firsts, id, first_ns);
    assert_int_equal(first_samples_end(firsts), 0);
}

static void expect_shared(struct first_samples *firsts, size_t first, size_t second)
{
    size_t found[2] = {99, 99};
    assert_true(first_samples_find_shared(firsts, &found[0], &found[1]));
    assert_int_equal(found[0], first);
    assert_int_equal(found[1], second);
    first_samples_done(firsts);
}

static void expect_none(struct first_samples *firsts)
{
    size_t found = 0;
    assert_false(first_samples_find_shared(firsts, &found, &found));
    first_samples_done(firsts);
}

TEST(finds_a_copy)
{
    struct first_samples firsts = {0};
    see_recording(&firsts, "b", 300);
    see_recording(&firsts, "a", 100);
    see_recording(&firsts, "a", 100);
    see_recording(&firsts, "b", 300);
    expect_shared(&firsts, 1, 2); /* not 0 and 3, whose second one stands behind */
}

TEST(finds_a_copy_that_is_cut_off)
{
    struct first_samples firsts = {0};
    see_session(&firsts, "a");
    see_sample(&firsts, 100);
    assert_int_equal(first_samples_end(&firsts), 0);
    see_recording(&firsts, "a", 100);
    expect_shared(&firsts, 0, 1);
}

/* As `read` makes them, one after the other. */
TEST(tells_parts_of_a_session_apart)
{
    struct first_samples firsts = {0};
    see_recording(&firsts, "a", 100);
    see_recording(&firsts, "a", 200);
    see_recording(&firsts, "b", 200); /* another machine's clock may say the same */
    expect_none(&firsts);
}

TEST(finds_a_part_of_a_merged_recording)
{
    struct first_samples firsts = {0};
    see_segment(&firsts, "a", 100);
    see_recording(&firsts, "b", 300);
    see_recording(&firsts, "c", 300);
    see_recording(&firsts, "b", 300);
    expect_shared(&firsts, 0, 2);
}

/* A recording that has a segment twice has nothing in common with another. */
TEST(asks_for_two_recordings)
{
    struct first_samples firsts = {0};
    see_segment(&firsts, "a", 100);
    see_recording(&firsts, "a", 100);
    expect_none(&firsts);
}

TEST(knows_nothing_of_samples_without_a_session)
{
    struct first_samples firsts = {0};
    see_recording(&firsts, "", 100);
    see_recording(&firsts, "", 100);
    see_session(&firsts, "a"); /* without a sample */
    assert_int_equal(first_samples_end(&firsts), 0);
    see_session(&firsts, "a");
    assert_int_equal(first_samples_end(&firsts), 0);
    expect_none(&firsts);
}

TEST(takes_a_session_behind_its_samples)
{
    struct first_samples firsts = {0};
    for (size_t i = 0; i < 2; i++) {
        see_sample(&firsts, 100);
        see_session(&firsts, "a");
        assert_int_equal(first_samples_end(&firsts), 0);
    }
    expect_shared(&firsts, 0, 1);
}

TEST(numbers_the_recordings_that_are_added)
{
    struct first_samples all = {0};
    static const uint64_t begins_ns[] = {100, 200, 300, 200};
    for (size_t i = 0; i < COUNT_OF(begins_ns); i++) {
        struct first_samples one = {0};
        see_recording(&one, "a", begins_ns[i]);
        assert_int_equal(first_samples_add(&all, &one), 0);
        first_samples_done(&one);
    }
    expect_shared(&all, 1, 3);
}
