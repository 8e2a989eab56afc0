/* SPDX-License-Identifier: Apache-2.0 */

/* What profctl top makes of the bytes of a session: rows, and a recording to be saved. */
#include "clock.h"
#include "made_recording.h"
#include "top_intake.h"
#include "unit_test.h"

#include <sys/stat.h>

#define BASE UINT64_C(0x10000)

static char folder[] = "/tmp/test_top_intake.XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/saved.fxt", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char old_path[sizeof path + 4];
    (void)snprintf(old_path, sizeof old_path, "%s.old", path);
    (void)remove(path);
    (void)remove(old_path);
    return remove(folder);
}

TEST_GROUP(make_folder, remove_folder)

/* A segment with a process that has `main` and `leaf` in a module with a very long name. */
static struct recording *begin_segment(void)
{
    static const char name[] = "/x/library_with_a_name_that_is_as_long_as_a_line_of_symbols_"
                               "lets_it_be_and_has_no_other_meaning_whatsoever_________.so";
    struct recording *recording = recording_new();
    add_name(recording, 7, 0, 0, "prog");
    add_module(recording, 7, 1, name, 0xab);
    add_mmap(recording, 0, 7, 1, BASE, UINT64_C(1) << 32, 0);
    add_symbol(recording, "ab", name, "0x100", "leaf", 0x10);
    add_symbol(recording, "ab", name, "0x200", "main", 0x10);
    return recording;
}

static struct recording *go_on(void)
{
    struct recording *recording = recording_new();
    recording->writer.used_bytes = 0;
    return recording;
}

static int give(struct top_intake *intake, struct recording *recording)
{
    assert_true(fxt_writer_ok(&recording->writer));
    int r = top_intake_add(intake, recording->memory, recording->writer.used_bytes);
    free(recording);
    return r;
}

static uint64_t now_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

/* "name self/total" of each row. */
static const char *rows_of(const struct top_intake *intake)
{
    static char text[512];
    struct top_rows rows = {0};
    size_t used = 0;
    text[0] = '\0';
    assert_int_equal(
        top_model_rows(top_intake_model(intake), &(struct top_query){.filter = ""}, &rows), 0);
    for (size_t i = 0; i < rows.count; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s %d/%d", i == 0 ? "" : ", ",
                             rows.rows[i].name, (int)rows.rows[i].self, (int)rows.rows[i].total);
    }
    top_rows_done(&rows);
    return text;
}

TEST_MADE(struct top_intake *intake, makes_rows_of_functions_with_and_without_names,
          top_intake_new(UINT64_C(3600) * NS_PER_S), top_intake_free)
{
    struct recording *recording = begin_segment();
    add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x104, BASE + 0x204));
    add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x304, BASE + 0x204));
    add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x404, BASE + 0x204));
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), false), 0);
    assert_string_equal(rows_of(intake),
                        "library_with_a_name_that_is_as_long_as_a_line_of_symbols_"
                        "lets_it_be_and_has_no_other_meaning_whatsoever_________.so"
                        "+0x... 2/2, leaf 1/1, main 0/3");
}

TEST_MADE(struct top_intake *intake, goes_on_in_another_segment,
          top_intake_new(UINT64_C(3600) * NS_PER_S), top_intake_free)
{
    struct recording *recording = begin_segment();
    add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x104));
    assert_int_equal(give(intake, recording), 0);
    recording = begin_segment();
    add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x204));
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), false), 0);
    assert_string_equal(rows_of(intake), "leaf 1/1, main 1/1");
}

TEST_MADE(struct top_intake *intake, keeps_what_comes_while_the_window_is_frozen,
          top_intake_new(UINT64_C(3600) * NS_PER_S), top_intake_free)
{
    struct fault fault = {0};
    uint64_t samples = 0;
    struct recording *recording = begin_segment();
    add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x104));
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), false), 0);
    recording = go_on();
    add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x204));
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), true), 0);
    assert_string_equal(rows_of(intake), "leaf 1/1");
    assert_int_equal(top_intake_save(intake, path, &samples, &fault), 0);
    assert_int_equal(samples, 2);
}

TEST_MADE(struct top_intake *intake, saves_a_recording, top_intake_new(UINT64_C(3600) * NS_PER_S),
          top_intake_free)
{
    struct profile *profile = NULL;
    struct fault fault = {0};
    uint64_t samples = 0;
    assert_int_equal(top_intake_save(intake, path, &samples, &fault), -ENODATA);
    struct recording *recording = begin_segment();
    for (int i = 0; i < 10; i++) {
        add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x104, BASE + 0x204));
    }
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_save(intake, path, &samples, &fault), 0);
    assert_int_equal(samples, 10);
    assert_int_equal(profile_load(path, PROFILE_NAMES_READABLE, NULL, &profile, &fault), 0);
    assert_int_equal(profile->sample_count, 10);
    (void)profile_free(profile);
    assert_true(top_intake_save(intake, "/nowhere/at/all.fxt", &samples, &fault) < 0);
    assert_contains(fault.text, "/nowhere/at/all.fxt");
}

TEST_MADE(struct top_intake *intake, refuses_what_is_no_recording,
          top_intake_new(UINT64_C(10) * NS_PER_S), top_intake_free)
{
    struct recording *recording = begin_segment();
    recording->memory[0] = 0;
    assert_int_equal(give(intake, recording), -EBADMSG);
}

/* Samples, each at an address that has no name and was not met before. */
TEST_MADE(struct top_intake *intake, stays_small_whatever_is_sampled,
          top_intake_new(UINT64_C(10) * NS_PER_S), top_intake_free)
{
    uint64_t last_bytes = 0;
    bool is_renewed = false;
    uint64_t address = BASE + 0x1000;
    assert_int_equal(give(intake, begin_segment()), 0);
    while (!is_renewed) {
        struct recording *recording = go_on();
        uint64_t time_ns = now_ns() - UINT64_C(60) * NS_PER_S; /* none stays in the window */
        for (int i = 0; i < 1200; i++) {
            add_sample(recording, time_ns, 7, COMPLETE, ADDRESSES(address, BASE + 0x204));
            address += 16;
        }
        assert_int_equal(give(intake, recording), 0);
        assert_int_equal(top_intake_settle(intake, now_ns(), false), 0);
        uint64_t bytes = top_intake_made_bytes(intake);
        assert_true(bytes < UINT64_C(56) << 20);
        is_renewed = bytes < last_bytes / 2;
        last_bytes = bytes;
        assert_true(address < BASE + (UINT64_C(1) << 32)); /* else nothing is made anew */
    }
    struct recording *recording = go_on();
    add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x104, BASE + 0x204));
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), false), 0);
    assert_string_equal(rows_of(intake), "leaf 1/1, main 0/1");
}
