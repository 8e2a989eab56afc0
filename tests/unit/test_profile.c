/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a recording means: which name, mapping and function a sample gets, as the folded stacks that
 * come out.
 */
#include "app_recording.h"
#include "definitions.h"
#include "places.h"
#include "tables.h"

#include <zlib.h>

struct story {
    const char *lines;
    const char *folded;
};

static void check(const struct story *stories, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        print_message("  %s\n", stories[i].lines);
        assert_folded(recording_of(stories[i].lines), stories[i].folded);
    }
}

#define CHECK(...) check(ROWS_OF(struct story, __VA_ARGS__))

TEST(finds_functions_by_the_modules_own_addresses)
{
    CHECK({APP "sample 10 7 1 0x10020 0x10018 0x10008", "app;main;work;leaf 1\n"},
          /* A call that ends a function returns to the first byte of the next one. */
          {APP "sample 10 7 1 0x10020 0x10020 0x10010", "app;main;work;leaf 1\n"});
}

TEST(names_what_has_no_function_by_module_and_address)
{
    CHECK({APP "sample 10 7 1 0x10800 0x10900 0x99999", "app;[unknown];app+0x1900;app+0x1800 1\n"},
          {APP "sample 10 7 1 0x1002f; sample 10 7 1 0x10030", "app;app+0x1030 1\napp;leaf 1\n"},
          {"name 7 0 0 jit; module 7 1 [anon]; mmap 0 7 1 0x10000 0x1000 0;"
           "sample 10 7 1 0x10001; sample 11 7 1 0x10002",
           "jit;[anon] 2\n"},
          /* The symbols are of another build. */
          {APP "name 8 0 0 other; module 8 1 /bin/app 0xcd; mmap 0 8 1 0x10000 0x1000 0x1000;"
               "sample 10 8 1 0x10000",
           "other;app+0x1000 1\n"});
}

/* As docs/trace-format.md has it: the higher start holds, of equal ones the later in the file. */
TEST(lets_the_innermost_of_functions_that_overlap_win)
{
    CHECK({APP "symbol ab /bin/app 0x1100 outer 0x400; symbol ab /bin/app 0x1200 inner 0x10;"
               "symbol ab /bin/app 0x1300 astride 0x300; sample 10 7 1 0x10205;"
               "sample 10 7 1 0x102f0; sample 10 7 1 0x10480; sample 10 7 1 0x10580;"
               "sample 10 7 1 0x10600",
           "app;app+0x1600 1\napp;astride 2\napp;inner 1\napp;outer 1\n"},
          {APP "symbol ab /bin/app 0x1100 long 0x100; symbol ab /bin/app 0x1100 short 0x10;"
               "sample 10 7 1 0x10105; sample 10 7 1 0x10150",
           "app;long 1\napp;short 1\n"},
          {APP "symbol ab /bin/app 0x1100 host 0x100; symbol ab /bin/app 0x1180 empty 0;"
               "sample 10 7 1 0x10180; sample 10 7 1 0x10190",
           "app;host 2\n"},
          /* Of two modules with neighbouring tables, and at the end of all addresses. */
          {APP "module 7 2 /bin/top 0xcd; mmap 0 7 2 0x20000 0x1000 0xfffffffffffff000;"
               "symbol cd /bin/top 0xfffffffffffff800 rest 0x900;"
               "symbol cd /bin/top 0xfffffffffffff900 one 1;"
               "sample 10 7 1 0x20900; sample 10 7 1 0x20fff; sample 10 7 1 0x20100",
           "app;one 1\napp;rest 1\napp;top+0xfffffffffffff100 1\n"});
}

enum {
    OVERLAPPING = 400,
    OVERLAP_END = 3000
};

/* Functions of any nesting, against a search through all of them. */
TEST(finds_the_function_of_every_address)
{
    struct recording *recording =
        recording_of("name 7 0 0 p; module 7 1 /bin/p 0xab; sample 1 7 1 0x1;");
    uint64_t starts[OVERLAPPING];
    uint64_t sizes[OVERLAPPING];
    unsigned random = 1;
    for (size_t i = 0; i < OVERLAPPING; i++) {
        char start[24];
        char name[24];
        random = random * 1103515245 + 12345;
        starts[i] = (random >> 16) % (OVERLAP_END / 2) * (i % 5 == 0 ? 2 : 1);
        random = random * 1103515245 + 12345;
        /* Many within each other, many short ones, a few of no bytes. */
        sizes[i] = i % 3 == 0 ? OVERLAP_END - starts[i] : (random >> 16) % (i % 3 == 1 ? 8 : 300);
        (void)snprintf(start, sizeof start, "0x%llx", (unsigned long long)starts[i]);
        (void)snprintf(name, sizeof name, "f%zu", i);
        add_symbol(recording, "ab", "/bin/p", start, name, sizes[i]);
    }
    struct profile *profile = load_recording(recording);
    uint32_t symbols =
        defined_symbols(profile, profile_task(profile, profile->samples[0].task)->segment, 0);
    assert_int_not_equal(symbols, INTERN_NONE);
    for (uint64_t address = 0; address < OVERLAP_END + 10; address++) {
        char expected[24] = "";
        uint64_t highest = 0;
        for (size_t i = 0; i < OVERLAPPING; i++) {
            if (starts[i] >= highest && starts[i] <= address && address - starts[i] < sizes[i]) {
                highest = starts[i];
                (void)snprintf(expected, sizeof expected, "f%zu", i);
            }
        }
        uint32_t found = defined_symbol_find(profile, symbols, address);
        assert_string_equal(found == INTERN_NONE ? "" : profile_text(profile, found), expected);
    }
    (void)profile_free(profile);
}

TEST(defines_the_function_of_a_place_that_has_a_name)
{
    static const struct {
        bool is_defined;
        uint64_t start;
    } expected[] = {
        {true, 0x10020}, /* leaf */
        {true, 0x10010}, /* work, which ends with a call */
        {false, 0},      /* where nothing is mapped */
    };
    struct profile *profile = load_recording(recording_of(APP "sample 5 7 1 0x10022 0x10020 0x5"));
    struct place_walk walk;
    struct stack_place place;
    struct defined_function function;
    place_walk_begin(&walk, profile, &profile->samples[0]);
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_true(place_walk_next(&walk, &place));
        bool is_defined = defined_function_find(profile, &profile->samples[0], &place, &function);
        assert_int_equal(is_defined, expected[i].is_defined);
        assert_true(!is_defined || function.start == expected[i].start);
    }
    (void)profile_free(profile);
}

TEST(gives_each_sample_the_name_of_its_time)
{
    CHECK(/* The file tells them in any order. */
          {APP "name 7 0 30 third; name 7 0 20 second; sample 30 7 1 0x10000;"
               "sample 29 7 1 0x10000; sample 19 7 1 0x10000",
           "app;main 1\nsecond;main 1\nthird;main 1\n"},
          /* Of two names of one time the later in the file. */
          {APP "name 7 0 0 corrected; sample 5 7 1 0x10000", "corrected;main 1\n"},
          {"name 7 0 20 late; sample 19 7 1 1; sample 20 7 1 1",
           "[unknown];[unknown] 1\nlate;[unknown] 1\n"});
}

TEST(keeps_the_processes_of_a_reused_pid_apart)
{
    CHECK({APP "name 7 0 100 new; module 7 2 /bin/new; mmap 100 7 2 0x10000 0x1000 0;"
               "sample 50 7 1 0x10000; sample 150 7 1 0x10000; sample 60 7 1 0x10000",
           "app;main 2\nnew;new+0x0 1\n"});
}

#define MAPPINGS                                                                                   \
    "name 7 0 0 p; module 7 1 wide; module 7 2 narrow; module 7 3 last;"                           \
    "mmap 30 7 3 0x10010 0x10 0; mmap 10 7 1 0x10000 0x1000 0; mmap 20 7 2 0x10000 0x20 0;"

TEST(lets_the_newest_mapping_not_later_than_the_sample_win)
{
    CHECK({MAPPINGS "sample 9 7 1 0x10010", "p;[unknown] 1\n"}, /* before all */
          {MAPPINGS "sample 10 7 1 0x10010", "p;wide+0x10 1\n"},
          {MAPPINGS "sample 20 7 1 0x10010", "p;narrow+0x10 1\n"},
          {MAPPINGS "sample 20 7 1 0x10100", "p;wide+0x100 1\n"}, /* beside the narrow one */
          {MAPPINGS "sample 29 7 1 0x1001f", "p;narrow+0x1f 1\n"},
          {MAPPINGS "sample 30 7 1 0x1001f", "p;last+0xf 1\n"},
          {MAPPINGS "sample 99 7 1 0x1000f", "p;narrow+0xf 1\n"},
          {MAPPINGS "sample 99 7 1 0x11000", "p;[unknown] 1\n"},
          /* A correction in the file wins over what it corrects. */
          {"name 7 0 0 p; module 7 1 guess; mmap 10 7 1 0x10000 0x1000 0; sample 20 7 1 0x10000;"
           "module 7 2 right; mmap 10 7 2 0x10000 0x1000 0",
           "p;right+0x0 1\n"},
          /* To the top of the address space, and no further. */
          {"name 7 0 0 p; module 7 1 top; mmap 0 7 1 0xfffffffffffffff0 0xffffffffffffffff 0;"
           "sample 1 7 1 0xffffffffffffffff; sample 1 7 1 5",
           "p;[unknown] 1\np;top+0xf 1\n"},
          {"name 7 0 0 p; module 7 1 top; mmap 0 7 1 0xfffffffffffffff0 0x11 0;"
           "sample 1 7 1 0xffffffffffffffff",
           "p;top+0xf 1\n"});
}

#define PLUGIN        "module 7 2 plugin; mmap 50 7 2 0x10020 0x10 0;"
#define BOTH_AT(time) "sample " time " 7 1 0x10020 0x10008;"

TEST(finds_an_address_anew_when_it_is_another_one)
{
    CHECK(/* Between equal stacks. */
          {APP PLUGIN BOTH_AT("40") BOTH_AT("60") BOTH_AT("45") BOTH_AT("50") BOTH_AT("55")
               BOTH_AT("50") BOTH_AT("55") BOTH_AT("45"),
           "app;main;leaf 3\napp;main;plugin+0x0 5\n"},
          /* Each looked up by itself, and maybe before: after a dlclose() and dlopen(), in another
           * process, as a caller, and after an execve() or as another process of the pid. */
          {APP PLUGIN "module 7 3 second; mmap 70 7 3 0x10020 0x10 0;"
                      "name 8 0 0 other; module 8 1 /bin/other; mmap 0 8 1 0x10000 0x1000 0;"
                      "name 7 0 90 new; module 7 4 [unknown]; mmap 90 7 4 0 0xffffffffffffffff 0;"
                      "sample 55 7 1 0x10020; sample 45 7 1 0x10020 0x10001;"
                      "sample 75 7 1 0x10020 0x10002; sample 60 7 1 0x10020 0x10003;"
                      "sample 61 8 1 0x10020 0x10004; sample 62 7 1 0x10020 0x10020;"
                      "sample 95 7 1 0x10020 0x10005",
           "app;main;leaf 1\napp;main;plugin+0x0 1\napp;main;second+0x0 1\n"
           "app;plugin+0x0 1\napp;work;plugin+0x0 1\nnew;[unknown];[unknown] 1\n"
           "other;other+0x4;other+0x20 1\n"});
}

TEST(puts_the_kernels_frames_inside_and_marks_them)
{
    struct recording *recording = app_recording();
    add_kernel(recording);
    add_lines(recording, "sample 10 7 1 0x10020 0x10008 | 0xffffffff81000002 0xffffffff81000002 "
                         "0xffffffff81000100");
    assert_folded(recording, "app;main;leaf;[kernel]+0xffffffff81000100_[k];sys_read_[k];"
                             "copy_to_user_[k] 1\n");
}

/* Without any name of the kernel's, one frame stands for those in a row. */
TEST(folds_the_frames_of_a_kernel_without_names)
{
    struct recording *recording = app_recording();
    add_module(recording, 0, 1, "[kernel]", 0);
    add_mmap(recording, 0, 0, 1, UINT64_C(1) << 63, UINT64_C(1) << 63, UINT64_C(1) << 63);
    add_lines(recording, "sample 10 7 1 0x10020 0x10008 | 0xffffffff81000002 0xffffffff81000002 "
                         "0xffffffff81000100; sample 11 7 1 0x10020 0x10008 | 0xffffffff81000007");
    assert_folded(recording, "app;main;leaf;[kernel]_[k] 2\n");
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
    add_lines(recording, "sample 20 7 1 0x10020 0x10008 |");
    assert_folded(recording,
                  "[exited];copy_to_user_[k] 1\napp;[kernel] 2\napp;copy_to_user_[k] 1\n"
                  "app;main;leaf 1\nkworker;[kernel thread] 1\nkworker;copy_to_user_[k] 1\n");
}

TEST(marks_stacks_that_are_missing_or_cut)
{
    struct recording *recording = app_recording();
    /* The task of the last one was gone. */
    add_lines(recording, "name 3 0 0 kworker; sample 10 7 2 0x10020; sample 11 7 0;"
                         "sample 12 3 0; sample 12 3 0x200");
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
    assert_folded(recording_of(APP
                               "partial 10 7 5; sample 30 7 1 0x10020 0x10008;"
                               "segment 1; name 7 0 0 other; module 7 1 /bin/app 0xab;"
                               "mmap 0 7 1 0x10000 0x1000 0x1000; symbol ab /bin/app 0x1000 forged;"
                               "completion 5 0x10020; sample 30 7 1 0x10020 0x10008;"
                               "segment 2; sample 30 7 1 0x10020 0x10008"),
                  "[unknown];[unknown];[unknown] 1\napp;[unknown] 1\napp;main;leaf 1\n"
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
             "{\"build_id\":\"ab\",\"module\":\"/bin/app\",\"start\":true,\"size\":1,"
             "\"name\":\"true\"}\n"
             "{\"build_id\":\"ab\",\"module\":\"/bin/app\",\"start\":\"-1\",\"size\":1,"
             "\"name\":\"minus\"}\n"
             "[]\nnonsense\n");
    add_sample(recording, 10, 7, COMPLETE, ADDRESSES(0x10000));
    struct profile *profile = load_recording(recording);
    assert_int_equal(profile->tables->symbols.malformed_count, 8);
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
            profile_load_memory((const uint8_t *)recording->memory, cut, NULL, &profile, NULL), 0);
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
    assert_int_equal(
        profile_load_memory((const uint8_t *)bytes, size_bytes, NULL, &profile, &fault), -EBADMSG);
    assert_null(profile);
    assert_contains(fault.text, expected);
}

TEST(refuses_what_is_no_recording)
{
    assert_refused("", 0, "is empty");
    assert_refused("#!", 2, "is not a recording");
    assert_refused("#!/bin/sh\necho hello\n", 21, "is not a recording");
    assert_refused("\x1f\x8b\x08 and no gzip after it", 24, "gzip");
}

TEST(shows_what_stands_before_the_damage)
{
    struct recording *recording = app_recording();
    add_lines(recording, "sample 10 7 1 0x10020");
    size_t good_bytes = recording->writer.used_bytes;
    recording->memory[good_bytes / 8] = 0; /* a record of no size */
    struct profile *profile = NULL;
    assert_int_equal(profile_load_memory((const uint8_t *)recording->memory, good_bytes + 8, NULL,
                                         &profile, NULL),
                     0);
    assert_true(profile->input.damaged);
    assert_false(profile->input.truncated);
    assert_int_equal(profile->input.size_bytes, good_bytes);
    assert_int_equal(profile->sample_count, 1);
    (void)profile_free(profile);
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

TEST(reads_gzip_of_several_members_and_sees_it_cut_or_damaged)
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
    assert_int_equal(profile_load_memory(bytes, first + second, NULL, &profile, NULL), 0);
    assert_int_equal(profile->sample_count, 1);
    assert_false(profile->input.truncated);
    profile = profile_free(profile);
    assert_int_equal(profile_load_memory(bytes, first + second - 1, NULL, &profile, NULL), 0);
    assert_true(profile->input.truncated);
    profile = profile_free(profile);
    bytes[first + second - 8] ^= 1; /* its checksum */
    assert_int_equal(profile_load_memory(bytes, first + second, NULL, &profile, NULL), 0);
    assert_true(profile->input.damaged);
    assert_int_equal(profile->sample_count, 1);
    profile = profile_free(profile);
    bytes[first] = 0; /* where the second member begins */
    assert_int_equal(profile_load_memory(bytes, first + second, NULL, &profile, NULL), 0);
    assert_true(profile->input.damaged);
    assert_int_equal(profile->sample_count, 0);
    (void)profile_free(profile);
    free(recording);
}

TEST(ignores_zeros_behind_gzip_data_and_nothing_else)
{
    static const struct {
        size_t zero_bytes;
        uint8_t last;
        bool is_damaged;
    } cases[] = {{1, 0, false},  {511, 0, false},     {200000, 0, false},
                 {1, 'x', true}, {200000, 'x', true}, {1, 0x1f, true}};
    static uint8_t bytes[300000];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct recording *recording = app_recording();
        struct profile *profile = NULL;
        add_sample(recording, 10, 7, COMPLETE, ADDRESSES(0x10000));
        memset(bytes, 0, sizeof bytes);
        size_t size_bytes =
            compress_bytes(recording->memory, recording->writer.used_bytes, bytes, sizeof bytes) +
            cases[i].zero_bytes;
        bytes[size_bytes++] = cases[i].last;
        assert_int_equal(profile_load_memory(bytes, size_bytes, NULL, &profile, NULL), 0);
        assert_int_equal(profile->input.damaged, cases[i].is_damaged);
        assert_false(profile->input.truncated);
        assert_int_equal(profile->sample_count, 1);
        (void)profile_free(profile);
        free(recording);
    }
}

/* A machine that is up for 104 days has times above 2^53 ns. */
TEST(knows_the_wall_clock_of_a_machine_that_is_up_for_long)
{
    static const struct {
        const char *boot;
        bool is_time;
        int64_t offset_ns;
    } cases[] = {
        {"1000", true, 1764133455000000000 - 1000},
        {"9007199254740993", true, 1764133455000000000 - 9007199254740993},
        {"\"9007199254740993\"", true, 1764133455000000000 - 9007199254740993},
        {"9223372036854775808", false, 0},
        {"-1", false, 0},
        {"1.5", false, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char session[128];
        int64_t offset_ns = 0;
        struct recording *recording = app_recording();
        (void)snprintf(session, sizeof session,
                       "{\"created_boot_ns\":%s,\"created_realtime_ns\":\"1764133455000000000\"}\n",
                       cases[i].boot);
        add_data(recording, FXT_STRING_SESSION, session);
        struct profile *profile = load_recording(recording);
        assert_int_equal(profile_wall_offset_ns(profile, &offset_ns), cases[i].is_time);
        assert_true(labs(offset_ns - cases[i].offset_ns) < 1000);
        (void)profile_free(profile);
    }
}
