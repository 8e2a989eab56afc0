/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A file of two sessions of different rates, one of which may have no books, as one that was read
 * while it ran: what is known of one session is not said of the samples of the other.
 */
#include "export.h"
#include "json_out.h"
#include "made_recording.h"
#include "summary.h"

#include <math.h>

#define S           UINT64_C(1000000000)
#define BOOKS_FIRST BOOKS_OF("1000000", "6000", "600")
#define BOOKS_LAST  BOOKS_OF("4000000", "500", "250")

/* On one CPU. */
#define BOOKS_OF(period_ns, expected, idle)                                                        \
    "{\"period_ns\":" period_ns ",\"cpus\":[{\"cpu\":0,\"expected\":" expected "}],"               \
    "\"total\":{\"expected\":" expected ",\"received\":3,\"kept\":3,\"idle\":" idle                \
    ",\"lost\":2}}\n"

static void add_session(struct recording *recording, int number, const char *period_ns,
                        const char *books)
{
    char json[256];
    (void)snprintf(json, sizeof json,
                   "{\"session\":\"%d\",\"created_boot_ns\":1000,\"created_realtime_ns\":"
                   "\"1764133455000000000\",\"config\":{\"sample_period_ns\":%s}}\n",
                   number, period_ns);
    add_data(recording, FXT_STRING_SESSION, json);
    if (books != NULL) {
        add_data(recording, FXT_STRING_BOOKS, books);
    }
}

/* Three samples of 1 ms in 6 s by the books, or 2 s by the samples; 44 s later, two of 4 ms in 2 s
 * by either. */
static struct profile *two_sessions(const char *first_books, const char *last_books)
{
    struct recording *recording =
        recording_of("name 7 0 0 app; module 7 1 /bin/app 0xab; mmap 0 7 1 0x1000 0x1000 0;"
                     "symbol ab /bin/app 0 f 256; sample 1000000000 7 1 0x1001;"
                     "sample 2000000000 7 1 0x1001; sample 3000000000 7 1 0x1001");
    add_session(recording, 1, "1000000", first_books);
    add_lines(recording, "segment 1; name 7 0 0 app; module 7 1 /bin/app 0xab;"
                         "mmap 0 7 1 0x1000 0x1000 0; symbol ab /bin/app 0 f 256;"
                         "sample 51000000000 7 1 0x1001; sample 53000000000 7 1 0x1001");
    add_session(recording, 2, "4000000", last_books);
    return load_recording(recording);
}

static void assert_times(struct profile *profile, uint64_t period_ns, double cpu_ms,
                         uint64_t length_ns)
{
    assert_int_equal(profile_period_ns(profile), period_ns);
    assert_true(fabs(profile_cpu_seconds(profile) - cpu_ms / 1e3) < 1e-9);
    assert_int_equal(profile_span(profile).length_ns, length_ns);
}

TEST(each_session_has_its_own_period_and_length)
{
    struct profile *profile = two_sessions(BOOKS_FIRST, BOOKS_LAST);
    assert_non_null(profile->books_json);
    assert_times(profile, 0, 3 + 8, 8 * S);
    (void)profile_free(profile);

    profile = two_sessions(BOOKS_FIRST, NULL);
    assert_null(profile->books_json);
    assert_times(profile, 0, 3 + 8, 8 * S);
    (void)profile_free(profile);

    profile = two_sessions(NULL, NULL);
    assert_null(profile->books_json);
    assert_times(profile, 0, 3 + 8, 4 * S);
    (void)profile_free(profile);
}

/* A session that was sampled and found nothing, as on a machine that idles, needs no books for the
 * samples of the other. */
TEST(books_hold_where_all_samples_are_theirs)
{
    struct recording *recording = recording_of("sample 1000000000 7 1 0x1001");
    add_session(recording, 1, "1000000", BOOKS_FIRST);
    fxt_write_segment_begin(&recording->writer, 1, "test");
    add_session(recording, 2, "4000000", NULL);
    struct profile *profile = load_recording(recording);
    assert_non_null(profile->books_json);
    assert_times(profile, 1000000, 1, 6 * S);
    (void)profile_free(profile);
}

/* The gap between the sessions is in no part of them. */
TEST(a_part_of_the_time_has_the_parts_of_its_sessions)
{
    static const struct {
        uint64_t from_ns;
        uint64_t to_ns;
        uint64_t length_ns;
    } cases[] = {
        {2 * S, 0, 5 * S + 2 * S}, {0, 52 * S, 6 * S + S}, {6 * S, 52 * S, S + S},
        {8 * S, 50 * S, 0},        {0, 2 * S, S},
    };
    struct profile *profile = two_sessions(BOOKS_FIRST, NULL);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        profile->from_ns = cases[i].from_ns;
        profile->to_ns = cases[i].to_ns;
        assert_int_equal(profile_span(profile).length_ns, cases[i].length_ns);
    }
    (void)profile_free(profile);
}

static char *summarize(struct profile *profile)
{
    struct summary summary;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    const struct page page = {.file = file, .columns = PAGE_UNLIMITED};
    assert_int_equal(summary_take(profile, &summary), 0);
    summary_print_head(&page, profile, &summary);
    summary_print_foot(&page, profile, &summary, false);
    assert_int_equal(fclose(file), 0);
    return text;
}

TEST(says_that_some_sessions_have_no_books)
{
    struct profile *profile = two_sessions(BOOKS_FIRST, NULL);
    char *text = summarize(profile);
    assert_contains(text, ", 8.000 s; 5 samples, 0.011 CPU-seconds.\n");
    assert_contains(
        text, "Samples by command: app 100.0 % (2 processes).\n"); /* and nothing of idleness */
    assert_contains(text, "- there are no books of 1 of the 2 sessions, so it is not known how "
                          "many ticks are missing\n");
    assert_contains(text, "- sessions have different rates: counts and percentages are of samples, "
                          "not of time\n");
    assert_contains(text, "\nbooks: not of 1 of the 2 sessions; ");
    free(text);
    (void)profile_free(profile);
}

/* 0.6 s of 6 s, and 1 s of 2 s. */
TEST(weighs_the_ticks_of_sessions_by_their_periods)
{
    struct profile *profile = two_sessions(BOOKS_FIRST, BOOKS_LAST);
    char *text = summarize(profile);
    assert_contains(text, "; the CPUs were idle for 20.0 % of the time.\n");
    assert_contains(text, "\nbooks: of 6500 ticks 6 kept; ");
    free(text);
    (void)profile_free(profile);
}

static char *json_of(struct profile *profile)
{
    struct summary summary;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    struct json_out out = {.file = file};
    assert_int_equal(summary_take(profile, &summary), 0);
    summary_json_head(&out, profile, &summary);
    summary_json_foot(&out, profile, &summary);
    assert_int_equal(fclose(file), 0);
    return text;
}

TEST(the_object_has_the_times_and_books_of_each_session)
{
    struct profile *profile = two_sessions(BOOKS_FIRST, NULL);
    char *text = json_of(profile);
    assert_contains(text, "\"period_ns\":null,\"duration_ns\":8000000000,");
    assert_contains(text, "\"cpu_s\":0.011");
    assert_contains(text, "},\"books\":null,\"summary\":{");
    assert_contains(text, "\"period_ns\":1000000,\"duration_ns\":6000000000,\"books\":{");
    assert_contains(text, "\"period_ns\":4000000,\"duration_ns\":2000000000,\"books\":null}");
    free(text);
    (void)profile_free(profile);
}

static char *export_text(const struct profile *profile, const char *format)
{
    const struct export_options options = {.has_lost_frame = true};
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    assert_int_equal(export_format_find(format)->print(file, profile, &options), 0);
    assert_int_equal(fclose(file), 0);
    return text;
}

/* Each session lost two ticks. */
TEST(exports_weigh_each_sample_by_its_own_period)
{
    static const struct {
        const char *format;
        const char *expected[4];
    } cases[] = {
        {"speedscope",
         {"\"endValue\":3000000", "\"weights\":[1000000,1000000,1000000]",
          "\"weights\":[4000000,4000000]",
          "\"name\":\"[lost]\",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":10000000"}},
        {"firefox",
         {"\"threadCPUDelta\":[1000000,1000000,1000000]", "\"threadCPUDelta\":[4000000,4000000]",
          "\"weight\":[4.000000,4.000000],\"weightType\":\"tracing-ms\"",
          "\"weight\":[10.000000],\"weightType\":\"tracing-ms\""}},
        {"ndjson",
         {"\"duration_ns\":8000000000,\"period_ns\":null", "\"weight\":1,\"value\":1000000}",
          "\"weight\":1,\"value\":4000000}", ""}},
        {"perf-script",
         {": 1000000 cpu-clock:\n", ": 4000000 cpu-clock:\n", ": 10000000 cpu-clock:\n", ""}},
        {"chrome", {"\"ts\":999000,\"dur\":1000", "\"ts\":50996000,\"dur\":4000", "", ""}},
    };
    struct profile *profile = two_sessions(BOOKS_FIRST, BOOKS_LAST);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *text = export_text(profile, cases[i].format);
        for (size_t at = 0; at < COUNT_OF(cases[i].expected); at++) {
            assert_contains(text, cases[i].expected[at]);
        }
        free(text);
    }
    (void)profile_free(profile);
}

/* What is said of a process of one session is not that of all. */
TEST(a_session_has_a_begin_and_a_length_of_its_own)
{
    struct profile *profile = two_sessions(BOOKS_FIRST, BOOKS_LAST);
    uint64_t length_ns = 0;
    for (size_t i = 0; i < profile->sample_count; i += profile->sample_count - 1) {
        const struct profile_sample *sample = &profile->samples[i];
        struct profile_span span =
            profile_session_span(profile, profile_task(profile, sample->task)->segment);
        assert_in_range(sample->time_ns, span.begin_ns, span.begin_ns + span.length_ns);
        assert_int_equal(span.begin_ns == profile->first_ns, i == 0);
        length_ns += span.length_ns;
    }
    assert_int_equal(length_ns, profile_span(profile).length_ns);
    (void)profile_free(profile);
}

TEST(exports_say_that_some_sessions_have_no_books)
{
    struct profile *profile = two_sessions(BOOKS_FIRST, NULL);
    char *text = export_text(profile, "perf-script");
    assert_contains(text, "# 1 of 2 sessions have no books\n");
    assert_null(strstr(text, "[lost]"));
    free(text);
    text = export_text(profile, "ndjson");
    assert_contains(text, "\"books\":null}\n");
    free(text);
    (void)profile_free(profile);
}
