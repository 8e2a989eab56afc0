/* SPDX-License-Identifier: Apache-2.0 */

/* What is said of threads whose lines are not whole, or whose samples are not: never more than is
 * known. */
#include "cleanup.h"
#include "doubts.h"
#include "doubts_threads.h"
#include "made_recording.h"
#include "report.h"
#include "selection.h"
#include "thread_sentence.h"
#include "thread_table.h"

#define S UINT64_C(1000000000)

/* Times are in ms. */
#define LINE(tid, name, wall, running, waiting, blocked, rest, voluntary, source)                  \
    "{\"pid\":7,\"tid\":" tid ",\"name\":\"" name "\",\"boot_ts_ns\":1000,\"wall_ns\":" wall       \
    "e6,\"running_ns\":" running "e6,\"waiting_ns\":" waiting "e6,\"blocked_ns\":" blocked         \
    "e6,\"unexplained_ns\":" rest "e6,\"voluntary\":" voluntary                                    \
    ",\"involuntary\":1,\"source\":\"" source "\"}\n"

#define SESSION                                                                                    \
    "{\"session\":\"one\",\"config\":{\"targets\":{\"pids\":[7]}},\"events\":[{\"event\":"         \
    "\"cpu-clock\"},{\"event\":\"off-cpu\",\"unit\":\"ns\",\"period\":1},"                         \
    "{\"event\":\"preempted\",\"unit\":\"ns\",\"period\":1}]}\n"

#define BOOKS(members)                                                                             \
    "{\"events\":[{\"event\":\"off-cpu\",\"period\":1,\"total\":{\"kept\":1" members "}}]}"

enum {
    OFF_CPU = 1,
};

static void add_wait(struct recording *recording, uint64_t tid, uint64_t wait_ms)
{
    static const uint64_t address[] = {0x1001};
    struct fxt_sample sample = user_sample(3 * S + tid, 7, COMPLETE, address, 1);
    sample.fields |= FXT_SAMPLE_EVENT | FXT_SAMPLE_WEIGHT;
    sample.tid = tid;
    sample.event = OFF_CPU;
    sample.weight = wait_ms * S / 1000;
    fxt_write_sample(&recording->writer, &sample);
}

/* A recording of process 7 with these lines, where threads 7 and 8 have a wait each. */
static struct profile *load(const char *event, const char *lines, const uint64_t waits_ms[2],
                            const char *books)
{
    struct profile *profile = NULL;
    struct recording *recording =
        recording_of("name 7 0 0 app; module 7 1 /bin/app 171; mmap 0 7 1 0x1000 0x1000 0x1000;"
                     "symbol ab /bin/app 0x1000 f 4096; sample 1000000000 7 1 0x1001");
    add_data(recording, FXT_STRING_SESSION, SESSION);
    for (uint64_t i = 0; i < 2; i++) {
        if (waits_ms[i] > 0) {
            add_wait(recording, 7 + i, waits_ms[i]);
        }
    }
    fxt_write_named_data(&recording->writer,
                         &(struct fxt_string){.text = "cpu-profilerd.threads", .text_bytes = 21},
                         lines, strlen(lines));
    add_data(recording, FXT_STRING_BOOKS, books);
    assert_int_equal(profile_load_memory((const uint8_t *)recording->memory,
                                         recording->writer.used_bytes, event, &profile, NULL),
                     0);
    free(recording);
    return profile;
}

static const uint64_t no_waits[2] = {0, 0};

/* A little is unexplained of every line: up to a tick at both ends, and 1 %. */
TEST(calls_exact_only_lines_that_are_explained)
{
    static const struct {
        const char *lines;
        const char *expected;
    } cases[] = {
        {LINE("7", "a", "4000", "1000", "1000", "1960", "40", "3", "schedstat"),
         "blocked for 1.960 s and ready for 1.000 s, exactly"},
        {LINE("7", "a", "4000", "0", "37", "241", "3722", "3", "schedstat"),
         "blocked for at least 0.241 s and ready for at least 0.037 s (3.722 s of their time is "
         "unexplained, as where no switches were recorded)"},
        {LINE("7", "a", "900000", "0", "0", "900000", "0", "1", "schedstat")
             LINE("8", "b", "100", "0", "0", "0", "100", "1", "schedstat"),
         "blocked for at least 900.000 s and ready for at least 0.000 s (0.100 s of their time is "
         "unexplained, as where no switches were recorded)"},
        {LINE("7", "a", "9", "0", "0", "1", "8", "1", "schedstat")
             LINE("8", "b", "9", "0", "0", "1", "8", "1", "schedstat"),
         "blocked for at least 0.002 s and ready for at least 0.000 s (0.016 s of their time is "
         "unexplained, as where no switches were recorded)"},
        {LINE("7", "a", "1000", "0", "0", "1100", "-100", "1", "schedstat"),
         "blocked for 1.100 s and ready for 0.000 s (0.100 s of their time is unexplained, as "
         "where no switches were recorded)"},
        {LINE("7", "a", "4000", "1000", "0", "3000", "0", "3", "switches"),
         "blocked for 3.000 s and ready for 0.000 s"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(profile_freep) struct profile *profile =
            load("off-cpu", cases[i].lines, no_waits, "{}");
        EXPECT_PRINTED(cases[i].expected, doubts_threads_write_spent(file, profile));
    }
}

static void on_doubt(const char *text, void *userdata)
{
    (void)fprintf(userdata, "%s\n", text);
}

/* Beside an estimate of waits, too. */
TEST(says_what_lines_lack_where_waits_are_estimated)
{
    const uint64_t waits_ms[2] = {500, 0};
    cleanup_(profile_freep) struct profile *profile =
        load("off-cpu",
             LINE("7", "a", "4000", "0", "0", "300", "3700", "9", "schedstat")
                 LINE("8", "b", "400", "0", "0", "400", "0", "9", "switches"),
             waits_ms, BOOKS(",\"not_sampled\":5,\"counted\":500000000,\"sampled\":500000000"));
    struct summary summary;
    assert_int_equal(summary_take(profile, &summary), 0);
    EXPECT_PRINTED("waits were too many to record each: those that are stand for others, and the "
                   "sum of these is off by up to 1.250 s (95 %); by the books of threads these "
                   "were blocked for at least 0.700 s and ready for at least 0.000 s (3.700 s of "
                   "their time is unexplained, as where no switches were recorded); blocked time "
                   "of the 1 that had ended or could not be read again has the ready time after "
                   "each waking, too\n",
                   (void)doubts_find(profile, &summary, on_doubt, file));
}

#define MOST                                                                                       \
    "'a' (tid 7) had the most, 1.500 s.\n"                                                         \
    "profctl report --threads w.fxt has the ready time of each thread\n\n"
#define HAS_BOTH                                                                                   \
    "1.500 s after wakings, at the end of waits, or after their start, which is in no event; how " \
    "much of that is in these rows is not known; " MOST
#define READY(blocked, voluntary, source)                                                          \
    LINE("7", "a", "4000", "1000", "1500", blocked, "0", voluntary, source)                        \
    LINE("8", "b", "4000", "3000", "0", "1000", "0", "3", "schedstat")

/* The time of the lines is a part of that of the samples only where these have all waits. */
TEST(does_not_find_ready_time_in_waits_that_have_no_sample)
{
    static const struct {
        const char *lines;
        uint64_t waits_ms[2];
        const char *expected;
    } cases[] = {
        {READY("1500", "3", "schedstat"),
         {3000, 1000},
         "1.500 s of this, 37.5 %, was ready time at the end of waits: the threads had been woken, "
         "and had no CPU yet; " MOST},
        {READY("1500", "3", "schedstat"),
         {2800, 1200}, /* as much together */
         "By their lines the threads were ready for " HAS_BOTH},
        {READY("1500", "3", "schedstat"),
         {5000, 1000}, /* an estimate */
         "By their lines the threads were ready for " HAS_BOTH},
        {READY("0", "0", "schedstat"),
         {0, 1000}, /* it was forked, and found no CPU */
         "By their lines the threads were ready for 1.500 s after their start, which is in no "
         "event; 'a' (tid 7) had the most, 1.500 s, after its start.\nprofctl report --threads "
         "w.fxt has the ready time of each thread\n\n"},
        {READY("1500", "3", "switches"), {3000, 1000}, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(profile_freep) struct profile *profile =
            load("off-cpu", cases[i].lines, cases[i].waits_ms, "{}");
        EXPECT_PRINTED(
            cases[i].expected,
            thread_sentence_print_ready(&(struct page){.file = file, .columns = PAGE_UNLIMITED},
                                        profile, "w.fxt"));
    }
}

TEST(says_which_ready_time_is_in_no_event)
{
    static const struct {
        const char *lines;
        const char *expected;
    } cases[] = {
        {READY("0", "0", "schedstat"),
         "0.00 % of the 1.500 s for which the threads were ready is in these rows. Another 1.500 s "
         "followed the start of threads, and is in no event; 'a' (tid 7) had the most, 1.500 s, "
         "after its start.\nprofctl report --threads w.fxt has the ready time of each thread\n\n"},
        {READY("9", "0", "schedstat"), /* it was blocked as the recording began */
         "0.00 % of the 1.500 s for which the threads were ready is in these rows. Another 1.500 s "
         "followed wakings, and is in off-cpu, at the end of waits, or followed the start of "
         "threads, and is in no event; " MOST},
        {READY("1500", "3", "switches"),
         "0.00 % of the 1.500 s for which the threads were ready is in these rows. Ready time from "
         "the start of a thread to its first run is in no event. Mind: blocked time of the 1 that "
         "had ended or could not be read again has the ready time after each waking, too\n\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(profile_freep) struct profile *profile =
            load("preempted", cases[i].lines, no_waits, "{}");
        EXPECT_PRINTED(
            cases[i].expected,
            thread_sentence_print_ready(&(struct page){.file = file, .columns = PAGE_UNLIMITED},
                                        profile, "w.fxt"));
    }
}

/* Numbers of switches are those of records. */
TEST(says_where_switches_of_threads_were_not_recorded)
{
    static const struct {
        const char *blocked;
        const char *unexplained;
        const char *books;
        size_t columns;
        bool is_said;
    } cases[] = {
        {"3000", "0", BOOKS(""), 200, false},
        {"3000", "0", BOOKS(",\"held_back_ns\":5"), 200, true},
        {"1000", "2000", BOOKS(""), 200, true},
        {"1000", "2000", BOOKS(""), 80, false}, /* without these columns */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char lines[512];
        char *text = NULL;
        size_t text_bytes = 0;
        struct summary summary = {0};
        (void)snprintf(lines, sizeof lines,
                       LINE("7", "a", "4000", "1000", "0", "%s", "%s", "3", "schedstat"),
                       cases[i].blocked, cases[i].unexplained);
        cleanup_(profile_freep) struct profile *profile =
            load("off-cpu", lines, no_waits, cases[i].books);
        FILE *file = open_memstream(&text, &text_bytes);
        assert_non_null(file);
        assert_int_equal(
            thread_table_print_text(&(struct page){.file = file, .columns = cases[i].columns},
                                    profile, &summary, 0),
            0);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(
            strstr(text, "\nvoluntary and involuntary are as far as records tell: there may") !=
                NULL,
            cases[i].is_said);
        free(text);
    }
}

/* Of one process more threads than this are never read. */
TEST(says_that_threads_of_a_process_have_no_line)
{
    static const struct {
        size_t count;
        size_t second_process; /* from this thread on; 0: none */
        const char *books;
        const char *expected;
    } cases[] = {
        {8192, 0, "{\"proc_unread\":1}",
         "; a process had more threads than are read (8,192): the others have no line unless they "
         "switched"},
        {8192, 0, "{}", ""},
        {8191, 0, "{\"proc_unread\":1}", ""},
        {8192, 4000, "{\"proc_unread\":1}", ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(profile_freep) struct profile *profile =
            load("off-cpu", LINE("7", "a", "1", "1", "0", "0", "0", "1", "schedstat"), no_waits,
                 cases[i].books);
        const struct profile_thread thread = profile->threads[0];
        free(profile->threads);
        profile->threads = calloc(cases[i].count, sizeof thread);
        assert_non_null(profile->threads);
        profile->thread_count = cases[i].count;
        for (size_t at = 0; at < cases[i].count; at++) {
            profile->threads[at] = thread;
            profile->threads[at].task.tid += at;
            profile->threads[at].task.pid +=
                cases[i].second_process > 0 && at >= cases[i].second_process;
        }
        EXPECT_PRINTED(cases[i].expected, (void)doubts_threads_write_lacks(file, profile, "; "));
    }
}
