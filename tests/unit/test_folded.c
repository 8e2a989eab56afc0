/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The text of folded stacks: what stands in a line, and in which order lines stand.
 */
#include "app_recording.h"

TEST(prints_nothing_without_samples)
{
    assert_folded(recording_new(), "");
}

TEST(keeps_names_from_breaking_lines_and_frames)
{
    static const struct {
        const char *name;
        const char *expected;
        const char *first; /* the same at the beginning of a line; NULL: no other */
    } cases[] = {
        {"#a#b", "#a#b", ":a#b"},
        {"  #a", "  #a", "  :a"},
        {"a;b", "a:b", NULL},
        {"a\nb", "a:b", NULL},
        {"a\rb", "a:b", NULL},
        {"a\033[2Jb", "a?[2Jb", NULL},
        {"a\xc2\x9b[2J", "a?[2J", NULL},        /* C1 */
        {"a\xe2\x80\xaex", "a?x", NULL},        /* right-to-left override */
        {"a\xe2\x80\xa8;b\x7f", "a?:b?", NULL}, /* a line separator */
        {"with space", "with space", NULL},
        {"\xc3\xa4", "\xc3\xa4", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char expected[128];
        struct recording *recording = recording_new();
        add_name(recording, 7, 0, 0, cases[i].name);
        add_module(recording, 7, 1, cases[i].name, 0);
        add_mmap(recording, 0, 7, 1, 0x1000, 0x1000, 0);
        add_sample(recording, 1, 7, COMPLETE, ADDRESSES(0x1002));
        const char *first = cases[i].first == NULL ? cases[i].expected : cases[i].first;
        (void)snprintf(expected, sizeof expected, "%s;%s+0x2 1\n", first, cases[i].expected);
        assert_folded(recording, expected);
    }
}

TEST(counts_stacks_with_the_same_names_together)
{
    /* Two processes of one name, with the same function at different places. */
    assert_folded(recording_of("name 7 0 0 twin; module 7 1 lib 0xab; mmap 0 7 1 0x7000 0x1000 0;"
                               "name 8 0 0 twin; module 8 1 lib 0xab; mmap 0 8 1 0x8000 0x1000 0;"
                               "sample 1 7 1 0x7004; sample 2 7 1 0x7005;"
                               "sample 1 8 1 0x8004; sample 2 8 1 0x8005;"
                               "symbol ab lib 4 spin"),
                  "twin;spin 4\n");
}

/* The same addresses again and again, in two processes, one of which maps another file in between.
 */
TEST(keeps_processes_with_the_same_addresses_apart)
{
    struct recording *recording =
        recording_of("name 7 0 0 a; module 7 1 one; mmap 0 7 1 0x1000 0x1000 0;"
                     "name 8 0 0 b; module 8 1 two; mmap 0 8 1 0x1000 0x1000 0;"
                     "module 8 2 three; mmap 50 8 2 0x1000 0x1000 0;");
    for (uint64_t i = 0; i < 100; i++) {
        add_sample(recording, i, 7 + i % 2, COMPLETE, ADDRESSES(0x1002, 0x1008));
    }
    assert_folded(recording, "a;one+0x8;one+0x2 50\nb;three+0x8;three+0x2 25\n"
                             "b;two+0x8;two+0x2 25\n");
}

#define SAMPLES_OF(pid)                                                                            \
    "module " pid " 1 m; mmap 0 " pid " 1 0x1000 0x1000 0; sample 1 " pid " 2 0x1001;"             \
    "sample 1 " pid " 1 0x1002 0x1001; sample 1 " pid " 1 0x1001 0x1001;"                          \
    "sample 1 " pid " 1 0x1001;"

TEST(sorts_lines_whatever_the_order_of_the_file)
{
    assert_folded(recording_of("name 8 0 0 b; name 7 0 0 a;" SAMPLES_OF("8") SAMPLES_OF("7")),
                  "a;m+0x1 1\na;m+0x1;m+0x1 1\na;m+0x1;m+0x2 1\na;[truncated];m+0x1 1\n"
                  "b;m+0x1 1\nb;m+0x1;m+0x1 1\nb;m+0x1;m+0x2 1\nb;[truncated];m+0x1 1\n");
}

/* Two processes of one name; the first has a thread with a name of its own, and one without. */
static struct profile *crew(void)
{
    struct recording *recording =
        recording_of("name 7 0 0 lock; name 7 8 0 worker-0; name 9 0 0 lock; name 9 9 0 #boss;");
    static const struct {
        uint64_t pid;
        uint64_t tid;
    } tasks[] = {{7, 7}, {7, 8}, {7, 80}, {9, 9}, {9, 9}, {0, 5}, {UINT64_MAX, 5}};
    for (size_t i = 0; i < COUNT_OF(tasks); i++) {
        struct fxt_sample sample = user_sample(1, tasks[i].pid, COMPLETE, ADDRESSES(0x1));
        sample.tid = tasks[i].tid;
        fxt_write_sample(&recording->writer, &sample);
    }
    return load_recording(recording);
}

TEST(names_whom_it_is_asked_for_in_the_root_frame)
{
    assert_folded_by(crew(), EXPORT_ROOT_COMMAND,
                     "[exited];[unknown] 1\n[outside];[unknown] 1\nlock;[unknown] 5\n");
    assert_folded_by(crew(), EXPORT_ROOT_PROCESS,
                     "[exited];[unknown] 1\n[outside];[unknown] 1\nlock-7;[unknown] 3\n"
                     "lock-9;[unknown] 2\n");
    assert_folded_by(crew(), EXPORT_ROOT_THREAD,
                     ":boss-9/9;[unknown] 2\n[exited];[unknown] 1\n[outside];[unknown] 1\n"
                     "lock-7/7;[unknown] 1\nlock-7/80;[unknown] 1\nworker-0-7/8;[unknown] 1\n");
}

/* Of 514 segments, the first and the last three have a sample of pid 7, another one each time. */
TEST(gives_the_tasks_of_each_segment_a_track_of_their_own)
{
    struct recording *recording = recording_of("sample 1 7 1 0x1000");
    size_t one_bytes = recording->writer.used_bytes;
    size_t size_bytes = 4 * one_bytes + 510 * sizeof recording->memory[0];
    uint8_t *bytes = malloc(size_bytes);
    struct profile *profile = NULL;
    char *text = NULL;
    size_t text_bytes = 0;
    size_t track_count = 0;
    long long last = -1;
    assert_non_null(bytes);
    for (size_t at = 0; at < size_bytes;) {
        bool is_empty = at >= one_bytes && at < size_bytes - 3 * one_bytes;
        size_t part_bytes = is_empty ? sizeof recording->memory[0] : one_bytes;
        memcpy(bytes + at, recording->memory, part_bytes);
        at += part_bytes;
    }
    assert_int_equal(profile_load_memory(bytes, size_bytes, NULL, &profile, NULL), 0);
    assert_int_equal(profile->sample_count, 4);
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    assert_int_equal(
        export_format_find("chrome")->print(file, profile, &(struct export_options){0}), 0);
    assert_int_equal(fclose(file), 0);
    const char *at = text;
    while ((at = strstr(at, "\"name\":\"process_name\",\"pid\":")) != NULL) {
        at += strlen("\"name\":\"process_name\",\"pid\":");
        long long track = strtoll(at, NULL, 10);
        assert_true(track > last && track < INT32_MAX);
        last = track;
        track_count++;
    }
    assert_int_equal(track_count, 4);
    free(text);
    free(bytes);
    free(recording);
    (void)profile_free(profile);
}
