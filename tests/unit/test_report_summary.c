/* SPDX-License-Identifier: Apache-2.0 */

/* The sentences that a report begins and ends with, and what they find doubtful. */
#include "doubts.h"
#include "made_recording.h"
#include "summary.h"

#include <time.h>

#define SESSION                                                                                    \
    "{\"session\":\"a\",\"host\":\"web1\",\"kernel\":\"6.1.0\",\"created_boot_ns\":1000,"          \
    "\"created_realtime_ns\":\"1764133455000000000\",\"config\":{\"frequency_hz\":1000%s}}\n"

#define BOOKS                                                                                      \
    "{\"period_ns\":1000000,\"cpus\":[],\"total\":{\"expected\":%d,\"received\":%d,\"kept\":%d,"   \
    "\"idle\":%d,\"lost\":%d}}\n"

#define APP                                                                                        \
    "name 7 0 0 app; name 8 0 0 app; name 9 0 0 other; name 3 0 0 kthread;"                        \
    "module 7 1 /bin/app 0xab; mmap 0 7 1 0x1000 0x1000 0; module 8 1 /bin/app 0xab;"              \
    "mmap 0 8 1 0x1000 0x1000 0; module 9 1 /bin/app 0xab; mmap 0 9 1 0x1000 0x1000 0;"            \
    "symbol ab /bin/app 0 main;"

static char *summarize(struct recording *recording, size_t columns)
{
    struct profile *profile = load_recording(recording);
    struct summary summary;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    const struct page page = {.file = file, .columns = columns};
    assert_int_equal(summary_take(profile, &summary), 0);
    summary_print_head(&page, profile, &summary);
    summary_print_foot(&page, profile, &summary, false);
    assert_int_equal(fclose(file), 0);
    (void)profile_free(profile);
    return text;
}

static void add_session(struct recording *recording, const char *members)
{
    char json[512];
    (void)snprintf(json, sizeof json, SESSION, members);
    add_data(recording, FXT_STRING_SESSION, json);
}

static void add_books(struct recording *recording, int expected, int kept, int idle, int lost)
{
    char json[512];
    (void)snprintf(json, sizeof json, BOOKS, expected, expected - idle - lost, kept, idle, lost);
    add_data(recording, FXT_STRING_BOOKS, json);
}

TEST(says_where_when_and_who)
{
    (void)setenv("TZ", "UTC", 1);
    tzset();
    struct recording *recording =
        recording_of(APP "sample 1000 7 1 0x1001; sample 1001 7 1 0x1001; sample 1002 8 1 0x1001;"
                         "sample 1003 9 1 0x1001; sample 1004 3 0");
    add_session(recording, "");
    add_books(recording, 10, 5, 5, 0);
    char *text = summarize(recording, PAGE_UNLIMITED);
    assert_string_equal(
        text,
        "web1 (Linux 6.1.0), 2025-11-26 05:04:15 UTC: the whole machine, 0.000 s at 1000.0 Hz; "
        "5 samples, 0.005 CPU-seconds.\n"
        "CPU time by command: app 60.0 % (2 processes), other 20.0 %, threads of the kernel "
        "20.0 %; the CPUs were idle for 50.0 % of the time.\n"
        "But mind:\n"
        "- 5 samples are few: shares are within about 44 points of the true ones\n"
        "- 20.0 % of the samples were in the kernel, whose functions were not recorded; the view "
        "shows what called it\n"
        "\n"
        "books: of 10 ticks 5 kept; 5 idle (--books: of each CPU)\n");
    free(text);
}

/* Samples that say that their stack is complete, and have none: no recording of ours has such. */
TEST(counts_as_threads_of_the_kernel_what_has_no_stack)
{
    struct recording *recording = recording_of(APP "sample 1000 7 1 0x1001; sample 1004 3 0");
    add_sample(recording, 1005, 4, COMPLETE, NULL, 0);
    add_books(recording, 3, 3, 0, 0);
    struct profile *profile = load_recording(recording);
    struct summary summary;
    assert_int_equal(summary_take(profile, &summary), 0);
    assert_int_equal(summary.none_count, 1);
    assert_int_equal(summary.kernel_thread_count, 1);
    (void)profile_free(profile);
}

TEST(names_what_was_recorded)
{
    static const struct {
        const char *members;
        const char *expected;
    } cases[] = {
        {"", ": the whole machine, "},
        {",\"targets\":{}", ": the whole machine, "},
        {",\"targets\":{\"pids\":[7]}", ": process 7 with its children, "},
        {",\"targets\":{\"pids\":[7,8]}", ": processes 7, 8 with their children, "},
        {",\"targets\":{\"uids\":[0,1,2,3,4]}", ": users 0, 1, 2 and 2 more, "},
        {",\"targets\":{\"comms\":[\"cc1*\"],\"tids\":[5]}", ": thread 5 and command cc1*, "},
        {",\"targets\":{\"cgroups\":[\"/a\"]},\"cpus\":\"0-3\"", ": cgroup /a on CPUs 0-3, "},
        {",\"targets\":{\"pids\":[{}]}", ": process ? with its children, "},
        {",\"targets\":7", ": the whole machine, "},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct recording *recording = recording_of(APP "sample 1000 7 1 0x1001");
        add_session(recording, cases[i].members);
        char *text = summarize(recording, PAGE_UNLIMITED);
        assert_contains(text, cases[i].expected);
        free(text);
    }
}

/* Of one process whose command line the file has; of its last program, and not of the next process
 * with that pid. */
TEST(names_the_command_of_the_only_process)
{
    static const struct {
        const char *targets;
        const char *expected;
    } cases[] = {
        {"\"pids\":[7]", ": ./lock -n 3 (process 7 with its children), "},
        {"\"pids\":[8]", ": process 8 with its children, "},
        {"\"pids\":[7,9]", ": processes 7, 9 with their children, "},
        {"\"pids\":[7],\"uids\":[0]", ": process 7 with its children and user 0, "},
        {"\"pids\":[9]",
         ": make aaaaaaaaaaaaaaaaaaaaaaaa...aaaaaaaaaaaaaaaaaaaaaaaaaaaa (process 9 with "},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char members[128];
        struct recording *recording = recording_of(APP "sample 1000 7 1 0x1001");
        (void)snprintf(members, sizeof members, ",\"targets\":{%s}", cases[i].targets);
        add_session(recording, members);
        add_data(
            recording, FXT_STRING_PROCESSES,
            "{\"pid\":7,\"boot_ts_ns\":\"10\",\"ppid\":5,\"cmdline\":[\"profctl\",\"record\"]}\n"
            "{\"pid\":7,\"boot_ts_ns\":\"20\",\"cmdline\":[\"./lock\",\"-n\",\"3\"]}\n"
            "{\"pid\":7,\"boot_ts_ns\":\"2000\",\"ppid\":6,\"cmdline\":[\"other\"]}\n"
            "{\"pid\":8,\"boot_ts_ns\":\"20\"}\n"
            "{\"pid\":9,\"boot_ts_ns\":\"20\",\"cmdline\":[\"make\",\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"]}\n");
        char *text = summarize(recording, PAGE_UNLIMITED);
        assert_contains(text, cases[i].expected);
        free(text);
    }
}

/* Sessions of a host each, with what they recorded, in one file. */
static char *summarize_sessions(const char *const *hosts, const char *const *configs, size_t count)
{
    struct recording *recording = recording_of(APP "sample 1000 7 1 0x1001");
    for (size_t i = 0; i < count; i++) {
        char json[512];
        if (i > 0) {
            fxt_write_segment_begin(&recording->writer, 1, "test");
            add_sample(recording, 1000, 7, COMPLETE, ADDRESSES(0x1001));
        }
        (void)snprintf(json, sizeof json,
                       "{\"session\":\"%zu\",\"host\":\"%s\",\"kernel\":\"6.1\","
                       "\"created_boot_ns\":1000,\"created_realtime_ns\":"
                       "\"176413345%zu000000000\",\"config\":{%s}}\n",
                       i, hosts[i], i + 5, configs[i]);
        add_data(recording, FXT_STRING_SESSION, json);
    }
    return summarize(recording, PAGE_UNLIMITED);
}

TEST(says_of_several_sessions_where_when_and_what)
{
    static const struct {
        const char *hosts[5];
        const char *configs[5];
        const char *expected;
    } cases[] = {
        {{"web1", "web2"},
         {"\"targets\":{\"pids\":[7]}", "\"targets\":{\"uids\":[0]},\"cpus\":\"0-3\""},
         "2 hosts: web1, web2; from 2025-11-26 05:04:15 UTC to 2025-11-26 05:04:16 UTC: 2 "
         "sessions, of process 7 with its children, of user 0 on CPUs 0-3, "},
        {{"web1", "web1"},
         {"", ""},
         "web1 (Linux 6.1), from 2025-11-26 05:04:15 UTC to 2025-11-26 05:04:16 UTC: 2 sessions of "
         "the whole machine, "},
        {{"a", "b", "c", "d\\n", "d\\n"},
         {"\"targets\":{\"uids\":[0]}", "\"targets\":{\"uids\":[1]}", "\"targets\":{\"uids\":[2]}",
          "\"targets\":{\"uids\":[3]}", "\"targets\":{\"uids\":[3]}"},
         "4 hosts: a, b, c and 1 more; from 2025-11-26 05:04:15 UTC to 2025-11-26 05:04:19 UTC: 5 "
         "sessions, of user 0, of user 1, of user 2 and 1 more, "},
    };
    (void)setenv("TZ", "UTC", 1);
    tzset();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t count = 0;
        while (count < COUNT_OF(cases[i].hosts) && cases[i].hosts[count] != NULL) {
            count++;
        }
        char *text = summarize_sessions(cases[i].hosts, cases[i].configs, count);
        assert_memory_equal(text, cases[i].expected, strlen(cases[i].expected));
        free(text);
    }
}

/* That samples are few is true of nearly all recordings here, and has a test of its own. */
static void on_doubt(const char *text, void *userdata)
{
    if (strstr(text, " few: ") == NULL) {
        (void)fprintf(userdata, "%s\n", text);
    }
}

static void on_few(const char *text, void *userdata)
{
    if (strstr(text, " few: ") != NULL) {
        (void)fprintf(userdata, "%s\n", text);
    }
}

TEST(says_how_exact_the_shares_of_few_samples_are)
{
    static const struct {
        uint64_t count;
        const char *expected;
    } cases[] = {
        {0, ""},
        {1, "1 sample is few: shares are within about 98 points of the true ones\n"},
        {19, "19 samples are few: shares are within about 22 points of the true ones\n"},
        {384, "384 samples are few: shares are within about 5 points of the true ones\n"},
        {385, ""},
    };
    struct profile *profile = load_recording(recording_of(APP "sample 1 7 1 0x1001"));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct summary summary = {.sample_count = cases[i].count,
                                        .effective_count = (double)cases[i].count};
        EXPECT_PRINTED(cases[i].expected, (void)doubts_find(profile, &summary, on_few, file));
    }
    (void)profile_free(profile);
}

static void assert_doubts_of(struct profile *profile, const char *expected)
{
    struct summary summary;
    assert_int_equal(summary_take(profile, &summary), 0);
    EXPECT_PRINTED(expected, (void)doubts_find(profile, &summary, on_doubt, file));
    (void)profile_free(profile);
}

/* `kept` -1: there are no books. */
static void assert_doubts(const char *lines, int kept, int lost, const char *expected)
{
    struct recording *recording = recording_of(lines);
    add_session(recording, "");
    if (kept >= 0) {
        add_books(recording, 100, kept, 0, lost);
    }
    assert_doubts_of(load_recording(recording), expected);
}

TEST(finds_what_casts_doubt)
{
    assert_doubts(APP "sample 1 7 1 0x1001", 1, 0, "");
    assert_doubts(APP "sample 1 7 1 0x1001", 1, 1, "");
    assert_doubts(APP "sample 1 7 1 0x1001", 523, 0,
                  "522 of 523 kept samples are not in this file, but in that of another read\n");
    assert_doubts(APP "sample 1 7 1 0x1001", -1, 0,
                  "there are no books, so it is not known how many ticks are missing\n");
    assert_doubts(APP "sample 1 7 1 0x1001", 1, 4, "4.0 % of the ticks are lost\n");
    assert_doubts(APP "sample 1 7 4 0x1001", 1, 0,
                  "100.0 % of the stacks are cut short of their root ([truncated])\n");
    assert_doubts(APP "sample 1 7 2 0x1001; sample 2 7 2 0x1001; sample 3 7 4 0x1001", 1, 0,
                  "100.0 % of the stacks are cut short of their root ([truncated]), most since "
                  "the copy of the stack ends before it: with a larger stack_copy_bytes in the "
                  "config of record it may be reached\n");
    assert_doubts(APP "sample 1 7 2 0x1001; sample 2 7 4 0x1001", 1, 0,
                  "100.0 % of the stacks are cut short of their root ([truncated])\n");
    assert_doubts(APP "sample 1 7 3 0x1001", 1, 0,
                  "100.0 % of the stacks are cut short of their root ([truncated]), most since "
                  "they have more frames than max_stack_depth in the config of record\n");
    assert_doubts(APP "sample 1 0 2 0x1001", 1, 0,
                  "100.0 % of the stacks are cut short of their root ([truncated]), most since "
                  "their processes are outside the pid namespace of the daemon, which reads "
                  "nothing of them\n"
                  "100.0 % of the samples were where nothing is known to be mapped ([unknown])\n");
    assert_doubts(APP "sample 1 7 6 0x1001; sample 2 7 7 0x1001", 1, 0,
                  "100.0 % of the stacks reach their root without proof of each frame\n");
    assert_doubts(APP "sample 1 7 1 0x9001", 1, 0,
                  "100.0 % of the samples were where nothing is known to be mapped ([unknown])\n");
    assert_doubts(APP "sample 1 7 1 0x1101", 1, 0,
                  "100.0 % of the samples were in functions without names, most in 'app', which "
                  "lacks symbols\n");
    assert_doubts(APP "module 0 9 [kernel]; mmap 0 0 9 0x8000000000000000 0x7fffffffffffffff "
                      "0x8000000000000000; sample 1 7 1 0x1001 | 0xffffffff81000008",
                  1, 0,
                  "100.0 % of the samples were in the kernel, whose functions have no names; "
                  "profctl doctor says how to have them\n");
}

/* What the books warn of on one CPU is a doubt, however few ticks that are of all CPUs. */
TEST(doubts_what_the_books_warn_of)
{
    struct recording *recording = recording_of(APP "sample 1 7 1 0x1001");
    add_data(recording, FXT_STRING_BOOKS,
             "{\"cpus\":[{\"cpu\":0,\"expected\":1000,\"unexplained\":1},"
             "{\"cpu\":1,\"expected\":1000,\"unexplained\":17}],"
             "\"total\":{\"expected\":2000,\"unexplained\":18}}\n");
    assert_doubts_of(load_recording(recording), "1.7 % of the ticks of cpu 1 are unexplained\n");
}

TEST(adds_up_the_ticks_that_are_missing)
{
    static const struct {
        const char *total;
        uint64_t dropped_count;
        const char *expected;
    } cases[] = {
        {"\"lost\":4,\"throttled\":3,\"missed\":2,\"unexplained\":-5,\"dropped\":1", 0, ""},
        {"\"lost\":9,\"throttled\":9,\"missed\":null,\"unexplained\":2,\"dropped\":10", 0,
         "3.0 % of the ticks are missing: 0.9 % lost, 0.9 % throttled, 0.2 % unexplained, 1.0 % "
         "dropped\n"},
        {"\"dropped\":20", 0, "2.0 % of the ticks are dropped\n"},
        {"\"dropped\":20", 20,
         "20 samples were dropped, since the trace buffer was full; read sooner\n"},
        {"\"lost\":1,\"dropped\":20", 20,
         "2.1 % of the ticks are missing: 0.1 % lost, 2.0 % dropped\n"
         "20 samples were dropped, since the trace buffer was full; read sooner\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char books[256];
        struct recording *recording = recording_of(APP "sample 1 7 1 0x1001");
        (void)snprintf(books, sizeof books, "{\"total\":{\"expected\":1000,%s}}\n", cases[i].total);
        add_data(recording, FXT_STRING_BOOKS, books);
        struct profile *profile = load_recording(recording);
        profile->dropped_record_count = cases[i].dropped_count;
        assert_doubts_of(profile, cases[i].expected);
    }
}

/* Two ticks of a short recording are no doubt, but more than one in a hundred. */
TEST(praises_no_more_than_is_true)
{
    static const struct {
        int expected;
        int lost;
        const char *praise;
    } cases[] = {
        {1000, 9,
         "Nothing casts doubt on it: 100.0 % of the stacks are whole, and less than 1 % "
         "of the ticks are missing.\n"},
        {100, 1,
         "Nothing casts doubt on it: 100.0 % of the stacks are whole, and 1 of 100 ticks "
         "is missing.\n"},
        {100, 2,
         "Nothing casts doubt on it: 100.0 % of the stacks are whole, and 2 of 100 ticks "
         "are missing.\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct recording *recording = recording_of(APP);
        for (uint64_t sample = 0; sample < 400; sample++) {
            add_sample(recording, sample, 7, COMPLETE, ADDRESSES(0x1001));
        }
        add_books(recording, cases[i].expected, 1, cases[i].expected - cases[i].lost - 1,
                  cases[i].lost);
        char *text = summarize(recording, PAGE_UNLIMITED);
        assert_contains(text, cases[i].praise);
        free(text);
    }
}

TEST(doubts_what_was_dropped_or_has_no_room)
{
    static const struct {
        const char *books;
        uint64_t dropped_count;
        uint64_t left_out_count;
        uint64_t plain_count;
        bool is_damaged;
        const char *expected;
    } cases[] = {
        {"{\"total\":{\"expected\":9}}", 0, 0, 0, false, ""},
        {"{\"total\":{\"expected\":9}}", 2, 0, 0, false,
         "2 samples were dropped, since the trace buffer was full; read sooner\n"},
        {"{\"total\":{\"expected\":9},\"tasks_refused\":1}", 2, 0, 0, false,
         "2 samples were dropped, since the trace buffer was full, or their user had used up a "
         "share of it; read sooner\n"},
        {"{\"total\":{\"expected\":9}}", 0, 1, 0, false,
         "50.0 % of the stacks are left out for want of memory ([left out])\n"},
        {"{\"total\":{\"expected\":9}}", 0, 1, 1, false,
         "50.0 % of the stacks are left out for want of memory ([left out]), 50.0 % of the stacks "
         "are shown without debugging information, for want of memory\n"},
        {"{\"total\":{\"expected\":9,\"kept\":3}}", 0, 0, 0, true,
         "1 of 3 kept samples are not in this file, which is cut off or damaged\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct recording *recording = recording_of(APP "sample 1 7 1 0x1001; sample 2 7 1 0x1001");
        add_data(recording, FXT_STRING_BOOKS, cases[i].books);
        struct profile *profile = load_recording(recording);
        profile->dropped_record_count = cases[i].dropped_count;
        profile->left_out_count = cases[i].left_out_count;
        profile->plain_count = cases[i].plain_count;
        profile->input.damaged = cases[i].is_damaged;
        assert_doubts_of(profile, cases[i].expected);
    }
}

TEST(leaves_out_doubts_below_a_percent)
{
    struct recording *recording = recording_of(APP "sample 1 7 1 0x1001");
    add_data(recording, FXT_STRING_BOOKS, "{\"total\":{\"expected\":1000,\"kept\":1000}}");
    struct profile *profile = load_recording(recording);
    profile->unselected_count = 998;
    profile->dropped_record_count = 9;
    assert_doubts_of(profile, "");
}

TEST(names_the_switch_that_brings_the_names_of_made_code)
{
#define MADE(command)                                                                              \
    "name 7 0 0 " command "; module 7 1 [anon] 0; mmap 0 7 1 0x1000 0x1000 0;"                     \
    "sample 1 7 1 0x1001"
#define MADE_BY(command)                                                                           \
    "100.0 % of the samples were in code without names that a program made ([anon], [jit]), most " \
    "in '" command "': "
    assert_doubts(MADE("node"), 1, 0,
                  MADE_BY("node") "profctl record --names -- node ... names it, or node "
                                  "--perf-basic-prof\n");
    assert_doubts(MADE("dotnet"), 1, 0,
                  MADE_BY("dotnet") "profctl record --names has it named, also while it "
                                    "runs; or DOTNET_PerfMapEnabled=1\n");
    /* Where it has a map already, the switch is no remedy. */
    struct recording *recording = recording_new();
    add_name(recording, 7, 0, 0, "node");
    add_module(recording, 7, 1, "[jit] (pid 7)", 0);
    add_mmap(recording, 0, 7, 1, 0x1000, 0x1000, 0x1000);
    add_symbol(recording, "", "[jit] (pid 7)", "0x1000", "js", 16);
    add_lines(recording, "sample 1 7 1 0x1001; sample 2 7 1 0x1801");
    add_books(recording, 100, 2, 0, 0);
    assert_doubts_of(
        load_recording(recording),
        "50.0 % of the samples were in code without names that a program made "
        "([anon], [jit]), most in 'node': other code of it has names; this was made "
        "before its map was begun, or ran just before its map was written anew, or is not in that\n");
    assert_doubts(MADE("x\033[1m"), 1, 0,
                  MADE_BY("x?[1m") "a map /tmp/perf-PID.map or a jitdump would name it\n");
}

TEST(says_which_made_code_cuts_stacks)
{
#define CUT_IN(command)                                                                            \
    "name 7 0 0 " command "; module 7 1 [anon] 0; module 7 2 /bin/app 0xab; mmap 0 7 1 0x1000 "    \
    "0x1000 0; mmap 0 7 2 0x2000 0x1000 0; symbol ab /bin/app 0 main;"
#define CUT "100.0 % of the stacks are cut short of their root ([truncated])"
    assert_doubts(CUT_IN("java") "sample 1 7 4 0x2001 0x1001", 1, 0,
                  CUT ", most in code that 'java' made: java -XX:+PreserveFramePointer brings "
                      "them there\n");
    assert_doubts(CUT_IN("node") "sample 1 7 4 0x2001 0x1001", 1, 0,
                  CUT ", most in code that 'node' made\n");
    /* Such code is in the stack, and does not end it. */
    assert_doubts(CUT_IN("java") "sample 1 7 4 0x2001 0x1001 0x2001", 1, 0, CUT "\n");
    assert_doubts(CUT_IN("java") "sample 1 7 1 0x2001 0x1001", 1, 0, "");
}

TEST(says_what_has_python_name_its_functions)
{
#define PYTHON(module)                                                                             \
    "name 7 0 0 python; module 7 1 /x/" module " 0xab; mmap 0 7 1 0x1000 0x1000 0;"                \
    "symbol ab /x/" module " 0 _PyEval_EvalFrameDefault; symbol ab /x/" module " 0x100 add;"       \
    "symbol ab /x/" module " 0x200 py::f:/x.py; symbol ab /x/" module " 0x300 main;"               \
    "sample 1 7 1 0x1301"
#define IN_PYTHON "50.0 % of the samples were in Python code, whose functions are not shown: "
    assert_doubts(PYTHON("python3.11") "; sample 2 7 1 0x1101 0x1001 0x1301", 2, 0,
                  IN_PYTHON "this Python cannot name them, py-spy can; from 3.12 on profctl record "
                            "--names -- python3 ... does\n");
    assert_doubts(PYTHON("libpython3.12.so.1.0") "; sample 2 7 1 0x1001 0x1301", 2, 0,
                  IN_PYTHON
                  "profctl record --names -- python3 ... names them, or python3 -X perf\n");
    assert_doubts(PYTHON("python3") "; sample 2 7 1 0x1001 0x1301", 2, 0,
                  IN_PYTHON "profctl record --names -- python3 ... names them, from 3.12 on\n");
    /* Where it names them, nothing is missing. */
    assert_doubts(PYTHON("python3.12") "; sample 2 7 1 0x1101 0x1001 0x1201 0x1001 0x1301", 2, 0,
                  "");
}

TEST(keeps_a_files_names_from_writing_lines_of_their_own)
{
    struct recording *recording = recording_new();
    add_name(recording, 7, 0, 0, "a\n- b\033[1m");
    add_sample(recording, 1, 7, COMPLETE, ADDRESSES(0x1));
    add_session(recording, ",\"targets\":{\"comms\":[\"x\\n- y\\u009b\"]}");
    char *text = summarize(recording, PAGE_UNLIMITED);
    assert_contains(text, ": command x?- y?, ");
    assert_contains(text, "CPU time by command: a?- b?[1m 100.0 %.\n");
    free(text);
}

TEST(fits_sentences_to_the_page)
{
    struct recording *recording = recording_of(APP "sample 1000 7 2 0x1001");
    add_session(recording, "");
    char *text = summarize(recording, PAGE_COLUMNS_MIN);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        assert_in_range(strlen(line), 1, PAGE_COLUMNS_MIN);
    }
    free(text);
}

/* A daemon that has just started has read no file yet. The books count the stacks of all events:
 * they are a share of all samples, and no doubt of a view whose own stacks are whole. */
TEST(says_why_stacks_of_a_first_recording_are_short)
{
#define COLD(percent)                                                                              \
    "- 100.0 % of the stacks are cut short of their root ([truncated]); of all samples that were " \
    "kept, of any event, " percent " % have stacks that may be short since files in them had not " \
    "been read when they were taken: record again, the daemon has read them by now, or start the " \
    "session before the load\n"
    static const struct {
        int quality;
        int cold_count;
        int event_kept;
        const char *expected; /* NULL: nothing is said */
    } cases[] = {
        {TRUNCATED, 0, 0, NULL},          {TRUNCATED, 1, 0, NULL},
        {TRUNCATED, 12, 0, COLD("12.0")}, {TRUNCATED, 350, 300, COLD("87.5")},
        {TRUNCATED, 4, 300, NULL},        {TRUNCATED, 1330, 0, COLD("100.0")},
        {COMPLETE, 12, 0, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char books[256];
        struct recording *recording = recording_of(APP);
        add_sample(recording, 1000, 7, (uint64_t)cases[i].quality, ADDRESSES(0x1001));
        (void)snprintf(books, sizeof books,
                       "{\"period_ns\":1000000,\"cpus\":[],\"total\":{\"expected\":100,"
                       "\"kept\":100},\"events\":[{\"event\":\"page-faults\",\"total\":{\"kept\":"
                       "%d}}],\"cold_stacks\":%d}\n",
                       cases[i].event_kept, cases[i].cold_count);
        add_data(recording, FXT_STRING_BOOKS, books);
        char *text = summarize(recording, PAGE_UNLIMITED);
        if (cases[i].expected == NULL) {
            assert_null(strstr(text, "record again"));
        } else {
            assert_contains(text, cases[i].expected);
        }
        free(text);
    }
#undef COLD
}
