/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a recording means: which name, mapping and function a sample gets, as the folded stacks that
 * come out.
 */

#include "unit_test.h"

#include "app_recording.h"
#include "tables.h"

#include <stdio.h>
#include <zlib.h>

TEST(finds_functions_by_the_modules_own_addresses)
{
    struct recording *recording = app_recording();
    add_sample(recording, 10, 7, COMPLETE, ADDRESSES(0x10020, 0x10018, 0x10008));
    assert_folded(recording, "app;main;work;leaf 1\n");
}

TEST(looks_callers_up_one_byte_before_their_return_address)
{
    struct recording *recording = app_recording();
    /* A call that ends a function returns to the first byte of the next one. */
    add_sample(recording, 10, 7, COMPLETE, ADDRESSES(0x10020, 0x10020, 0x10010));
    assert_folded(recording, "app;main;work;leaf 1\n");
}

TEST(names_what_has_no_function_by_module_and_address)
{
    struct recording *recording = app_recording();
    add_sample(recording, 10, 7, COMPLETE, ADDRESSES(0x10800, 0x10900, 0x99999));
    assert_folded(recording, "app;[unknown];app+0x1900;app+0x1800 1\n");
}

TEST(shows_anonymous_memory_without_its_addresses)
{
    struct recording *recording = recording_new();
    add_name(recording, 7, 0, 0, "jit");
    add_module(recording, 7, 1, "[anon]", 0);
    add_mmap(recording, 0, 7, 1, 0x10000, 0x1000, 0);
    add_sample(recording, 10, 7, COMPLETE, ADDRESSES(0x10001));
    add_sample(recording, 11, 7, COMPLETE, ADDRESSES(0x10002));
    assert_folded(recording, "jit;[anon] 2\n");
}

TEST(takes_symbols_of_the_same_build_only)
{
    struct recording *recording = app_recording();
    add_name(recording, 8, 0, 0, "other");
    add_module(recording, 8, 1, "/bin/app", 0xcd);
    add_mmap(recording, 0, 8, 1, 0x10000, 0x1000, 0x1000);
    add_sample(recording, 10, 8, COMPLETE, ADDRESSES(0x10000));
    assert_folded(recording, "other;app+0x1000 1\n");
}

TEST(gives_each_sample_the_name_of_its_time)
{
    struct recording *recording = app_recording();
    /* The file tells them in any order. */
    add_name(recording, 7, 0, 30, "third");
    add_name(recording, 7, 0, 20, "second");
    add_sample(recording, 30, 7, COMPLETE, ADDRESSES(0x10000));
    add_sample(recording, 29, 7, COMPLETE, ADDRESSES(0x10000));
    add_sample(recording, 19, 7, COMPLETE, ADDRESSES(0x10000));
    assert_folded(recording, "app;main 1\nsecond;main 1\nthird;main 1\n");
}

TEST(lets_the_later_of_two_names_of_one_time_win)
{
    struct recording *recording = app_recording();
    add_name(recording, 7, 0, 0, "corrected");
    add_sample(recording, 5, 7, COMPLETE, ADDRESSES(0x10000));
    assert_folded(recording, "corrected;main 1\n");
}

TEST(has_no_name_for_the_time_before_the_first)
{
    struct recording *recording = recording_new();
    add_name(recording, 7, 0, 20, "late");
    add_sample(recording, 19, 7, COMPLETE, ADDRESSES(0x1));
    add_sample(recording, 20, 7, COMPLETE, ADDRESSES(0x1));
    assert_folded(recording, "[unknown];[unknown] 1\nlate;[unknown] 1\n");
}

TEST(keeps_the_processes_of_a_reused_pid_apart)
{
    struct recording *recording = app_recording();
    add_name(recording, 7, 0, 100, "new");
    add_module(recording, 7, 2, "/bin/new", 0);
    add_mmap(recording, 100, 7, 2, 0x10000, 0x1000, 0);
    add_sample(recording, 50, 7, COMPLETE, ADDRESSES(0x10000));
    add_sample(recording, 150, 7, COMPLETE, ADDRESSES(0x10000));
    add_sample(recording, 60, 7, COMPLETE, ADDRESSES(0x10000));
    assert_folded(recording, "app;main 2\nnew;new+0x0 1\n");
}

TEST(lets_the_newest_mapping_not_later_than_the_sample_win)
{
    static const struct {
        uint64_t time_ns;
        uint64_t address;
        const char *expected;
    } cases[] = {
        {9, 0x10010, "p;[unknown] 1\n"}, /* before all */
        {10, 0x10010, "p;wide+0x10 1\n"},   {20, 0x10010, "p;narrow+0x10 1\n"},
        {20, 0x10100, "p;wide+0x100 1\n"}, /* beside the narrow one */
        {29, 0x1001f, "p;narrow+0x1f 1\n"}, {30, 0x1001f, "p;last+0xf 1\n"},
        {99, 0x1000f, "p;narrow+0xf 1\n"},  {99, 0x11000, "p;[unknown] 1\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct recording *recording = recording_new();
        add_name(recording, 7, 0, 0, "p");
        add_module(recording, 7, 1, "wide", 0);
        add_module(recording, 7, 2, "narrow", 0);
        add_module(recording, 7, 3, "last", 0);
        add_mmap(recording, 30, 7, 3, 0x10010, 0x10, 0);
        add_mmap(recording, 10, 7, 1, 0x10000, 0x1000, 0);
        add_mmap(recording, 20, 7, 2, 0x10000, 0x20, 0);
        add_sample(recording, cases[i].time_ns, 7, COMPLETE, &cases[i].address, 1);
        assert_folded(recording, cases[i].expected);
    }
}

TEST(lets_a_correction_in_the_file_win_over_what_it_corrects)
{
    struct recording *recording = recording_new();
    add_name(recording, 7, 0, 0, "p");
    add_module(recording, 7, 1, "guess", 0);
    add_mmap(recording, 10, 7, 1, 0x10000, 0x1000, 0);
    add_sample(recording, 20, 7, COMPLETE, ADDRESSES(0x10000));
    add_module(recording, 7, 2, "right", 0);
    add_mmap(recording, 10, 7, 2, 0x10000, 0x1000, 0);
    assert_folded(recording, "p;right+0x0 1\n");
}

TEST(sees_a_change_of_mappings_between_equal_stacks)
{
    struct recording *recording = app_recording();
    add_module(recording, 7, 2, "plugin", 0);
    add_mmap(recording, 50, 7, 2, 0x10020, 0x10, 0);
    for (uint64_t time_ns = 40; time_ns < 60; time_ns += 5) {
        add_sample(recording, time_ns, 7, COMPLETE, ADDRESSES(0x10020, 0x10008));
        add_sample(recording, 100 - time_ns, 7, COMPLETE, ADDRESSES(0x10020, 0x10008));
    }
    assert_folded(recording, "app;main;leaf 3\napp;main;plugin+0x0 5\n");
}

/* No two stacks are equal, so each address is looked up by itself, and may have been before. */
TEST(finds_an_address_anew_when_it_is_another_one)
{
    struct recording *recording = app_recording();
    add_module(recording, 7, 2, "plugin", 0);
    add_module(recording, 7, 3, "second", 0);
    add_mmap(recording, 50, 7, 2, 0x10020, 0x10, 0);
    add_mmap(recording, 70, 7, 3, 0x10020, 0x10, 0); /* dlclose() and dlopen() */
    add_name(recording, 8, 0, 0, "other");
    add_module(recording, 8, 1, "/bin/other", 0);
    add_mmap(recording, 0, 8, 1, 0x10000, 0x1000, 0);
    add_name(recording, 7, 0, 90, "new"); /* execve(), or the pid of another process now */
    add_module(recording, 7, 4, "[unknown]", 0);
    add_mmap(recording, 90, 7, 4, 0, UINT64_MAX, 0);
    add_sample(recording, 55, 7, COMPLETE, ADDRESSES(0x10020));
    add_sample(recording, 45, 7, COMPLETE, ADDRESSES(0x10020, 0x10001));
    add_sample(recording, 75, 7, COMPLETE, ADDRESSES(0x10020, 0x10002));
    add_sample(recording, 60, 7, COMPLETE, ADDRESSES(0x10020, 0x10003));
    add_sample(recording, 61, 8, COMPLETE, ADDRESSES(0x10020, 0x10004));
    add_sample(recording, 62, 7, COMPLETE, ADDRESSES(0x10020, 0x10020)); /* as a caller, too */
    add_sample(recording, 95, 7, COMPLETE, ADDRESSES(0x10020, 0x10005));
    assert_folded(recording, "app;main;leaf 1\napp;main;plugin+0x0 1\napp;main;second+0x0 1\n"
                             "app;plugin+0x0 1\napp;work;plugin+0x0 1\nnew;[unknown];[unknown] 1\n"
                             "other;other+0x4;other+0x20 1\n");
}

TEST(holds_a_mapping_to_the_top_of_the_address_space)
{
    struct recording *recording = recording_new();
    add_name(recording, 7, 0, 0, "p");
    add_module(recording, 7, 1, "top", 0);
    add_mmap(recording, 0, 7, 1, UINT64_MAX - 0xf, UINT64_MAX, 0);
    add_sample(recording, 1, 7, COMPLETE, ADDRESSES(UINT64_MAX));
    add_sample(recording, 1, 7, COMPLETE, ADDRESSES(0x5));
    assert_folded(recording, "p;[unknown] 1\np;top+0xf 1\n");
}

TEST(puts_the_kernels_frames_inside_and_marks_them)
{
    struct recording *recording = app_recording();
    add_kernel(recording);
    struct fxt_sample sample = user_sample(10, 7, COMPLETE, ADDRESSES(0x10020, 0x10008));
    const uint64_t kernel_stack[] = {0xffffffff81000002, 0xffffffff81000002, 0xffffffff81000100};
    sample.fields |= FXT_SAMPLE_KERNEL_STACK;
    sample.kernel_stack = kernel_stack;
    sample.kernel_count = 3;
    fxt_write_sample(&recording->writer, &sample);
    assert_folded(recording, "app;main;leaf;[kernel]+0xffffffff81000100_[k];sys_read_[k];"
                             "copy_to_user_[k] 1\n");
}

/* A task in exec or exit has no user stack: the kernel's frames are all, or a marker. */
TEST(shows_the_kernel_where_there_is_no_user_stack)
{
    struct recording *recording = app_recording();
    add_kernel(recording);
    add_name(recording, 3, 0, 0, "kworker");
    const uint64_t pids[] = {7, 7, 7, 3, 3, PROFILE_PID_EXITED};
    const uint64_t kernel_stack[] = {0xffffffff81000002};
    for (size_t i = 0; i < COUNT_OF(pids); i++) {
        struct fxt_sample sample = user_sample(10 + i, pids[i], 0, NULL, 0);
        sample.fields &= ~FXT_SAMPLE_USER_STACK;
        sample.fields |= FXT_SAMPLE_KERNEL_STACK;
        sample.kernel_stack = kernel_stack;
        sample.kernel_count = i % 2;
        fxt_write_sample(&recording->writer, &sample);
    }
    /* What has a user stack is shown as if the field were not there. */
    struct fxt_sample sample = user_sample(20, 7, COMPLETE, ADDRESSES(0x10020, 0x10008));
    sample.fields |= FXT_SAMPLE_KERNEL_STACK;
    fxt_write_sample(&recording->writer, &sample);
    assert_folded(recording,
                  "[exited];copy_to_user_[k] 1\napp;[kernel] 2\napp;copy_to_user_[k] 1\n"
                  "app;main;leaf 1\nkworker;[kernel thread] 1\nkworker;copy_to_user_[k] 1\n");
}

TEST(marks_stacks_that_are_missing_or_cut)
{
    struct recording *recording = app_recording();
    add_sample(recording, 10, 7, TRUNCATED, ADDRESSES(0x10020));
    add_sample(recording, 11, 7, 0, NULL, 0);
    add_name(recording, 3, 0, 0, "kworker");
    add_sample(recording, 12, 3, 0, NULL, 0);
    add_sample(recording, 12, 3, 2 << 8, NULL, 0); /* its task was gone */
    add_sample(recording, 13, PROFILE_PID_EXITED, 0, NULL, 0);
    add_sample(recording, 14, PROFILE_PID_OUTSIDE, COMPLETE, ADDRESSES(0x1));
    assert_folded(recording, "[exited];[unknown] 1\n[outside];[unknown] 1\n"
                             "app;[unknown] 1\napp;[truncated];leaf 1\n"
                             "kworker;[kernel thread] 1\nkworker;[unknown] 1\n");
}

/* What a segment says of its pids, modules, functions and continuations, the next one may say
 * otherwise, even with the same provider id. */
TEST(keeps_segments_apart)
{
    struct recording *recording = app_recording();
    struct fxt_sample first = partial(10, 5);
    fxt_write_sample(&recording->writer, &first);
    add_sample(recording, 30, 7, COMPLETE, ADDRESSES(0x10020, 0x10008));
    fxt_write_segment_begin(&recording->writer, 1, "test");
    add_name(recording, 7, 0, 0, "other");
    add_module(recording, 7, 1, "/bin/app", 0xab);
    add_mmap(recording, 0, 7, 1, 0x10000, 0x1000, 0x1000);
    add_data(recording, FXT_STRING_SYMBOLS,
             "{\"build_id\":\"ab\",\"module\":\"/bin/app\",\"start\":4096,\"size\":16,"
             "\"name\":\"forged\"}\n");
    struct fxt_sample second = completion(5, ADDRESSES(0x10020));
    fxt_write_sample(&recording->writer, &second);
    add_sample(recording, 30, 7, COMPLETE, ADDRESSES(0x10020, 0x10008));
    fxt_write_segment_begin(&recording->writer, 2, "test");
    add_sample(recording, 30, 7, COMPLETE, ADDRESSES(0x10020, 0x10008));
    assert_folded(recording, "[unknown];[unknown];[unknown] 1\napp;[unknown] 1\napp;main;leaf 1\n"
                             "other;forged;app+0x1020 1\n");
}

TEST(counts_a_function_of_several_segments_as_one)
{
    struct recording *recording = app_recording();
    add_sample(recording, 30, 7, COMPLETE, ADDRESSES(0x10020));
    size_t segment_bytes = recording->writer.used_bytes;
    memcpy((uint8_t *)recording->memory + segment_bytes, recording->memory, segment_bytes);
    recording->writer.used_bytes *= 2;
    struct profile *profile = load_recording(recording);
    assert_int_equal(profile->sample_count, 2);
    assert_int_equal(profile->module_count, 1);
    assert_int_equal(profile->samples[0].chain, profile->samples[1].chain);
    (void)profile_free(profile);
}

TEST(keeps_the_last_books_and_the_session)
{
    struct recording *recording = recording_new();
    add_data(recording, FXT_STRING_SESSION, "{\"config\":{\"frequency_hz\":1000}}\n");
    add_data(recording, FXT_STRING_BOOKS, "{\"period_ns\":1}\n{\"period_ns\":2}\n");
    add_data(recording, FXT_STRING_BOOKS,
             "{\"period_ns\":3}\n{\"period_ns\":5}\n{\"period_ns\":4}\n");
    add_data(recording, FXT_STRING_BOOKS, "not JSON\n");
    struct profile *profile = load_recording(recording);
    assert_string_equal(profile->books_json, "{\"period_ns\":4}");
    assert_string_equal(profile->session_json, "{\"config\":{\"frequency_hz\":1000}}");
    assert_int_equal(profile_period_ns(profile), 4);
    (void)profile_free(profile);
}

TEST(takes_the_period_from_the_session_without_books)
{
    struct recording *recording = recording_new();
    add_data(recording, FXT_STRING_SESSION, "{\"config\":{\"frequency_hz\":4000}}\n");
    struct profile *profile = load_recording(recording);
    assert_int_equal(profile_period_ns(profile), 250000);
    (void)profile_free(profile);
}

TEST(counts_symbols_that_cannot_be_read)
{
    struct recording *recording = app_recording();
    add_data(recording, FXT_STRING_SYMBOLS,
             "{\"build_id\":\"ab\",\"module\":\"/bin/app\",\"start\":-1,\"size\":1,"
             "\"name\":\"negative\"}\n"
             "{\"build_id\":\"ab\",\"module\":\"/bin/app\",\"start\":1.5,\"size\":1,"
             "\"name\":\"broken\"}\n"
             "{\"build_id\":\"ab\",\"module\":\"/bin/app\",\"start\":\"0x1z\",\"size\":1,"
             "\"name\":\"text\"}\n"
             "{\"build_id\":\"ab\",\"module\":\"/bin/app\",\"start\":1,\"size\":1}\n"
             "[]\nnonsense\n");
    add_sample(recording, 10, 7, COMPLETE, ADDRESSES(0x10000));
    struct profile *profile = load_recording(recording);
    assert_int_equal(profile->tables->symbols.malformed_count, 6);
    assert_int_equal(profile->tables->symbols.count, 3);
    (void)profile_free(profile);
}

TEST(adds_up_what_was_dropped)
{
    struct recording *recording = recording_new();
    fxt_write_drop_stats(&recording->writer,
                         &(struct fxt_drop_stats){.record_count = 2, .size_bytes = 100});
    fxt_write_drop_stats(&recording->writer,
                         &(struct fxt_drop_stats){.cpu = 1, .record_count = 3, .size_bytes = 1});
    struct profile *profile = load_recording(recording);
    assert_int_equal(profile->dropped_record_count, 5);
    assert_int_equal(profile->dropped_bytes, 101);
    (void)profile_free(profile);
}

TEST(reads_up_to_where_a_recording_is_cut)
{
    struct recording *recording = app_recording();
    add_sample(recording, 10, 7, COMPLETE, ADDRESSES(0x10000));
    size_t whole_bytes = recording->writer.used_bytes;
    add_sample(recording, 11, 7, COMPLETE, ADDRESSES(0x10000));
    for (size_t cut = whole_bytes; cut <= recording->writer.used_bytes; cut++) {
        struct profile *profile = NULL;
        assert_int_equal(
            profile_load_memory((const uint8_t *)recording->memory, cut, &profile, NULL), 0);
        bool is_whole = cut == whole_bytes || cut == recording->writer.used_bytes;
        assert_int_equal(profile->input.truncated, !is_whole);
        assert_int_equal(profile->sample_count, cut == recording->writer.used_bytes ? 2 : 1);
        (void)profile_free(profile);
    }
    free(recording);
}

static void assert_refused(const char *bytes, size_t size_bytes, const char *expected)
{
    struct profile *profile = NULL;
    struct fault fault = {0};
    assert_int_equal(profile_load_memory((const uint8_t *)bytes, size_bytes, &profile, &fault),
                     -EBADMSG);
    assert_null(profile);
    assert_non_null(strstr(fault.text, expected));
}

TEST(refuses_what_is_no_recording)
{
    assert_refused("", 0, "is empty");
    assert_refused("#!", 2, "is not a recording");
    assert_refused("#!/bin/sh\necho hello\n", 21, "is not a recording");
    assert_refused("\x1f\x8b\x08 and no gzip after it", 24, "gzip");
    struct recording *recording = app_recording();
    uint64_t *after = &recording->memory[recording->writer.used_bytes / 8];
    *after = 0; /* a record of no size */
    assert_refused((const char *)recording->memory, recording->writer.used_bytes + 8,
                   "is damaged: offset");
    free(recording);
}

/* Compresses `bytes` as one gzip member; returns its size. */
static size_t compress_bytes(const void *bytes, size_t size_bytes, uint8_t *into, size_t capacity)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    memcpy(&stream.next_in, &bytes, sizeof bytes);
    stream.avail_in = (uInt)size_bytes;
    stream.next_out = into;
    stream.avail_out = (uInt)capacity;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&stream), Z_OK);
    return capacity - stream.avail_out;
}

TEST(reads_gzip_of_several_members_and_sees_it_cut)
{
    static uint8_t bytes[65536];
    struct recording *recording = app_recording();
    size_t half_bytes = recording->writer.used_bytes - 8; /* within a record */
    add_sample(recording, 10, 7, COMPLETE, ADDRESSES(0x10000));
    const uint8_t *from = (const uint8_t *)recording->memory;
    size_t first = compress_bytes(from, half_bytes, bytes, sizeof bytes);
    size_t second = compress_bytes(from + half_bytes, recording->writer.used_bytes - half_bytes,
                                   bytes + first, sizeof bytes - first);
    struct profile *profile = NULL;
    assert_int_equal(profile_load_memory(bytes, first + second, &profile, NULL), 0);
    assert_int_equal(profile->sample_count, 1);
    assert_false(profile->input.truncated);
    profile = profile_free(profile);
    assert_int_equal(profile_load_memory(bytes, first + second - 1, &profile, NULL), 0);
    assert_true(profile->input.truncated);
    (void)profile_free(profile);
    free(recording);
}
