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
static const char *rows_of_event(const struct top_intake *intake, uint32_t event)
{
    static char text[512];
    struct top_rows rows = {0};
    size_t used = 0;
    text[0] = '\0';
    assert_int_equal(top_model_rows(top_intake_model(intake),
                                    &(struct top_query){.event = event, .filter = ""}, &rows),
                     0);
    for (size_t i = 0; i < rows.count; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s %d/%d", i == 0 ? "" : ", ",
                             rows.rows[i].name, (int)rows.rows[i].self, (int)rows.rows[i].total);
    }
    top_rows_done(&rows);
    return text;
}

static const char *rows_of(const struct top_intake *intake)
{
    return rows_of_event(intake, TOP_CLOCK);
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

/* A segment of a session with that period, and a sample in a function. */
static struct recording *segment_at(const char *session, uint64_t address)
{
    struct recording *recording = begin_segment();
    add_data(recording, FXT_STRING_SESSION, session);
    add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(address));
    return recording;
}

/* Ticks of two rates make no one sum. */
TEST_MADE(struct top_intake *intake, begins_another_window_with_another_rate,
          top_intake_new(UINT64_C(3600) * NS_PER_S), top_intake_free)
{
    static const char slow[] = "{\"session\":\"a\",\"config\":{\"sample_period_ns\":10000000}}\n";
    static const char same[] = "{\"session\":\"b\",\"config\":{\"sample_period_ns\":10000000}}\n";
    static const char quick[] = "{\"session\":\"c\",\"config\":{\"sample_period_ns\":250000}}\n";
    assert_int_equal(give(intake, segment_at(slow, BASE + 0x104)), 0);
    assert_int_equal(give(intake, segment_at(same, BASE + 0x204)), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), false), 0);
    assert_string_equal(rows_of(intake), "leaf 1/1, main 1/1");
    assert_int_equal(give(intake, segment_at(quick, BASE + 0x204)), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), false), 0);
    assert_string_equal(rows_of(intake), "main 1/1");
}

TEST_MADE(struct top_intake *intake, keeps_what_comes_while_the_window_is_frozen,
          top_intake_new(UINT64_C(3600) * NS_PER_S), top_intake_free)
{
    struct fault fault = {0};
    struct top_saved saved = {0};
    struct recording *recording = begin_segment();
    add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x104));
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), false), 0);
    recording = go_on();
    add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x204));
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), true), 0);
    assert_string_equal(rows_of(intake), "leaf 1/1");
    assert_int_equal(top_intake_save(intake, path, &saved, &fault), 0);
    assert_int_equal(saved.sample_count, 2);
}

TEST_MADE(struct top_intake *intake, saves_a_recording, top_intake_new(UINT64_C(3600) * NS_PER_S),
          top_intake_free)
{
    struct profile *profile = NULL;
    struct fault fault = {0};
    struct top_saved saved = {0};
    assert_int_equal(top_intake_save(intake, path, &saved, &fault), -ENODATA);
    struct recording *recording = begin_segment();
    for (int i = 0; i < 10; i++) {
        add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x104, BASE + 0x204));
    }
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_save(intake, path, &saved, &fault), 0);
    assert_int_equal(saved.sample_count, 10);
    assert_int_equal(profile_load(path, PROFILE_NAMES_READABLE, NULL, &profile, &fault), 0);
    assert_int_equal(profile->sample_count, 10);
    (void)profile_free(profile);
    assert_true(top_intake_save(intake, "/nowhere/at/all.fxt", &saved, &fault) < 0);
    assert_contains(fault.text, "/nowhere/at/all.fxt");
}

#define WITH_WAITS                                                                                 \
    "{\"session\":\"a\",\"events\":[{\"event\":\"cpu-clock\",\"unit\":\"ns\",\"period\":1},"       \
    "{\"event\":\"off-cpu\",\"unit\":\"ns\",\"period\":1}]}\n"
#define CLOCK   0
#define OFF_CPU 1

static void add_event(struct recording *recording, uint64_t event, uint64_t weight,
                      struct fxt_sample sample)
{
    sample.fields |= FXT_SAMPLE_EVENT | FXT_SAMPLE_WEIGHT;
    sample.event = event;
    sample.weight = weight;
    fxt_write_sample(&recording->writer, &sample);
}

/* A sample of `main`. */
static struct fxt_sample in_main(void)
{
    static const uint64_t stack[] = {BASE + 0x204};
    return user_sample(now_ns(), 7, COMPLETE, stack, COUNT_OF(stack));
}

/* A sample of `main` that called `leaf`, which group 5 completes. */
static struct fxt_sample part_of_leaf(void)
{
    static const uint64_t stack[] = {BASE + 0x104};
    struct fxt_sample sample = partial(now_ns(), 5);
    sample.fields |= FXT_SAMPLE_USER_STACK;
    sample.user_stack = stack;
    sample.user_count = COUNT_OF(stack);
    return sample;
}

/* Samples whose stacks come later go on as what they are. */
TEST_MADE(struct top_intake *intake, tells_samples_of_events_apart,
          top_intake_new(UINT64_C(3600) * NS_PER_S), top_intake_free)
{
    const uint64_t rest[] = {BASE + 0x204};
    struct fxt_sample whole = completion(5, rest, COUNT_OF(rest));
    struct recording *recording = begin_segment();
    add_data(recording, FXT_STRING_SESSION, WITH_WAITS);
    add_sample(recording, now_ns(), 7, COMPLETE, ADDRESSES(BASE + 0x204));
    add_event(recording, OFF_CPU, 300, part_of_leaf());
    add_event(recording, OFF_CPU, 20, in_main());
    add_event(recording, 7, 1000, in_main()); /* the session does not name it */
    add_event(recording, CLOCK, 9, part_of_leaf());
    add_event(recording, OFF_CPU, 4, in_main());
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), false), 0);
    assert_string_equal(rows_of_event(intake, CLOCK), "main 1/1");
    assert_string_equal(rows_of_event(intake, OFF_CPU), "main 24/24");
    recording = go_on();
    add_event(recording, OFF_CPU, 1, in_main());
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), false), 0);
    recording = go_on();
    fxt_write_sample(&recording->writer, &whole);
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), false), 0);
    assert_string_equal(rows_of_event(intake, CLOCK), "main 1/2, leaf 1/1");
    assert_string_equal(rows_of_event(intake, OFF_CPU), "leaf 300/300, main 25/325");
    assert_int_equal(top_intake_events(intake)->count, 2);
    assert_int_equal(top_intake_sample_count(intake), 2);
}

/* A wait that began before the session; a tick without a stack was in the kernel. */
TEST_MADE(struct top_intake *intake, calls_a_wait_that_began_unseen_what_it_is,
          top_intake_new(UINT64_C(3600) * NS_PER_S), top_intake_free)
{
    struct recording *recording = begin_segment();
    struct fxt_sample sample = user_sample(now_ns(), 7, 0, NULL, 0);
    sample.fields &= ~(uint64_t)FXT_SAMPLE_USER_STACK;
    sample.fields |= FXT_SAMPLE_KERNEL_STACK;
    add_data(recording, FXT_STRING_SESSION, WITH_WAITS);
    add_event(recording, OFF_CPU, 300, sample);
    add_event(recording, CLOCK, 1, sample);
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_settle(intake, now_ns(), false), 0);
    assert_string_equal(rows_of_event(intake, CLOCK), "[kernel] 1/1");
    assert_string_equal(rows_of_event(intake, OFF_CPU), "[no stack] 300/300");
}

TEST_MADE(struct top_intake *intake, saves_all_events, top_intake_new(UINT64_C(3600) * NS_PER_S),
          top_intake_free)
{
    struct profile *profile = NULL;
    struct fault fault = {0};
    struct top_saved saved = {0};
    struct recording *recording = begin_segment();
    add_data(recording, FXT_STRING_SESSION, WITH_WAITS);
    add_event(recording, OFF_CPU, 300, in_main()); /* waits alone are something, too */
    assert_int_equal(give(intake, recording), 0);
    assert_int_equal(top_intake_save(intake, path, &saved, &fault), 0);
    assert_int_equal(saved.sample_count, 0);
    assert_int_equal(saved.event_sample_count, 1);
    assert_int_equal(profile_load(path, PROFILE_NAMES_READABLE, "off-cpu", &profile, &fault), 0);
    assert_int_equal(profile_total(profile), 300);
    (void)profile_free(profile);
}

TEST_MADE(struct top_intake *intake, refuses_what_is_no_recording,
          top_intake_new(UINT64_C(10) * NS_PER_S), top_intake_free)
{
    struct recording *recording = begin_segment();
    recording->memory[0] = 0;
    assert_int_equal(give(intake, recording), -EBADMSG);
}

/* Samples, each at an address that has no name and was not met before. None stays in the window,
 * not even on a machine that has just booted. */
TEST_MADE(struct top_intake *intake, stays_small_whatever_is_sampled, top_intake_new(now_ns() / 4),
          top_intake_free)
{
    uint64_t last_bytes = 0;
    bool is_renewed = false;
    uint64_t address = BASE + 0x1000;
    assert_int_equal(give(intake, begin_segment()), 0);
    while (!is_renewed) {
        struct recording *recording = go_on();
        uint64_t time_ns = now_ns() / 2;
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
