/* SPDX-License-Identifier: Apache-2.0 */

/* The books of threads as a profile has them: the last line of each, whose it was, and which a
 * selection leaves; and how their times are said. */
#include "cleanup.h"
#include "doubts.h"
#include "doubts_events.h"
#include "made_recording.h"
#include "report.h"
#include "selection.h"
#include "thread_sentence.h"
#include "thread_table.h"
#include "wait_sums.h"

#include <inttypes.h>
#include <math.h>

#define S UINT64_C(1000000000)

static void add_threads(struct recording *recording, const char *lines)
{
    static const char name[] = "cpu-profilerd.threads";
    fxt_write_named_data(&recording->writer,
                         &(struct fxt_string){.text = name, .text_bytes = strlen(name)}, lines,
                         strlen(lines));
}

#define LINE(pid, tid, name, begin, wall, running, waiting, blocked, rest)                         \
    "{\"pid\":" pid ",\"tid\":" tid ",\"name\":\"" name "\",\"boot_ts_ns\":" begin                 \
    ",\"wall_ns\":" wall ",\"running_ns\":" running ",\"waiting_ns\":" waiting                     \
    ",\"blocked_ns\":" blocked ",\"unexplained_ns\":" rest                                         \
    ",\"voluntary\":3,\"involuntary\":4,\"source\":\"schedstat\"}\n"

/* A process of two threads in a session that was stopped twice, and one that has its leader's pid
 * of before. */
static struct profile *load_threads(void)
{
    struct recording *recording = recording_of("name 7 0 0 app; sample 1000000000 7 1 0x1001;"
                                               "sample 2000000000 9 1 0x1001");
    add_data(recording, FXT_STRING_SESSION, "{\"session\":\"one\"}\n");
    add_threads(recording,
                LINE("7", "7", "main", "1000", "2000000000", "1000000000", "0", "1000000000", "0")
                    LINE("7", "8", "side", "1000", "1000000000", "0", "0", "1000000000", "0"));
    add_lines(recording, "segment 1; name 7 0 0 app; sample 3000000000 7 1 0x1001");
    add_data(recording, FXT_STRING_SESSION, "{\"session\":\"one\"}\n");
    add_threads(
        recording,
        LINE("7", "7", "main", "1000", "4000000000", "1000000000", "500000000", "2500000000", "0")
            LINE("7", "8", "side", "1000", "3000000000", "0", "0", "3000000000", "0")
                LINE("9", "9", "other", "1000", "1000000000", "0", "0", "0", "1000000000")
                    LINE("9", "9", "other", "2000000000", "500000000", "500000000", "0", "0",
                         "0") "{\"pid\":9}\nnone\n");
    return load_recording(recording);
}

static const struct profile_thread *find(const struct profile *profile, uint64_t tid)
{
    for (size_t i = 0; i < profile->thread_count; i++) {
        if (profile->threads[i].task.tid == tid) {
            return &profile->threads[i];
        }
    }
    return NULL;
}

TEST(takes_the_last_line_of_each_thread)
{
    cleanup_(profile_freep) struct profile *profile = load_threads();
    assert_int_equal(profile->thread_count, 4);
    const struct profile_thread *thread = find(profile, 7);
    assert_non_null(thread);
    assert_int_equal(thread->times.wall_ns, 4 * S);
    assert_int_equal(thread->times.ready_ns, S / 2);
    assert_int_equal(thread->times.blocked_ns, 5 * S / 2);
    assert_int_equal(thread->voluntary_count, 3);
    assert_int_equal(thread->involuntary_count, 4);
    assert_string_equal(profile_text(profile, thread->task.thread_name), "main");
    assert_string_equal(profile_text(profile, thread->task.process_name), "app");
    thread = find(profile, 8);
    assert_non_null(thread);
    assert_string_equal(profile_text(profile, thread->task.process_name), "app");
    thread = find(profile, 9); /* no record names its process */
    assert_non_null(thread);
    assert_string_equal(profile_text(profile, thread->task.process_name), "other");
}

TEST(selects_threads_by_what_they_are)
{
    static const struct {
        struct selection selection;
        size_t thread_count;
    } cases[] = {
        {{.pids = {7}, .pid_count = 1}, 2},
        {{.tids = {8}, .tid_count = 1}, 1},
        {{.comms = {"si*"}, .comm_count = 1}, 1},
        {{.comms = {"app"}, .comm_count = 1}, 2},
        {{.from = {.kind = SELECTION_OFFSET, .offset_ns = S / 2}}, 0},
        {{.modules = {"*"}, .module_count = 1}, 0},
        {{.pids = {77}, .pid_count = 1}, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(profile_freep) struct profile *profile = load_threads();
        assert_int_equal(selection_apply_to_threads(&cases[i].selection, profile),
                         cases[i].thread_count);
        assert_int_equal(profile->thread_count, cases[i].thread_count);
        assert_true(profile->has_chosen_threads);
        assert_int_equal(profile->sample_count, 3);
    }
    cleanup_(profile_freep) struct profile *profile = load_threads();
    assert_int_equal(selection_apply_to_threads(&(struct selection){0}, profile), 4);
    assert_false(profile->has_chosen_threads);
    assert_int_equal(selection_apply(&cases[0].selection, profile, NULL), 0);
    assert_int_equal(profile->thread_count, 2);
}

/* What `print` prints on a page of so many columns. Returned: free(). */
static char *print(const struct profile *profile, size_t columns, bool has_table)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    const struct page page = {.file = file, .columns = columns};
    struct summary summary = {0};
    if (has_table) {
        assert_int_equal(thread_table_print_text(&page, profile, &summary, 2), 0);
    } else {
        thread_sentence_print(&page, profile, "a b.fxt");
    }
    assert_int_equal(fclose(file), 0);
    return text;
}

TEST(says_how_threads_spent_their_time)
{
    cleanup_(profile_freep) struct profile *profile = load_threads();
    cleanup_(freep) char *text = print(profile, PAGE_UNLIMITED, false);
    assert_non_null(strstr(text,
                           "Time of 4 threads: running 1.500 s (17.6 %), ready 0.500 s (5.9 %), "
                           "blocked 5.500 s (64.7 %), unexplained 1.000 s (11.8 %). "));
    assert_non_null(strstr(text, "profctl report --event off-cpu 'a b.fxt' shows"));
    assert_null(strstr(text, "too fast"));
    profile->books_json = strdup("{\"events\":[{\"event\":\"off-cpu\",\"period\":1,"
                                 "\"total\":{\"held_back_ns\":2500000000}}]}");
    assert_non_null(profile->books_json);
    cleanup_(freep) char *hasty = print(profile, PAGE_UNLIMITED, false);
    assert_non_null(strstr(hasty, "too fast to be recorded for 2.500 s of a CPU: a higher "));
    profile->thread_count = 0;
    cleanup_(freep) char *nothing = print(profile, PAGE_UNLIMITED, false);
    assert_string_equal(nothing, "");
}

static char *print_exact(const struct profile *profile)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    thread_sentence_print_exact(&(struct page){.file = file, .columns = PAGE_UNLIMITED}, profile);
    assert_int_equal(fclose(file), 0);
    return text;
}

/* Of a part of the machine: the books of events are of all of it. */
TEST(says_what_samples_of_waits_lack)
{
    cleanup_(profile_freep) struct profile *profile = load_threads();
    assert_int_equal(profile_event_set(&profile->event, "off-cpu", "ns"), 0);
    cleanup_(freep) char *whole = print_exact(profile);
    assert_string_equal(whole, "");
    const struct selection selection = {.tids = {8, 9}, .tid_count = 2};
    assert_int_equal(selection_apply_to_threads(&selection, profile), 3);
    cleanup_(freep) char *part = print_exact(profile);
    assert_non_null(strstr(part, "the 3 shown were blocked for at least 3.000 s and ready for at "
                                 "least 0.000 s (1.000 s of their time is unexplained, as where no "
                                 "switches were recorded); these samples stand for 0.000 s, "));
    assert_null(strstr(part, "min_wait_us"));
    assert_null(strstr(part, "waking, too"));
    profile->threads[0].is_unread = true;
    cleanup_(freep) char *ended = print_exact(profile);
    assert_null(strstr(ended, "exactly"));
    assert_non_null(strstr(ended, "; blocked time of the 1 that had ended or could not be read "
                                  "again has the ready time after each waking, too"));
    profile->books_json = strdup("{\"events\":[{\"event\":\"off-cpu\",\"period\":1,"
                                 "\"total\":{\"short_ns\":500000000}}]}");
    assert_non_null(profile->books_json);
    cleanup_(freep) char *caused = print_exact(profile);
    assert_non_null(strstr(caused, "min_wait_us (--min-wait) have no sample, 0.500 s of them"));
}

#define WAITS                                                                                      \
    "{\"session\":\"one\",\"events\":[{\"event\":\"cpu-clock\"},"                                  \
    "{\"event\":\"off-cpu\",\"unit\":\"ns\",\"period\":1},"                                        \
    "{\"event\":\"preempted\",\"unit\":\"ns\",\"period\":1}]}\n"

/* A wait of the only thread of a process, with a stack. */
static void add_wait(struct recording *recording, uint64_t end_ns, uint64_t pid, uint64_t event,
                     uint64_t weight_ns)
{
    struct fxt_sample sample = user_sample(end_ns, pid, COMPLETE, ADDRESSES(0x1001));
    sample.fields |= FXT_SAMPLE_EVENT | FXT_SAMPLE_WEIGHT;
    sample.event = event;
    sample.weight = weight_ns;
    fxt_write_sample(&recording->writer, &sample);
}

enum {
    OFF_CPU = 1,
    PREEMPTED,
};

/* Thread 7 was preempted for 0.5 s of the 2 s in which it was ready, and blocked for 1 s; 8 had
 * two of its seven switches sampled, which stand for more than it has. */
static struct profile *load_waits(const char *event, const char *books)
{
    struct profile *profile = NULL;
    struct recording *recording =
        recording_of("name 7 0 0 app; module 7 1 /bin/app 171; mmap 0 7 1 0x1000 0x1000 0x1000;"
                     "module 8 1 /bin/app 171; mmap 0 8 1 0x1000 0x1000 0x1000;"
                     "symbol ab /bin/app 0x1000 f 4096;"
                     "sample 1000000000 7 1 0x1001; sample 1000000000 8 1 0x1001");
    add_data(recording, FXT_STRING_SESSION, WAITS);
    for (uint64_t i = 1; i <= 3; i++) {
        add_wait(recording, (1 + i) * S, 7, OFF_CPU, 5 * S / 6);
        add_wait(recording, (1 + i) * S + 1, 7, PREEMPTED, S / 8);
    }
    add_wait(recording, 5 * S, 7, PREEMPTED, S / 8);
    add_wait(recording, 2 * S, 8, OFF_CPU, 3 * S);
    add_wait(recording, 4 * S, 8, OFF_CPU, 4 * S);
    add_threads(recording, LINE("7", "7", "main", "1000", "4000000000", "1000000000", "2000000000",
                                "1000000000", "0") LINE("8", "8", "fast", "1000", "4000000000",
                                                        "3000000000", "0", "1000000000", "0"));
    add_data(recording, FXT_STRING_BOOKS, books);
    assert_int_equal(profile_load_memory((const uint8_t *)recording->memory,
                                         recording->writer.used_bytes, event, &profile, NULL),
                     0);
    free(recording);
    return profile;
}

/* Whichever event is loaded. */
TEST(knows_how_long_threads_were_preempted)
{
    static const char *const events[] = {NULL, "off-cpu", "preempted"};
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        cleanup_(profile_freep) struct profile *profile = load_waits(events[i], "{}");
        assert_int_equal(find(profile, 7)->times.preempted_ns, S / 2);
        assert_int_equal(find(profile, 8)->times.preempted_ns, 0);
        assert_int_equal(profile_threads_sum(profile).preempted_ns, S / 2);
        assert_true(wait_sums_are_whole(profile, &find(profile, 7)->task));
        assert_false(wait_sums_are_whole(profile, &find(profile, 8)->task));
    }
}

/* A wait without a stack stands for itself alone. */
TEST(knows_which_waits_stand_for_others)
{
    cleanup_(profile_freep) struct profile *profile = load_waits("off-cpu", "{}");
    for (size_t i = 0; i < profile->sample_count; i++) {
        struct profile_sample sample = profile->samples[i];
        bool is_some = profile_task(profile, sample.task)->pid == 8;
        assert_int_equal(wait_sums_stand_for_others(profile, &sample), is_some);
        sample.quality = 0;
        assert_false(wait_sums_stand_for_others(profile, &sample));
        sample.kernel_stack = 1;
        assert_int_equal(wait_sums_stand_for_others(profile, &sample), is_some);
    }
}

/* A thread of 7 switches that was off its CPUs for 3 s, with samples in both segments of its
 * session; or with another of its number behind it, which has as much. */
TEST(knows_which_threads_have_a_sample_of_each_wait)
{
    static const struct {
        uint64_t count;
        uint64_t weight_ms;
        unsigned line_count;
        bool is_whole;
    } cases[] = {
        {7, 428, 1, true},  {8, 375, 1, true},  {6, 500, 1, false},  {7, 500, 1, false},
        {7, 428, 2, false}, {14, 428, 2, true}, {14, 500, 2, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct recording *recording = recording_of("sample 1000000000 7 1 0x1001");
        for (uint64_t wait = 0; wait < cases[i].count; wait++) {
            if (wait == cases[i].count / 2) {
                add_data(recording, FXT_STRING_SESSION, WAITS);
                add_lines(recording, "segment 1");
                add_data(recording, FXT_STRING_SESSION, WAITS);
            }
            add_wait(recording, 2 * S + wait, 7, wait % 2 == 0 ? OFF_CPU : PREEMPTED,
                     cases[i].weight_ms * S / 1000);
        }
        for (unsigned line = 0; line < cases[i].line_count; line++) {
            add_threads(recording, line == 0 ? LINE("7", "7", "main", "1000", "4000000000",
                                                    "1000000000", "2000000000", "1000000000", "0")
                                             : LINE("7", "7", "main", "2000", "4000000000",
                                                    "1000000000", "2000000000", "1000000000", "0"));
        }
        cleanup_(profile_freep) struct profile *profile = load_recording(recording);
        assert_int_equal(profile->thread_count, cases[i].line_count);
        for (uint32_t segment = 1; segment <= 2; segment++) {
            const struct profile_task task = {.pid = 7, .tid = 7, .segment = segment};
            assert_int_equal(wait_sums_are_whole(profile, &task), cases[i].is_whole);
        }
    }
}

/* What is printed of an event of waits, of a thread or of both. Returned: free(). */
static char *print_ready(const char *event, uint64_t tid, const char *books)
{
    cleanup_(profile_freep) struct profile *profile = load_waits(event, books);
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    const struct page page = {.file = file, .columns = PAGE_UNLIMITED};
    const struct selection selection = {.tids = {tid}, .tid_count = tid > 0};
    assert_int_equal(selection_apply(&selection, profile, NULL), 0);
    if (event == NULL) {
        thread_sentence_print(&page, profile, "w.fxt");
    } else {
        thread_sentence_print_ready(&page, profile, "w.fxt");
    }
    assert_int_equal(fclose(file), 0);
    return text;
}

TEST(says_where_the_ready_time_is)
{
    static const struct {
        const char *event;
        uint64_t tid;
        const char *expected;
    } cases[] = {
        {NULL, 0,
         "ready 2.000 s (25.0 %), blocked 2.000 s (25.0 %). Of the ready time 25.0 % followed "
         "preemptions, the rest wakings or the start of threads. The rows below are of the running "
         "time.\n"
         "profctl report --threads w.fxt has the ready time of each thread\n"
         "profctl report --event off-cpu w.fxt shows where threads were blocked\n"},
        {NULL, 7,
         "The rows below are of the running time.\n"
         "profctl report --threads w.fxt has the ready time of each thread\n\n"},
        {NULL, 8,
         "blocked 1.000 s (25.0 %). The rows below are of the running time.\n"
         "profctl report --event off-cpu w.fxt shows where threads were blocked\n"},
        {"preempted", 0,
         "25.00 % of the 2.000 s for which the threads were ready is in these rows. Another 1.500 s "
         "followed wakings, and is in off-cpu, at the end of waits, or followed the start of "
         "threads, and is in no event; 'main' (tid 7) had the most, 1.500 s.\nprofctl report --threads w.fxt has the ready time of each thread\n\n"},
        {"preempted", 7,
         "for which the thread was ready is in these rows. Another 1.500 s followed wakings, and is "
         "in off-cpu, at the end of waits, or followed the start of the thread, and is in no "
         "event.\n"},
        {"off-cpu", 0,
         "1.500 s of this, 15.8 %, was ready time at the end of waits: the threads had been woken, "
         "and had no CPU yet; 'main' (tid 7) had the most, 1.500 s.\n"
         "profctl report --threads w.fxt has the ready time of each thread\n\n"},
        {"off-cpu", 8, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(freep) char *text = print_ready(cases[i].event, cases[i].tid, "{}");
        if (cases[i].expected[0] == '\0' ? text[0] != '\0'
                                         : strstr(text, cases[i].expected) == NULL) {
            fail_msg("case %zu: %s", i, text);
        }
    }
    cleanup_(freep) char *brief = print_ready("preempted", 7,
                                              "{\"events\":[{\"event\":\"preempted\",\"period\":1,"
                                              "\"total\":{\"short_ns\":5}}]}");
    assert_non_null(
        strstr(brief, "event, or is of preemptions without a sample, which were shorter than "));
}

static void on_doubt(const char *text, void *userdata)
{
    (void)fprintf(userdata, "%s\n", text);
}

/* Of the whole machine, by the books; of a part by weights, but of those threads whose waits each
 * have a sample. */
TEST(states_the_error_of_the_waits_that_are_shown)
{
    static const struct {
        uint64_t tid;
        double error;
        const char *expected;
    } cases[] = {
        {0, 26e7,
         "waits were too many to record each: those that are stand for others, and their sum over "
         "all tasks is off by up to 600.000 ms (95 %)\n"},
        {7, 0, ""},
        {8, 5e9,
         "waits were too many to record each: those that are stand for others, and the sum of "
         "these is off by up to 12.000 s (95 %); by the books of threads this one was blocked for "
         "1.000 s and ready for 0.000 s, exactly\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(profile_freep) struct profile *profile = load_waits(
            "off-cpu", "{\"events\":[{\"event\":\"off-cpu\",\"period\":1,\"total\":{\"counted\":"
                       "9500000000,\"sampled\":9500000000,\"kept\":5,\"not_sampled\":3,"
                       "\"standard_error_ns\":260000000,\"error_95_ns\":600000000}}]}");
        const struct selection selection = {.tids = {cases[i].tid}, .tid_count = cases[i].tid > 0};
        struct summary summary;
        double error = 0;
        assert_int_equal(selection_apply(&selection, profile, NULL), 0);
        assert_int_equal(summary_take(profile, &summary), 0);
        assert_true(doubts_event_error(profile, &error));
        assert_true(fabs(error - cases[i].error) < 1);
        EXPECT_PRINTED(cases[i].expected, (void)doubts_find(profile, &summary, on_doubt, file));
    }
}

/* A sample that may stand for others does not say how many these are. */
TEST(counts_waits_where_each_has_a_sample)
{
    static const struct {
        const char *books;
        const char *expected; /* of thread 7 and of 8, by thread */
    } cases[] = {
        {"{\"events\":[{\"event\":\"off-cpu\",\"period\":1,\"total\":{\"not_sampled\":0}}]}",
         "3 833333333 2 4000000000"},
        {"{\"events\":[{\"event\":\"off-cpu\",\"period\":1,\"total\":{\"not_sampled\":5}}]}",
         "3 833333333 not known"},
        {"{}", "3 833333333 not known"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(profile_freep) struct profile *profile = load_waits("off-cpu", cases[i].books);
        cleanup_(report_done) struct report report = {0};
        char text[128] = "";
        size_t used = 0;
        assert_int_equal(report_build(profile, REPORT_BY_THREAD, REPORT_SORT_SELF, &report), 0);
        assert_int_equal(report_take_waits(profile, &report), 0);
        assert_int_equal(report.row_count, 2);
        for (size_t row = report.row_count; row-- > 0;) { /* 8 stands for more */
            used +=
                (size_t)(report.rows[row].has_waits
                             ? snprintf(text + used, sizeof text - used, "%s%" PRIu64 " %" PRIu64,
                                        used > 0 ? " " : "", report.rows[row].wait_count,
                                        report.rows[row].longest_ns)
                             : snprintf(text + used, sizeof text - used, " not known"));
        }
        assert_string_equal(text, cases[i].expected);
    }
}

static char *print_waits(size_t columns, const char *books)
{
    cleanup_(profile_freep) struct profile *profile = load_waits("off-cpu", books);
    cleanup_(report_done) struct report report = {0};
    char *text = NULL;
    size_t text_bytes = 0;
    struct summary summary;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    assert_int_equal(report_build(profile, REPORT_BY_THREAD, REPORT_SORT_SELF, &report), 0);
    assert_int_equal(report_take_waits(profile, &report), 0);
    assert_int_equal(summary_take(profile, &summary), 0);
    report_print_table(&(struct page){.file = file, .columns = columns}, profile, &summary, &report,
                       0);
    report_print_json(file, profile, &summary, &report, 0);
    assert_int_equal(fclose(file), 0);
    return text;
}

TEST(shows_how_many_waits_there_were_and_how_long)
{
    cleanup_(freep) char *text = print_waits(
        80,
        "{\"events\":[{\"event\":\"off-cpu\",\"period\":1,\"total\":{\"not_sampled\":5,\"short\":"
        "1,\"kept\":5}}]}");
    assert_non_null(strstr(text, "mean ms  longest ms  tid  pid  process\n"));
    assert_non_null(strstr(text,
                           "  73.68  7000.000  [unknown]      -        -           -    8    8"
                           "  [unknown]\n"));
    assert_non_null(strstr(text,
                           "  26.32  2500.000  app            3  833.333     833.333    7    7"
                           "  app\n"));
    assert_non_null(strstr(text, "-: waits were too many to record each, and samples do not say "));
    assert_non_null(
        strstr(text, "\nwaits shorter than min_wait_us (--min-wait) are not counted\n"));
    assert_non_null(strstr(text, "\"waits\":null,\"longest\":null}"));
    assert_non_null(strstr(text, "\"waits\":3,\"longest\":833333333}"));
    assert_null(strstr(text, "as far as"));
    cleanup_(freep) char *held = print_waits(
        200, "{\"events\":[{\"event\":\"off-cpu\",\"period\":1,\"total\":{\"not_sampled\":5,\"held_"
             "back_ns\":1}}]}");
    assert_non_null(strstr(held, "the switches of each thread, as far as these were recorded\n"));
}

/* First what ran, or would have run if there had been a CPU. */
TEST(lists_threads_as_wide_as_the_page)
{
    cleanup_(profile_freep) struct profile *profile = load_threads();
    cleanup_(freep) char *wide = print(profile, PAGE_UNLIMITED, true);
    const char *table =
        "tid pid thread process wall_ms running_ms ready_ms blocked_ms unexplained preempted_ms "
        "voluntary involuntary\n"
        "  7   7 main   app      4000.0     1000.0    500.0     2500.0         0.0          0.0 "
        "        3           4\n"
        "  9   9 other  other     500.0      500.0      0.0        0.0         0.0          0.0 "
        "        3           4\n"
        "... and 2 more; -n 0 shows all\n";
    assert_non_null(strstr(wide, table));
    assert_null(strstr(wide, "waking"));
    profile->threads[0].is_unread = true;
    cleanup_(freep) char *ended = print(profile, PAGE_UNLIMITED, true);
    assert_non_null(strstr(ended, ". Mind: blocked time of the 1 that had ended or could not be "
                                  "read again has the ready time after each waking, too\n"));
    cleanup_(freep) char *narrow = print(profile, 40, true);
    assert_non_null(strstr(narrow, "tid thread running_ms blocked_ms\n"
                                   "  7 main       1000.0     2500.0\n"));
}

/* The remainder is not the first to go: by it a reader knows how far to trust the rest. */
TEST(has_room_for_the_remainder_on_a_usual_terminal)
{
    cleanup_(profile_freep) struct profile *profile = load_threads();
    for (size_t i = 0; i < profile->thread_count; i++) {
        struct profile_thread *thread = &profile->threads[i];
        thread->task.tid = 4194303;
        thread->task.pid = 4194302;
        thread->times.wall_ns = 3600 * (int64_t)S;
        thread->times.blocked_ns = 3500 * (int64_t)S;
        assert_int_equal(
            intern_add(&profile->texts, "kworker/u8:3-ev", 15, &thread->task.thread_name), 0);
    }
    cleanup_(freep) char *text = print(profile, 80, true);
    assert_non_null(strstr(text, "    tid     pid thread        wall_ms running_ms ready_ms "
                                 "blocked_ms unexplained\n"
                                 "4194303 4194302 kwor...3-ev 3600000.0     1000.0    500.0  "
                                 "3500000.0         0.0\n"));
}
