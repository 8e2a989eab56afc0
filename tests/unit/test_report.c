/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rows of a report, and the exact text of its JSON, which scripts read.
 */
#include "made_recording.h"
#include "report.h"

#define BOOKS                                                                                      \
    "{\"period_ns\":1000000,\"cpus\":[{\"cpu\":1,\"expected\":12,\"received\":8,\"lost\":0,"       \
    "\"throttled\":0,\"missed\":null,\"idle\":null,\"unexplained\":4,\"kept\":7,\"filtered\":1,"   \
    "\"dropped\":0,\"steal_ns\":0,\"offline_ns\":null}],\"total\":{\"expected\":12,"               \
    "\"received\":8,\"lost\":0,\"throttled\":0,\"missed\":null,\"idle\":null,\"unexplained\":4,"   \
    "\"kept\":7,\"filtered\":1,\"dropped\":0},\"idle_source\":null,\"truncated_stacks\":1}"

/* "app" (7) with main, which is there twice in one stack, work and leaf; "worker" is its thread 9;
 * "kthread" (3) is the kernel's. */
static struct profile *load_example(void)
{
    struct recording *recording = recording_of(
        "name 7 0 0 app; name 7 9 0 worker; name 3 0 0 kthread; module 7 1 /bin/app 0xab;"
        "module 7 2 /lib/libx.so 0xcd; mmap 0 7 1 0x1000 0x1000 0; mmap 0 7 2 0x2000 0x1000 0;"
        "symbol ab /bin/app 0 main; symbol ab /bin/app 16 work; symbol cd /lib/libx.so 0 leaf;"
        "sample 1000 7 1 0x2001 0x1011 0x1001; sample 1001 7 1 0x2001 0x1011 0x1001;"
        "sample 1002 7 1 0x2001 0x1011 0x1001; sample 1500 7 1 0x1001 0x1011 0x1001;"
        "sample 1700 3 0; sample 6000 3 0");
    struct fxt_sample sample = user_sample(1600, 7, TRUNCATED, ADDRESSES(0x2001));
    sample.tid = 9;
    fxt_write_sample(&recording->writer, &sample);
    add_data(recording, FXT_STRING_BOOKS, BOOKS "\n");
    return load_recording(recording);
}

enum shown {
    SHOWN_TABLE = 1,
    SHOWN_JSON = 2
};

/* The text of a report; frees the profile. free() the text. */
static char *print_report(struct profile *profile, enum report_by by, size_t limit, unsigned shown)
{
    struct report report;
    struct summary summary;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    assert_int_equal(report_build(profile, by, REPORT_SORT_SELF, &report), 0);
    assert_int_equal(summary_take(profile, &summary), 0);
    if ((shown & SHOWN_TABLE) != 0) {
        const struct page page = {.file = file, .columns = PAGE_COLUMNS_DEFAULT};
        report_print_table(&page, profile, &summary, &report, limit);
        summary_print_foot(&page, profile, &summary, true);
    }
    if ((shown & SHOWN_JSON) != 0) {
        report_print_json(file, profile, &summary, &report, limit);
    }
    assert_int_equal(fclose(file), 0);
    report_done(&report);
    (void)profile_free(profile);
    return text;
}

#define HEAD "{\"samples\":7,\"period_ns\":1000000,\"duration_ns\":12000000,\"by\":"
#define TAIL                                                                                                                       \
    "],\"stacks\":{\"complete\":4,\"unproved\":0,\"truncated\":1,\"stitched\":0,\"none\":2,\"kernel_threads\":2},\"books\":" BOOKS \
    ",\"summary\":{\"host\":null,\"kernel\":null,\"targets\":null,\"command\":null,\"length_s\":0.012,\"cpu_s\":0.007,\"in_kernel\":2,\"kernel_unseen\":2,\"command_count\":1,\"commands\":[{\"name\":\"app\",\"processes\":1,\"samples\":5}],\"doubts\":[\"7 samples are few: shares are within about 37 points of the true ones\",\"33.3 % of the ticks are unexplained\",\"14.3 % of the stacks are cut short of their root ([truncated])\",\"28.6 % of the samples were in the kernel, whose functions were not recorded; the view shows what called it\"]}}\n"

#define ROW(name, module, process, pid, tid, self, total, self_percent, total_percent)             \
    "{\"name\":\"" name "\",\"module\":" module ",\"process\":" process ",\"pid\":" pid            \
    ",\"tid\":" tid ",\"self\":" self ",\"total\":" total ",\"self_percent\":" self_percent        \
    ",\"total_percent\":" total_percent "}"
#define OF(name, module, ...) ROW(name, module, "null", "null", "null", __VA_ARGS__)

TEST(prints_rows_of_each_kind_as_json)
{
    static const struct {
        enum report_by by;
        size_t limit;
        const char *json;
    } cases[] = {
        {REPORT_BY_FUNCTION, 0,
         HEAD "\"function\",\"row_count\":4,\"rows\":[" OF(
             "leaf", "\"/lib/libx.so\"", "4", "4", "57.14",
             "57.14") "," OF("[kernel thread]", "null", "2", "2", "28.57",
                             "28.57") "," OF("main", "\"/bin/app\"", "1", "4", "14.29",
                                             "57.14") "," OF("work", "\"/bin/app\"", "0", "4",
                                                             "0.00", "57.14") TAIL},
        {REPORT_BY_MODULE, 2,
         HEAD "\"module\",\"row_count\":3,\"rows\":[" OF(
             "libx.so", "\"/lib/libx.so\"", "4", "4", "57.14",
             "57.14") "," OF("[kernel thread]", "null", "2", "2", "28.57", "28.57") TAIL},
        {REPORT_BY_PROCESS, 0,
         HEAD "\"process\",\"row_count\":2,\"rows\":[" ROW(
             "app", "null", "\"app\"", "7", "null", "5", "5", "71.43",
             "71.43") "," ROW("kthread", "null", "\"kthread\"", "3", "null", "2", "2", "28.57",
                              "28.57") TAIL},
        {REPORT_BY_THREAD, 0,
         HEAD "\"thread\",\"row_count\":3,\"rows\":[" ROW(
             "app", "null", "\"app\"", "7", "7", "4", "4", "57.14",
             "57.14") "," ROW("kthread", "null", "\"kthread\"", "3", "3", "2", "2", "28.57",
                              "28.57") "," ROW("worker", "null", "\"app\"", "7", "9", "1", "1",
                                               "14.29", "14.29") TAIL},
        {REPORT_BY_COMMAND, 1,
         HEAD "\"command\",\"row_count\":2,\"rows\":["
              "{\"name\":\"app\",\"module\":null,\"process\":\"app\",\"pid\":null,\"tid\":null,"
              "\"self\":5,\"total\":5,\"self_percent\":71.43,\"total_percent\":71.43,"
              "\"processes\":1}" TAIL},
        {REPORT_BY_CPU, 0,
         HEAD "\"cpu\",\"row_count\":1,\"rows\":["
              "{\"name\":\"cpu 1\",\"module\":null,\"process\":null,\"pid\":null,\"tid\":null,"
              "\"self\":7,\"total\":7,\"self_percent\":100.00,\"total_percent\":100.00,"
              "\"cpu\":1}" TAIL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *text = print_report(load_example(), cases[i].by, cases[i].limit, SHOWN_JSON);
        assert_string_equal(text, cases[i].json);
        free(text);
    }
}

TEST(sorts_by_total_where_that_is_asked_for)
{
    struct profile *profile = load_example();
    struct report report;
    assert_int_equal(report_build(profile, REPORT_BY_FUNCTION, REPORT_SORT_TOTAL, &report), 0);
    static const char *const expected[] = {"leaf", "main", "work", "[kernel thread]"};
    assert_int_equal(report.row_count, COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_string_equal(profile_text(profile, report.rows[i].name), expected[i]);
    }
    report_done(&report);
    (void)profile_free(profile);
}

/* Functions with names are those of the source, which builds share; an address is one build's. */
TEST(tells_builds_apart_where_functions_have_no_names)
{
    struct recording *recording = recording_of(
        "name 7 0 0 app; module 7 1 /bin/app 0xab; mmap 0 7 1 0x10000 0x1000 0;"
        "symbol ab /bin/app 0 main; sample 1 7 1 0x10100; sample 2 7 1 0x10001;"
        "segment 2; name 7 0 0 app; module 7 1 /bin/app 0xcd; mmap 0 7 1 0x10000 0x1000 0;"
        "symbol cd /bin/app 0 main; sample 1 7 1 0x10100; sample 2 7 1 0x10100;"
        "sample 3 7 1 0x10001");
    char *text = print_report(load_recording(recording), REPORT_BY_FUNCTION, 0, SHOWN_JSON);
    assert_contains(text, "{\"name\":\"app+0x100\",\"module\":\"/bin/app\",\"build_id\":\"cd\","
                          "\"process\":null,\"pid\":null,\"tid\":null,\"self\":2,");
    assert_contains(text, "{\"name\":\"app+0x100\",\"module\":\"/bin/app\",\"build_id\":\"ab\","
                          "\"process\":null,\"pid\":null,\"tid\":null,\"self\":1,");
    assert_contains(text, "{\"name\":\"main\",\"module\":\"/bin/app\",\"process\":null,"
                          "\"pid\":null,\"tid\":null,\"self\":2,");
    free(text);
}

/* Of two samples in the kernel one has its functions there, and the other was not asked for them.
 */
TEST(has_one_row_of_the_kernel)
{
    struct recording *recording = recording_of(
        "name 7 0 0 app; module 7 1 /bin/app 0xab; mmap 0 7 1 0x1000 0x1000 0;"
        "module 0 9 [kernel] 0xcd; mmap 0 0 9 0x8000000000000000 0x7fffffffffffffff "
        "0x8000000000000000; sample 1 7 1 0x1001 | 0xffffffff81000008; sample 2 7 0 |");
    char *text = print_report(load_recording(recording), REPORT_BY_MODULE, 0, SHOWN_JSON);
    assert_contains(text,
                    "\"row_count\":2,\"rows\":[{\"name\":\"[kernel]\",\"module\":\"[kernel]\",");
    assert_contains(text, "\"self\":2,\"total\":2,");
    free(text);
}

/* The same pid, name and CPU on two machines, of which one has recorded twice. */
static struct profile *load_hosts(void)
{
    static const char *const hosts[] = {"red", "blue", "red"};
    struct recording *recording = recording_new();
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        char json[128];
        if (i > 0) {
            fxt_write_segment_begin(&recording->writer, 1, "test");
        }
        add_name(recording, 7, 0, 0, "app");
        add_sample(recording, 1000, 7, COMPLETE, ADDRESSES(0x1001));
        (void)snprintf(json, sizeof json, "{\"session\":\"%zu\",\"host\":\"%s\"}\n", i, hosts[i]);
        add_data(recording, FXT_STRING_SESSION, json);
    }
    return load_recording(recording);
}

TEST(keeps_the_processes_of_hosts_apart)
{
    static const struct {
        enum report_by by;
        const char *table;
        const char *json;
    } cases[] = {
        {REPORT_BY_PROCESS,
         "  process  pid  host\n"
         "  66.67         2    66.67         2  app        7  red\n"
         "  33.33         1    33.33         1  app        7  blue\n",
         "\"pid\":7,\"tid\":null,\"host\":\"red\",\"self\":2,"},
        {REPORT_BY_THREAD, "  app       7    7  app      red\n",
         "\"pid\":7,\"tid\":7,\"host\":\"blue\",\"self\":1,"},
        {REPORT_BY_CPU, "  cpu 1  blue\n", "\"tid\":null,\"host\":\"blue\",\"self\":1,"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *table = print_report(load_hosts(), cases[i].by, 0, SHOWN_TABLE);
        char *json = print_report(load_hosts(), cases[i].by, 0, SHOWN_JSON);
        assert_contains(table, cases[i].table);
        assert_contains(json, cases[i].json);
        free(table);
        free(json);
    }
}

TEST(fits_the_page_and_leaves_out_folders_first)
{
    struct recording *recording =
        recording_of("module 7 1 /usr/lib/x86_64-linux-gnu/libabcdefghijklmnopqrstuvwxyz.so.1 0xab;"
                     "mmap 0 7 1 0x1000 0x1000 0;"
                     "symbol ab /usr/lib/x86_64-linux-gnu/libabcdefghijklmnopqrstuvwxyz.so.1 0 "
                     "a_function_of_a_library_that_has_very_long_names; sample 1000 7 1 0x1001");
    char *text = print_report(load_recording(recording), REPORT_BY_FUNCTION, 0, SHOWN_TABLE);
    assert_contains(text, "  100.00         1  a_function_...long_names  libabcd...z.so.1\n");
    free(text);
}

/* A short module stays whole on a narrow page: "lib....6" could be any library. */
TEST(keeps_short_modules_whole)
{
    struct recording *recording =
        recording_of("module 7 1 /usr/lib/libm.so.6 0xab; mmap 0 7 1 0x1000 0x1000 0;"
                     "symbol ab /usr/lib/libm.so.6 0 a_function_with_a_long_name;"
                     "sample 1000 7 1 0x1001");
    struct profile *profile = load_recording(recording);
    struct report report;
    struct summary summary;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    const struct page page = {.file = file, .columns = 60};
    assert_int_equal(report_build(profile, REPORT_BY_FUNCTION, REPORT_SORT_SELF, &report), 0);
    assert_int_equal(summary_take(profile, &summary), 0);
    report_print_table(&page, profile, &summary, &report, 0);
    assert_int_equal(fclose(file), 0);
    assert_contains(text, "  libm.so.6\n");
    report_done(&report);
    free(text);
    (void)profile_free(profile);
}

TEST(aligns_numbers_to_the_right)
{
    struct recording *recording = recording_of("name 71 0 0 a; name 27124 0 0 app");
    add_sample(recording, 1, 71, COMPLETE, ADDRESSES(0x1));
    add_sample(recording, 2, 27124, COMPLETE, ADDRESSES(0x1));
    char *text = print_report(load_recording(recording), REPORT_BY_THREAD, 0, SHOWN_TABLE);
    assert_contains(text, " self %      self  total %     total  thread    tid    pid  process\n"
                          "  50.00         1    50.00         1  a          71     71  a\n"
                          "  50.00         1    50.00         1  app     27124  27124  app\n");
    free(text);
}

TEST(has_no_number_of_a_task_that_had_exited)
{
    struct recording *recording = recording_of("name 71 0 0 a");
    add_sample(recording, 1, 71, COMPLETE, ADDRESSES(0x1));
    add_sample(recording, 2, PROFILE_PID_EXITED, 0, NULL, 0);
    char *text =
        print_report(load_recording(recording), REPORT_BY_THREAD, 0, SHOWN_TABLE | SHOWN_JSON);
    assert_contains(text, "  50.00         1    50.00         1  [exited]    -    -  [exited]\n"
                          "  50.00         1    50.00         1  a          71   71  a\n");
    assert_contains(text, "\"process\":\"[exited]\",\"pid\":-1,\"tid\":-1,");
    free(text);
}

TEST(prints_a_table_with_the_books_below)
{
    static const char expected[] =
        "A machine: a recording, 0.012 s at 1000.0 Hz; 7 samples, 0.007 CPU-seconds.\n"
        "CPU time by command: app 71.4 %, threads of the kernel 28.6 %.\n"
        "But mind:\n"
        "- 7 samples are few: shares are within about 37 points of the true ones\n"
        "- 33.3 % of the ticks are unexplained\n"
        "- 14.3 % of the stacks are cut short of their root ([truncated])\n"
        "- 28.6 % of the samples were in the kernel, whose functions were not recorded;\n"
        "  the view shows what called it\n"
        "\n"
        " self %      self  total %     total  function         module\n"
        "  57.14         4    57.14         4  leaf             /lib/libx.so\n"
        "  28.57         2    28.57         2  [kernel thread]  -\n"
        "... and 2 more; -n 0 shows all\n"
        "\n"
        "stacks: 4 complete (80.00 %), 1 truncated; without one: 2 of kernel threads, 0\n"
        "others\n"
        "\n"
        "  cpu  expected  received  lost  throttled  unexplained  kept  filtered  dropped\n"
        "    1        12         8     0          0            4     7         1        0\n"
        "total        12         8     0          0            4     7         1        0\n"
        "1 stack incomplete\n"
        "warning: cpu 1: 33.3 % of the ticks are unexplained: nothing that is measured\n"
        "says where they went; THE BOOKS in profctl(1) says what can be in it\n";
    char *text = print_report(load_example(), REPORT_BY_FUNCTION, 2, SHOWN_TABLE);
    assert_string_equal(text, expected);
    free(text);
}

TEST(keeps_a_files_names_from_driving_the_terminal)
{
    struct recording *recording = recording_new();
    add_name(recording, 7, 0, 0,
             "\033]0;title\a\xc2\x9b"
             "2J\xe2\x80\xae");
    add_sample(recording, 1, 7, COMPLETE, ADDRESSES(0x1));
    char *text =
        print_report(load_recording(recording), REPORT_BY_PROCESS, 0, SHOWN_TABLE | SHOWN_JSON);
    assert_contains(text, "?]0;title??2J?");
    assert_contains(text, "\"\\u001b]0;title\\u0007\\u009b2J");
    assert_null(strchr(text, '\033'));
    free(text);
}
