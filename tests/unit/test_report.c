/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rows of a report, and the exact text of its JSON, which scripts read.
 */

#include "unit_test.h"

#include "made_recording.h"
#include "report.h"

#include <stdio.h>

#define BOOKS                                                                                      \
    "{\"period_ns\":1000000,\"cpus\":[{\"cpu\":1,\"expected\":12,\"received\":8,\"lost\":0,"       \
    "\"throttled\":0,\"missed\":null,\"idle\":null,\"unexplained\":4,\"kept\":7,\"filtered\":1,"   \
    "\"dropped\":0,\"steal_ns\":0,\"offline_ns\":null}],\"total\":{\"expected\":12,"               \
    "\"received\":8,\"lost\":0,\"throttled\":0,\"missed\":null,\"idle\":null,\"unexplained\":4,"   \
    "\"kept\":7,\"filtered\":1,\"dropped\":0},\"idle_source\":null,\"truncated_stacks\":1}"

/* "app" (7) with main, work and leaf; "worker" is its thread 9; "kthread" (3) is the kernel's. */
static struct profile *load_example(void)
{
    struct recording *recording = recording_new();
    add_name(recording, 7, 0, 0, "app");
    add_name(recording, 7, 9, 0, "worker");
    add_name(recording, 3, 0, 0, "kthread");
    add_module(recording, 7, 1, "/bin/app", 0xab);
    add_module(recording, 7, 2, "/lib/libx.so", 0xcd);
    add_mmap(recording, 0, 7, 1, 0x1000, 0x1000, 0);
    add_mmap(recording, 0, 7, 2, 0x2000, 0x1000, 0);
    add_data(recording, FXT_STRING_SYMBOLS,
             "{\"build_id\":\"ab\",\"module\":\"/bin/app\",\"start\":0,\"size\":16,"
             "\"name\":\"main\"}\n"
             "{\"build_id\":\"ab\",\"module\":\"/bin/app\",\"start\":16,\"size\":16,"
             "\"name\":\"work\"}\n"
             "{\"build_id\":\"cd\",\"module\":\"/lib/libx.so\",\"start\":0,\"size\":16,"
             "\"name\":\"leaf\"}\n");
    for (uint64_t i = 0; i < 3; i++) {
        add_sample(recording, 1000 + i, 7, COMPLETE, ADDRESSES(0x2001, 0x1011, 0x1001));
    }
    /* Recursion: main is there twice. */
    add_sample(recording, 1500, 7, COMPLETE, ADDRESSES(0x1001, 0x1011, 0x1001));
    struct fxt_sample sample = user_sample(1600, 7, TRUNCATED, ADDRESSES(0x2001));
    sample.tid = 9;
    fxt_write_sample(&recording->writer, &sample);
    add_sample(recording, 1700, 3, 0, NULL, 0);
    add_sample(recording, 6000, 3, 0, NULL, 0);
    add_data(recording, FXT_STRING_BOOKS, BOOKS "\n");
    return load_recording(recording);
}

static void assert_json(enum report_by by, size_t limit, const char *expected)
{
    struct profile *profile = load_example();
    struct report report;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    assert_int_equal(report_build(profile, by, &report), 0);
    report_print_json(file, profile, &report, limit);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, expected);
    free(text);
    report_done(&report);
    (void)profile_free(profile);
}

#define HEAD "{\"samples\":7,\"period_ns\":1000000,\"duration_ns\":5000,\"by\":"
#define TAIL                                                                                                  \
    "],\"stacks\":{\"complete\":4,\"unproved\":0,\"truncated\":1,\"stitched\":0,\"none\":2},\"books\":" BOOKS \
    "}\n"

TEST(prints_functions_as_json)
{
    assert_json(
        REPORT_BY_FUNCTION, 0,
        HEAD
        "\"function\",\"rows\":["
        "{\"name\":\"leaf\",\"module\":\"/lib/libx.so\",\"process\":null,\"pid\":null,"
        "\"tid\":null,\"self\":4,\"total\":4,\"self_percent\":57.14,\"total_percent\":57.14},"
        "{\"name\":\"[kernel thread]\",\"module\":null,\"process\":null,\"pid\":null,"
        "\"tid\":null,\"self\":2,\"total\":2,\"self_percent\":28.57,\"total_percent\":28.57},"
        "{\"name\":\"main\",\"module\":\"/bin/app\",\"process\":null,\"pid\":null,"
        "\"tid\":null,\"self\":1,\"total\":4,\"self_percent\":14.29,\"total_percent\":57.14},"
        "{\"name\":\"work\",\"module\":\"/bin/app\",\"process\":null,\"pid\":null,"
        "\"tid\":null,\"self\":0,\"total\":4,\"self_percent\":0.00,\"total_percent\":57.14}" TAIL);
}

TEST(prints_modules_as_json)
{
    assert_json(
        REPORT_BY_MODULE, 2,
        HEAD
        "\"module\",\"rows\":["
        "{\"name\":\"libx.so\",\"module\":\"/lib/libx.so\",\"process\":null,\"pid\":null,"
        "\"tid\":null,\"self\":4,\"total\":4,\"self_percent\":57.14,\"total_percent\":57.14},"
        "{\"name\":\"[kernel thread]\",\"module\":null,\"process\":null,\"pid\":null,"
        "\"tid\":null,\"self\":2,\"total\":2,\"self_percent\":28.57,\"total_percent\":28.57}" TAIL);
}

TEST(prints_processes_as_json)
{
    assert_json(
        REPORT_BY_PROCESS, 0,
        HEAD "\"process\",\"rows\":["
             "{\"name\":\"app\",\"module\":null,\"process\":\"app\",\"pid\":7,\"tid\":null,"
             "\"self\":5,\"total\":5,\"self_percent\":71.43,\"total_percent\":71.43},"
             "{\"name\":\"kthread\",\"module\":null,\"process\":\"kthread\",\"pid\":3,\"tid\":null,"
             "\"self\":2,\"total\":2,\"self_percent\":28.57,\"total_percent\":28.57}" TAIL);
}

TEST(prints_threads_as_json)
{
    assert_json(REPORT_BY_THREAD, 0,
                HEAD
                "\"thread\",\"rows\":["
                "{\"name\":\"app\",\"module\":null,\"process\":\"app\",\"pid\":7,\"tid\":7,"
                "\"self\":4,\"total\":4,\"self_percent\":57.14,\"total_percent\":57.14},"
                "{\"name\":\"kthread\",\"module\":null,\"process\":\"kthread\",\"pid\":3,\"tid\":3,"
                "\"self\":2,\"total\":2,\"self_percent\":28.57,\"total_percent\":28.57},"
                "{\"name\":\"worker\",\"module\":null,\"process\":\"app\",\"pid\":7,\"tid\":9,"
                "\"self\":1,\"total\":1,\"self_percent\":14.29,\"total_percent\":14.29}" TAIL);
}

TEST(prints_a_table_with_the_books_below)
{
    static const char expected[] =
        "7 samples in 0.012 s, one every 1.000000 ms of a CPU (1000.0 Hz)\n"
        "stacks: 4 complete (57.14 %), 1 truncated, 2 without a user stack\n"
        "\n"
        " self %      self  total %     total  function         module\n"
        "  57.14         4    57.14         4  leaf             /lib/libx.so\n"
        "  28.57         2    28.57         2  [kernel thread]  -\n"
        "... and 2 more; -n 0 shows all\n"
        "\n"
        "  cpu  expected  received  lost  throttled  unexplained  kept  filtered  dropped\n"
        "    1        12         8     0          0            4     7         1        0\n"
        "total        12         8     0          0            4     7         1        0\n"
        "1 stack does not reach its root\n"
        "warning: cpu 1: 33.3 % of the ticks are unexplained: nothing that is measured says "
        "where they went; THE BOOKS in profctl(1) says what can be in it\n";
    struct profile *profile = load_example();
    struct report report;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    assert_int_equal(report_build(profile, REPORT_BY_FUNCTION, &report), 0);
    report_print_table(file, profile, &report, 2);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, expected);
    free(text);
    report_done(&report);
    (void)profile_free(profile);
}

TEST(keeps_a_files_names_from_driving_the_terminal)
{
    struct recording *recording = recording_new();
    add_name(recording, 7, 0, 0,
             "\033]0;title\a\xc2\x9b"
             "2J\xe2\x80\xae");
    add_sample(recording, 1, 7, COMPLETE, ADDRESSES(0x1));
    struct profile *profile = load_recording(recording);
    struct report report;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    assert_int_equal(report_build(profile, REPORT_BY_PROCESS, &report), 0);
    report_print_table(file, profile, &report, 0);
    report_print_json(file, profile, &report, 0);
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(text, "?]0;title??2J?"));
    assert_non_null(strstr(text, "\"\\u001b]0;title\\u0007\\u009b2J"));
    assert_null(strchr(text, '\033'));
    free(text);
    report_done(&report);
    (void)profile_free(profile);
}
