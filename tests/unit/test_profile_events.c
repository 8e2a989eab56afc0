/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Profiles of other events than the clock: which samples they have, what each stands for, and that
 * whoever counts samples counts that.
 */
#include "cleanup.h"
#include "doubts.h"
#include "doubts_events.h"
#include "export.h"
#include "lineage.h"
#include "made_recording.h"
#include "measure.h"
#include "report.h"
#include "selection.h"
#include "summary.h"
#include "tree.h"

#include <math.h>

#define S UINT64_C(1000000000)

/* The clock, faults of period 100, switches, and waits. */
#define EVENTS                                                                                     \
    "\"events\":[{\"event\":\"cpu-clock\",\"unit\":\"ns\",\"period\":1000000,\"asked\":false},"    \
    "{\"event\":\"page-faults\",\"unit\":\"faults\",\"period\":100,\"asked\":true},"               \
    "{\"event\":\"context-switches\",\"unit\":\"switches\",\"period\":1,\"asked\":true},"          \
    "{\"event\":\"off-cpu\",\"unit\":\"ns\",\"period\":1,\"asked\":true}]"
#define SESSION "{\"session\":\"a\"," EVENTS "}\n"

enum {
    CLOCK,
    FAULTS,
    SWITCHES,
    OFF_CPU,
};

#define NO_WEIGHT UINT64_MAX

/* Adds a sample at an address; NO_WEIGHT: its record does not say what it weighs. */
static void add_event(struct recording *recording, uint64_t time_ns, uint64_t event,
                      uint64_t weight, uint64_t address)
{
    struct fxt_sample sample = user_sample(time_ns, 7, COMPLETE, &address, 1);
    sample.fields |= event != CLOCK ? FXT_SAMPLE_EVENT : 0;
    sample.fields |= weight != NO_WEIGHT ? FXT_SAMPLE_WEIGHT : 0;
    sample.event = event;
    sample.weight = weight;
    fxt_write_sample(&recording->writer, &sample);
}

/* Process 7 with functions f at 0x1000 and g at 0x2000. */
static struct recording *program(void)
{
    struct recording *recording =
        recording_of("name 7 0 0 app;module 7 1 /bin/app 171;mmap 0 7 1 0x1000 0x2000 0x1000;"
                     "symbol ab /bin/app 0x1000 f 4096;symbol ab /bin/app 0x2000 g 4096");
    return recording;
}

/* Loads the samples of an event; of the recording, which is freed with that, nothing else. */
static struct profile *load_event(struct recording *recording, const char *event,
                                  struct fault *reterr)
{
    struct profile *profile = NULL;
    assert_true(fxt_writer_ok(&recording->writer));
    (void)profile_load_memory((const uint8_t *)recording->memory, recording->writer.used_bytes,
                              event, &profile, reterr);
    free(recording);
    return profile;
}

static struct profile *load_good_event(struct recording *recording, const char *event)
{
    struct fault fault = {0};
    struct profile *profile = load_event(recording, event, &fault);
    if (profile == NULL) {
        fail_msg("%s", fault.text);
    }
    return profile;
}

static void assert_values(struct profile *profile, const uint64_t *values, size_t count)
{
    uint64_t total = 0;
    assert_int_equal(profile->sample_count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(profile_value(profile, i), values[i]);
        assert_int_equal(profile_value_of(profile, &profile->samples[i]), values[i]);
        total += values[i];
    }
    assert_int_equal(profile_total(profile), total);
}

TEST(takes_the_samples_of_an_event_whose_session_comes_behind_them)
{
    struct recording *recording = program();
    add_event(recording, S, CLOCK, NO_WEIGHT, 0x1001);
    add_event(recording, 2 * S, FAULTS, NO_WEIGHT, 0x1001);
    add_event(recording, 3 * S, FAULTS, 3, 0x2001);
    add_event(recording, 4 * S, SWITCHES, NO_WEIGHT, 0x2001);
    add_data(recording, FXT_STRING_SESSION, SESSION);
    struct profile *profile = load_good_event(recording, "page-faults");
    assert_values(profile, ADDRESSES(100, 300));
    assert_int_equal(profile->samples[0].time_ns, 2 * S);
    assert_string_equal(profile->event.name, "page-faults");
    assert_string_equal(profile->event.unit, "faults");
    assert_false(profile->event.is_clock);
    assert_false(profile->event.is_time);
    (void)profile_free(profile);
}

TEST(takes_the_clock_where_no_event_is_named)
{
    static const char *const names[] = {NULL, "cpu-clock"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct recording *recording = program();
        add_data(recording, FXT_STRING_SESSION, SESSION);
        add_event(recording, S, FAULTS, 9, 0x1001);
        add_event(recording, 2 * S, CLOCK, NO_WEIGHT, 0x1001);
        struct profile *profile = load_good_event(recording, names[i]);
        assert_values(profile, ADDRESSES(1));
        assert_null(profile->values);
        assert_true(profile->event.is_clock);
        assert_int_equal(profile->event_count, 4);
        assert_string_equal(profile->event_names[3], "off-cpu");
        (void)profile_free(profile);
    }
}

TEST(counts_the_weights_of_the_clock)
{
    struct recording *recording = program();
    add_event(recording, S, CLOCK, NO_WEIGHT, 0x1001);
    add_event(recording, 2 * S, CLOCK, 1, 0x1001);
    add_event(recording, 3 * S, CLOCK, 5, 0x1001);
    add_event(recording, 4 * S, CLOCK, 0, 0x1001); /* it stands for nothing */
    add_event(recording, 5 * S, CLOCK, NO_WEIGHT, 0x1001);
    struct profile *profile = load_good_event(recording, NULL);
    assert_values(profile, ADDRESSES(1, 1, 5, 1));
    (void)profile_free(profile);
}

TEST(keeps_no_values_where_each_sample_is_one)
{
    struct recording *recording = program();
    add_data(recording, FXT_STRING_SESSION, SESSION);
    add_event(recording, S, SWITCHES, NO_WEIGHT, 0x1001);
    add_event(recording, 2 * S, SWITCHES, 1, 0x2001);
    struct profile *profile = load_good_event(recording, "context-switches");
    assert_values(profile, ADDRESSES(1, 1));
    assert_null(profile->values);
    (void)profile_free(profile);
}

TEST(knows_events_by_perfs_other_names)
{
    assert_true(profile_event_is_meant("cs", "context-switches"));
    assert_true(profile_event_is_meant("context-switches", "cs"));
    assert_true(profile_event_is_meant("faults", "page-faults"));
    assert_true(profile_event_is_meant("cpu-cycles:u", "cycles:u"));
    assert_true(profile_event_is_meant("off-cpu", "off-cpu"));
    assert_false(profile_event_is_meant("cycles", "cycles:u"));
    assert_false(profile_event_is_meant("cpu/event=1/", "cpu/event=2/"));
    assert_false(profile_event_is_meant("off-cpu", "preempted"));
    assert_false(profile_event_is_meant("", "cs"));
}

TEST(calls_events_as_they_are_listed)
{
    static const char *const names[][2] = {
        {"faults", "page-faults"},
        {"page-faults", "page-faults"},
        {"cpu-cycles:u", "cycles:u"},
        {"cs", "context-switches"},
        {"LLC-loads", "LLC-loads"},
        {"off-cpu", "off-cpu"},
        {"cpu/event=0x3c/", "cpu/event=0x3c/"},
        {"a-name-that-is-longer-than-any-that-the-daemon-would-take-for-an-event", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char into[PROFILE_EVENT_NAME_BYTES];
        const char *expected = names[i][1] == NULL ? names[i][0] : names[i][1];
        assert_string_equal(profile_event_listed_name(names[i][0], into), expected);
    }
}

TEST(refuses_an_event_that_the_recording_does_not_have)
{
    struct fault fault = {0};
    struct recording *recording = program();
    add_data(recording, FXT_STRING_SESSION, SESSION);
    assert_null(load_event(recording, "cycles", &fault));
    assert_int_equal(fault.code, ESRCH);
    assert_string_equal(fault.text, "recording: the recording has no event 'cycles'; it has "
                                    "cpu-clock, page-faults, context-switches, off-cpu");
    assert_null(load_event(program(), "cs", &fault));
    assert_string_equal(fault.text, "recording: the recording has no event 'cs'; it has cpu-clock");
}

/* States are no events, and the ready time is in no event alone. */
TEST(says_which_events_have_the_time_of_a_state)
{
    static const char *const states[][2] = {
        {"blocked", "off-cpu has the time that threads are blocked"},
        {"ready", "preempted has a part of the ready time, and off-cpu that after each "
                  "waking; report --threads has all of it"},
    };
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        struct fault fault = {0};
        char expected[256];
        struct recording *recording = program();
        add_data(recording, FXT_STRING_SESSION, SESSION);
        assert_null(load_event(recording, states[i][0], &fault));
        (void)snprintf(expected, sizeof expected, "recording: the recording has no event '%s': %s",
                       states[i][0], states[i][1]);
        assert_string_equal(fault.text, expected);
        assert_null(load_event(program(), states[i][0], &fault));
        (void)snprintf(expected, sizeof expected,
                       "recording: the recording has no event '%s'; it has cpu-clock: record "
                       "--wall records what threads wait for",
                       states[i][0]);
        assert_string_equal(fault.text, expected);
    }
}

/* The session, which names the events, stands behind the samples. */
TEST(says_that_a_recording_without_an_event_is_cut_off)
{
    struct fault fault = {0};
    struct recording *recording = program();
    size_t whole_bytes = recording->writer.used_bytes;
    char expected[256];
    add_data(recording, FXT_STRING_SESSION, SESSION);
    recording->writer.used_bytes = whole_bytes + sizeof(uint64_t);
    assert_null(load_event(recording, "off-cpu", &fault));
    assert_int_equal(fault.code, ESRCH);
    (void)snprintf(expected, sizeof expected,
                   "recording: the recording has no event 'off-cpu'; it has cpu-clock: record "
                   "--wall records what threads wait for; but it ends "
                   "within the record at byte %zu, and what stood behind that is not known",
                   whole_bytes);
    assert_string_equal(fault.text, expected);
}

TEST(an_event_without_samples_is_an_empty_profile)
{
    struct recording *recording = program();
    add_data(recording, FXT_STRING_SESSION, SESSION);
    add_event(recording, S, CLOCK, NO_WEIGHT, 0x1001);
    struct profile *profile = load_good_event(recording, "off-cpu");
    assert_int_equal(profile->sample_count, 0);
    assert_int_equal(profile_total(profile), 0);
    assert_true(profile->event.is_wait && profile->event.is_time);
    (void)profile_free(profile);
}

/* The second session has the events the other way round, and the third in another unit. */
TEST(takes_events_by_the_numbers_of_each_session)
{
    struct recording *recording = program();
    add_data(recording, FXT_STRING_SESSION, SESSION);
    add_event(recording, S, FAULTS, NO_WEIGHT, 0x1001);
    add_lines(recording, "segment 2;name 7 0 0 app");
    add_event(recording, 2 * S, FAULTS, NO_WEIGHT, 0x1001);
    add_event(recording, 3 * S, SWITCHES, 7, 0x1001);
    add_data(recording, FXT_STRING_SESSION,
             "{\"session\":\"b\",\"events\":[{\"event\":\"cpu-clock\"},{\"event\":\"cs\"},"
             "{\"event\":\"faults\",\"unit\":\"faults\",\"period\":2}]}\n");
    add_lines(recording, "segment 3;name 7 0 0 app");
    add_event(recording, 4 * S, FAULTS, NO_WEIGHT, 0x1001);
    add_data(
        recording, FXT_STRING_SESSION,
        "{\"session\":\"c\",\"events\":[{},{\"event\":\"page-faults\",\"unit\":\"pages\"}]}\n");
    struct profile *profile = load_good_event(recording, "page-faults");
    assert_values(profile, ADDRESSES(100, 14));
    /* "cs" and "faults" are two of them by other names. */
    assert_int_equal(profile->event_count, 4);
    (void)profile_free(profile);
}

TEST(all_values_together_fit_a_signed_number)
{
    static const char *const names[] = {NULL, "page-faults"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct recording *recording = program();
        add_data(recording, FXT_STRING_SESSION, SESSION);
        for (uint64_t event = CLOCK; event <= FAULTS; event++) {
            add_event(recording, S, event, UINT64_MAX - 1, 0x1001);
            add_event(recording, 2 * S, event, 1, 0x1001);
        }
        struct profile *profile = load_good_event(recording, names[i]);
        assert_values(profile, ADDRESSES(PROFILE_TOTAL_MAX));
        (void)profile_free(profile);
    }
}

/* A wait of 2 s in f, one of 500 ms in g; the recording begins with a tick a second before. */
static struct recording *waits_recording(void)
{
    struct recording *recording = program();
    add_data(recording, FXT_STRING_SESSION, SESSION);
    add_event(recording, S, CLOCK, NO_WEIGHT, 0x1001);
    add_event(recording, 4 * S, OFF_CPU, 2 * S, 0x1001);
    add_event(recording, 6 * S, OFF_CPU, S / 2, 0x2001);
    return recording;
}

static struct profile *waits(void)
{
    return load_good_event(waits_recording(), "off-cpu");
}

TEST(selects_values_with_their_samples)
{
    struct fault fault = {0};
    struct profile *profile = waits();
    struct selection selection = {0};
    assert_true(selection_parse_time("4", &selection.from)); /* since the first tick */
    assert_int_equal(profile->unselected_ns, 3 * S);
    assert_int_equal(selection_apply(&selection, profile, &fault), 0);
    assert_values(profile, ADDRESSES(S / 2));
    assert_int_equal(profile->samples[0].time_ns, 6 * S);
    assert_int_equal(profile->unselected_ns, 5 * S);
    (void)profile_free(profile);
}

/* Waits from 1 to 3 s and from 4.5 to 5 s, as offsets. */
TEST(selects_the_part_of_a_wait_that_lies_between_the_times)
{
    static const struct {
        const char *from;
        const char *to;
        uint64_t values[2]; /* 0: none */
        uint64_t last_ns;   /* the end of the last one, as an offset */
    } cases[] = {
        {NULL, NULL, {2 * S, S / 2}, 5 * S},
        {"0", NULL, {2 * S, S / 2}, 5 * S},
        {"2", NULL, {S, S / 2}, 5 * S},
        {"2.999999999", NULL, {1, S / 2}, 5 * S},
        {"3", NULL, {S / 2}, 5 * S},
        {NULL, "1.25", {S / 4}, 5 * S / 4 - 1},
        {"1.5", "2.5", {S}, 5 * S / 2 - 1},
        {"1.5", "3", {3 * S / 2}, 3 * S - 1},
        {"2", "4.75", {S, S / 4}, 19 * S / 4 - 1},
        {"4.9", "4.900000001", {1}, 49 * S / 10},
        {"3", "4.5", {0}, 0},
        {NULL, "1", {0}, 0},
        {"5", NULL, {0}, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fault fault = {0};
        struct profile *profile = waits();
        struct selection selection = {0};
        size_t count = (cases[i].values[0] > 0) + (size_t)(cases[i].values[1] > 0);
        assert_true(cases[i].from == NULL || selection_parse_time(cases[i].from, &selection.from));
        assert_true(cases[i].to == NULL || selection_parse_time(cases[i].to, &selection.to));
        assert_int_equal(selection_apply(&selection, profile, &fault), count > 0 ? 0 : -ESRCH);
        if (count == 0) {
            assert_string_equal(fault.text, "no sample is between these times; those that would be "
                                            "selected are from 1.000 s to 5.000 s");
            assert_values(profile, ADDRESSES(2 * S, S / 2));
        } else {
            assert_values(profile, cases[i].values, count);
            assert_int_equal(profile->unselected_count, 2 - count);
            assert_int_equal(profile->last_ns, S + cases[i].last_ns);
            assert_int_equal(profile->samples[count - 1].time_ns, S + cases[i].last_ns);
            assert_int_equal(profile->first_ns - profile->unselected_ns, S);
        }
        (void)profile_free(profile);
    }
}

/* The row of a function. */
static const struct report_row *row_of(const struct report *report, const struct profile *profile,
                                       const char *name)
{
    for (size_t i = 0; i < report->row_count; i++) {
        if (strcmp(profile_text(profile, report->rows[i].name), name) == 0) {
            return &report->rows[i];
        }
    }
    fail_msg("there is no row %s", name);
    return NULL;
}

#define MS (S / 1000)

/* As offsets, f waits from before the first tick to 0.5 s, from 0.75 to 4.25 s and from 5 to 5.2 s,
 * and g from 4.5 to 6 s, where a part ends. */
TEST(series_have_of_a_wait_what_lies_in_each_part)
{
    static const struct {
        const char *from;
        const char *to;
        size_t length_max;
        size_t length;
        uint64_t f_ms[8];
        uint64_t g_ms[8];
    } cases[] = {
        {NULL, NULL, 100, 7, {950, 1000, 1000, 1000, 250, 200}, {0, 0, 0, 0, 500, 1000}},
        {NULL, NULL, 4, 4, {1950, 2000, 450}, {0, 0, 1500}},
        {"0", NULL, 100, 7, {750, 1000, 1000, 1000, 250, 200}, {0, 0, 0, 0, 500, 1000}},
        {"1.45", "5.1", 100, 4, {1000, 1000, 800, 100}, {0, 0, 0, 600}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct recording *recording = program();
        struct selection selection = {0};
        struct report report = {0};
        add_data(recording, FXT_STRING_SESSION, SESSION);
        add_event(recording, S, CLOCK, NO_WEIGHT, 0x1001);
        add_event(recording, 3 * S / 2, OFF_CPU, 700 * MS, 0x1001);
        add_event(recording, 5250 * MS, OFF_CPU, 3500 * MS, 0x1001);
        add_event(recording, 6200 * MS, OFF_CPU, 200 * MS, 0x1001);
        add_event(recording, 7 * S, OFF_CPU, 3 * S / 2, 0x2001);
        struct profile *profile = load_good_event(recording, "off-cpu");
        assert_true(cases[i].from == NULL || selection_parse_time(cases[i].from, &selection.from));
        assert_true(cases[i].to == NULL || selection_parse_time(cases[i].to, &selection.to));
        assert_int_equal(selection_apply(&selection, profile, NULL), 0);
        assert_int_equal(report_build(profile, REPORT_BY_FUNCTION, REPORT_SORT_SELF, &report), 0);
        assert_int_equal(report_take_series(profile, 0, cases[i].length_max, &report), 0);
        assert_int_equal(report.series_length, cases[i].length);
        for (size_t at = 0; at < report.series_length; at++) {
            assert_int_equal(row_of(&report, profile, "f")->series[at], cases[i].f_ms[at] * MS);
            assert_int_equal(row_of(&report, profile, "g")->series[at], cases[i].g_ms[at] * MS);
        }
        report_done(&report);
        (void)profile_free(profile);
    }
}

TEST(reports_count_what_samples_stand_for)
{
    static const enum report_by kinds[] = {REPORT_BY_COMMAND, REPORT_BY_CPU, REPORT_BY_THREAD};
    struct profile *profile = waits();
    struct report report = {0};
    assert_int_equal(report_build(profile, REPORT_BY_FUNCTION, REPORT_SORT_SELF, &report), 0);
    assert_int_equal(report.total, 5 * S / 2);
    assert_int_equal(row_of(&report, profile, "f")->self, 2 * S);
    assert_int_equal(row_of(&report, profile, "g")->total, S / 2);
    report_done(&report);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        assert_int_equal(report_build(profile, kinds[i], REPORT_SORT_SELF, &report), 0);
        assert_int_equal(report.rows[0].self, 5 * S / 2);
        report_done(&report);
    }
    (void)profile_free(profile);
}

/* 2 samples of the clock in f, and 3 ms of task-clock by 100 faults. */
static struct profile *load_clocks(const char *event)
{
    struct recording *recording = program();
    const uint64_t f = 0x1010;
    add_data(recording, FXT_STRING_SESSION,
             "{\"session\":\"a\",\"config\":{\"sample_period_ns\":1000000},\"events\":["
             "{\"event\":\"cpu-clock\",\"unit\":\"ns\",\"period\":1000000},"
             "{\"event\":\"task-clock\",\"unit\":\"ns\",\"period\":3000000},"
             "{\"event\":\"page-faults\",\"unit\":\"faults\",\"period\":100}]}\n");
    add_event(recording, 1 * S, 0, NO_WEIGHT, f);
    add_event(recording, 2 * S, 0, NO_WEIGHT, f);
    add_event(recording, 2 * S, 1, 1, f);
    add_event(recording, 2 * S, 2, 1, f);
    return load_good_event(recording, event);
}

/* The ratio of the first row, and what is printed of it. */
static void expect_ratio(const char *event, const char *other_event, const char *json,
                         const char *table)
{
    struct profile *profile = load_clocks(event);
    struct profile *other = load_clocks(other_event);
    struct report report = {0};
    struct summary summary;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    const struct page page = {.file = file, .columns = 100};
    assert_int_equal(report_build(profile, REPORT_BY_FUNCTION, REPORT_SORT_SELF, &report), 0);
    assert_int_equal(report_take_ratio(profile, other, &report), 0);
    assert_int_equal(summary_take(profile, &summary), 0);
    report_print_table(&page, profile, &summary, &report, 0);
    report_print_json(file, profile, &summary, &report, 0);
    assert_int_equal(fclose(file), 0);
    assert_contains(text, json);
    assert_contains(text, table);
    free(text);
    report_done(&report);
    (void)profile_free(profile);
    (void)profile_free(other);
}

TEST(ratios_of_the_clock_are_of_its_time)
{
    expect_ratio("task-clock", "cpu-clock", "\"ratio_self\":2,\"ratio\":0.666666666667",
                 "ratio: self of cpu-clock (ns) by self of task-clock (ns); 0.6667 of all rows");
    expect_ratio(NULL, "task-clock", "\"ratio_self\":3000000,\"ratio\":1.5}",
                 "ratio: self of task-clock (ns) by self of cpu-clock (ns); 1.5 of all rows");
    expect_ratio(
        "task-clock", "page-faults", "\"ratio\":3.33333333333e-05",
        "ratio: self of page-faults (faults) by self of task-clock (ms); 33.33 of all rows");
    expect_ratio(
        "page-faults", "cpu-clock", "\"ratio\":20000}",
        "ratio: self of cpu-clock (ns) by self of page-faults (faults); 2e+04 of all rows");
}

TEST(summaries_count_what_samples_stand_for)
{
    struct profile *profile = waits();
    struct summary summary;
    assert_int_equal(summary_take(profile, &summary), 0);
    assert_int_equal(summary.sample_count, 2);
    assert_int_equal(summary.total, 5 * S / 2);
    assert_int_equal(summary.complete_count, 5 * S / 2);
    assert_int_equal(summary.commands[0].value, 5 * S / 2);
    assert_int_equal((uint64_t)(1000 * summary.effective_count), 1470); /* 2.5^2 / (2^2 + 0.5^2) */
    (void)profile_free(profile);
}

struct seen_node {
    uint64_t total;
    uint64_t cut;
    size_t count;
};

static void on_node(const struct tree_node *node, void *userdata)
{
    struct seen_node *seen = userdata;
    seen->total = node->number == 0 ? node->total : seen->total;
    seen->cut += node->cut_samples;
    seen->count++;
}

/* g has 20 % of the time, though half of the samples. */
TEST(trees_are_cut_by_what_samples_stand_for)
{
    struct profile *profile = waits();
    const struct tree_request request = {.view = TREE_FROM_ROOT, .min_percent = 25};
    struct seen_node seen = {0};
    struct lineage lineage = {0};
    assert_int_equal(tree_walk(profile, &request, on_node, &seen), 0);
    assert_int_equal(seen.total, 5 * S / 2);
    assert_int_equal(seen.cut, S / 2);
    assert_int_equal(seen.count, 2);
    assert_int_equal(lineage_build(profile, &lineage), 0);
    assert_int_equal(lineage.processes[0].self, 5 * S / 2);
    lineage_done(&lineage);
    (void)profile_free(profile);
}

/* A daemon that knows idleness by switches sees every task: pid 0 is the idle task alone. */
TEST(tells_the_idle_task_from_tasks_outside)
{
    static const char *const cases[][3] = {
        {"cs", "switches,cpuidle", "[idle]"},
        {"cs", "proc_stat", "[outside]"},
        {"cpu-clock", "switches", "[outside]"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char books[64];
        struct recording *recording = program();
        struct fxt_sample sample = user_sample(S, 0, 0, NULL, 0);
        sample.fields |= FXT_SAMPLE_EVENT | FXT_SAMPLE_WEIGHT;
        sample.event = i == 2 ? CLOCK : SWITCHES;
        sample.weight = 1;
        add_name(recording, 0, 0, 0, "[outside]");
        add_data(recording, FXT_STRING_SESSION, SESSION);
        fxt_write_sample(&recording->writer, &sample);
        (void)snprintf(books, sizeof books, "{\"idle_source\":\"%s\"}\n", cases[i][1]);
        add_data(recording, FXT_STRING_BOOKS, books);
        struct profile *profile = load_good_event(recording, cases[i][0]);
        assert_int_equal(profile->sample_count, 1);
        const struct profile_task *task = profile_task(profile, profile->samples[0].task);
        assert_string_equal(profile_text(profile, task->process_name), cases[i][2]);
        (void)profile_free(profile);
    }
}

TEST(amounts_are_in_the_words_of_their_unit)
{
    char into[MEASURE_WORDS_BYTES];
    const struct {
        const char *name;
        const char *unit;
        uint64_t value;
        const char *expected;
    } cases[] = {
        {"cpu-clock", "ns", 1, "1 sample"},
        {"cpu-clock", "ns", 30000, "30000 samples"},
        {"page-faults", "faults", 1, "1 fault"},
        {"page-faults", "faults", 30000, "30,000 faults"},
        {"page-faults", "faults", 1234567890, "1,234,567,890 faults"},
        {"cs", "switches", 1, "1 switch"},
        {"branch-misses", "misses", 1, "1 miss"},
        {"cycles", "cycles", 1, "1 cycle"},
        {"off-cpu", "ns", 999, "999 ns"},
        {"off-cpu", "ns", 1500, "1.500 us"},
        {"off-cpu", "ns", 12300000, "12.300 ms"},
        {"off-cpu", "ns", 12300000000, "12.300 s"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct profile_event event = {0};
        assert_int_equal(profile_event_set(&event, cases[i].name, cases[i].unit), 0);
        assert_string_equal(measure_words(&event, cases[i].value, into), cases[i].expected);
        profile_event_done(&event);
    }
}

TEST(columns_are_as_wide_as_their_sum)
{
    char cell[MEASURE_CELL_BYTES];
    struct profile *profile = waits();
    struct measure measure = measure_of(profile);
    assert_string_equal(measure.unit, " ms");
    assert_int_equal(measure.width, 8);
    assert_string_equal(measure_cell(&measure, 5 * S / 2, cell), "2500.000");
    profile->values[0] += 120 * S;
    profile->value_total += 120 * S;
    measure = measure_of(profile);
    assert_string_equal(measure.unit, " s");
    assert_string_equal(measure_cell(&measure, profile->value_total, cell), "122.500");
    profile->event.is_time = false;
    measure = measure_of(profile);
    assert_string_equal(measure.unit, "");
    assert_int_equal(measure.width, strlen("122500000000"));
    (void)profile_free(profile);
}

#define WAITS_TOTAL                                                                                \
    "\"counted\":2500000000,\"sampled\":2500000000,\"kept\":2,\"enabled_ns\":1000,"                \
    "\"running_ns\":1000,"
#define WAITS_BOOKS                                                                                \
    "{\"events\":[{\"event\":\"off-cpu\",\"unit\":\"ns\",\"period\":1,"                            \
    "\"total\":{" WAITS_TOTAL "%s}}]}\n"

static void on_doubt(const char *text, void *userdata)
{
    (void)fprintf(userdata, "%s\n", text);
}

/* Of 2.5 s. */
TEST(doubts_waits_by_their_own_books)
{
    static const struct {
        const char *total;
        const char *expected;
    } cases[] = {
        {"\"held_back_ns\":9,\"not_sampled\":0,\"error_95_ns\":0", ""},
        {"\"held_back_ns\":0,\"not_sampled\":8,\"error_95_ns\":24000000", ""},
        {"\"held_back_ns\":0,\"not_sampled\":8,\"error_95_ns\":26000000",
         "waits were too many to record each: those that are stand for others, and their sum "
         "over all tasks is off by up to 26.000 ms (95 %)\n"},
        {"\"held_back_ns\":100,\"not_sampled\":0,\"error_95_ns\":0",
         "switches came too fast to be recorded in 10.0 % of the time; waits then are not certain, "
         "and have no sample\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char json[512];
        struct summary summary;
        struct recording *recording = waits_recording();
        (void)snprintf(json, sizeof json, WAITS_BOOKS, cases[i].total);
        add_data(recording, FXT_STRING_BOOKS, json);
        struct profile *profile = load_good_event(recording, "off-cpu");
        assert_int_equal(summary_take(profile, &summary), 0);
        EXPECT_PRINTED(cases[i].expected, (void)doubts_find(profile, &summary, on_doubt, file));
        (void)profile_free(profile);
    }
}

static double random_part(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) / (double)(UINT64_C(1) << 53);
}

#define CPU_EVENTS 4000
#define RUNS       200

/* Samples of a process that causes a part of a CPU's switches, one after 1 to 16 of these. Returns
 * how many the process caused. */
static uint64_t simulate(struct recording *recording, double part, uint64_t *state)
{
    uint64_t caused = 0;
    uint64_t weight = 1 + (uint64_t)(16 * random_part(state));
    uint64_t left = weight;
    for (uint64_t i = 0; i < CPU_EVENTS; i++) {
        bool is_its = random_part(state) < part;
        caused += is_its;
        if (--left == 0) {
            if (is_its) {
                add_event(recording, S + i, SWITCHES, weight, 0x1010);
            }
            weight = 1 + (uint64_t)(16 * random_part(state));
            left = weight;
        }
    }
    return caused;
}

TEST(estimates_of_a_part_are_off_by_their_standard_error)
{
    static const double parts[] = {0.05, 0.2, 0.5};
    uint64_t seed = 7;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        double squares = 0; /* of what the estimate is off by, in standard errors */
        for (int run = 0; run < RUNS; run++) {
            struct recording *recording = program();
            uint64_t caused = simulate(recording, parts[i], &seed);
            add_data(recording, FXT_STRING_SESSION, SESSION);
            add_data(recording, FXT_STRING_BOOKS,
                     "{\"events\":[{\"event\":\"context-switches\",\"period\":0,"
                     "\"total\":{\"counted\":4000}}]}");
            struct profile *profile = load_good_event(recording, "cs");
            double error = 0;
            assert_true(doubts_event_error(profile, &error));
            double off = (double)profile_total(profile) - (double)caused;
            squares += off * off / (error * error);
            (void)profile_free(profile);
        }
        double ratio = sqrt(squares / RUNS);
        if (ratio < 0.7 || ratio > 1.2) {
            fail_msg("of a part of %.2f: %.2f standard errors", parts[i], ratio);
        }
    }
}

TEST(says_that_what_a_part_did_is_an_estimate)
{
    static const struct {
        int period;
        int counted;
        const char *expected;
    } cases[] = {
        {1, 1000, ""},
        {0, 100, ""}, /* all that was counted is shown */
        {0, 1000,
         "what the samples stand for is an estimate, since each stands for what its CPU counted "
         "since the sample before, by any task: it is off by up to 134 switches (95 %)\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char json[512];
        struct summary summary;
        struct recording *recording = program();
        add_event(recording, 1 * S, SWITCHES, 50, 0x1010);
        add_event(recording, 2 * S, SWITCHES, 50, 0x1010);
        add_data(recording, FXT_STRING_SESSION, SESSION);
        (void)snprintf(json, sizeof json,
                       "{\"events\":[{\"event\":\"context-switches\",\"period\":%d,\"total\":{"
                       "\"counted\":%d,\"sampled\":%d,\"kept\":2}}]}",
                       cases[i].period, cases[i].counted, cases[i].counted);
        add_data(recording, FXT_STRING_BOOKS, json);
        struct profile *profile = load_good_event(recording, "cs");
        assert_int_equal(summary_take(profile, &summary), 0);
        summary.effective_count = 1000; /* few samples are another doubt */
        EXPECT_PRINTED(cases[i].expected, (void)doubts_find(profile, &summary, on_doubt, file));
        (void)profile_free(profile);
    }
}

/* But for one of each switch, which stands at the end of a turn. */
TEST(says_that_a_followers_part_is_too_low)
{
    static const struct {
        const char *leader;
        int leader_period;
        int counted;
        bool is_known;
    } cases[] = {
        {"task-clock", 1000000, 1000, false},
        {"task-clock", 1000000, 100, true}, /* all that was counted is shown */
        {"cs", 2, 1000, false},
        {"cs", 1, 1000, true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char json[512];
        double error = 0;
        struct summary summary;
        struct recording *recording = program();
        add_event(recording, 1 * S, SWITCHES, 50, 0x1010);
        add_event(recording, 2 * S, SWITCHES, 50, 0x1010);
        add_data(recording, FXT_STRING_SESSION, SESSION);
        (void)snprintf(json, sizeof json,
                       "{\"events\":[{\"event\":\"%s\",\"period\":%d,\"total\":{}},"
                       "{\"event\":\"context-switches\",\"period\":0,\"leader\":\"%s\",\"total\":{"
                       "\"counted\":%d,\"sampled\":%d,\"kept\":2}}]}",
                       cases[i].leader, cases[i].leader_period, cases[i].leader, cases[i].counted,
                       cases[i].counted);
        add_data(recording, FXT_STRING_BOOKS, json);
        struct profile *profile = load_good_event(recording, "cs");
        assert_int_equal(doubts_event_error(profile, &error), cases[i].is_known);
        assert_true(error == 0);
        assert_int_equal(summary_take(profile, &summary), 0);
        summary.effective_count = 1000; /* few samples are another doubt */
        cleanup_(freep) char *text = NULL;
        size_t text_bytes = 0;
        FILE *file = open_memstream(&text, &text_bytes);
        (void)doubts_find(profile, &summary, on_doubt, file);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(strstr(text, "whose error is not known") == NULL, cases[i].is_known);
        (void)profile_free(profile);
    }
}

/* What the kernel takes around a sample of a switch is time of the next task. */
TEST(says_that_a_time_of_each_switch_is_too_low)
{
    static const char leader[] = "{\"event\":\"context-switches\",\"period\":1,\"total\":{}},";
    for (int is_part = 0; is_part <= 1; is_part++) {
        char json[512];
        double error = 0;
        struct summary summary;
        struct recording *recording = program();
        add_event(recording, 1 * S, SWITCHES, 50, 0x1010);
        add_data(recording, FXT_STRING_SESSION,
                 "{\"session\":\"a\",\"events\":[{\"event\":\"cpu-clock\"},"
                 "{\"event\":\"context-switches\"},"
                 "{\"event\":\"task-clock\",\"unit\":\"ns\",\"period\":1}]}\n");
        (void)snprintf(
            json, sizeof json,
            "{\"events\":[%s{\"event\":\"task-clock\",\"period\":0,\"leader\":"
            "\"context-switches\",\"total\":{\"counted\":%d,\"sampled\":%d,\"kept\":1}}]}",
            leader, is_part ? 1000 : 50, is_part ? 1000 : 50);
        add_data(recording, FXT_STRING_BOOKS, json);
        struct profile *profile = load_good_event(recording, "task-clock");
        assert_int_equal(doubts_event_error(profile, &error), !is_part);
        assert_int_equal(summary_take(profile, &summary), 0);
        summary.effective_count = 1000; /* few samples are another doubt */
        EXPECT_PRINTED(is_part ? "what the samples stand for is too low by some microseconds a "
                                 "switch: what the kernel takes around a sample counts for the "
                                 "next task on that CPU\n"
                               : "",
                       (void)doubts_find(profile, &summary, on_doubt, file));
        (void)profile_free(profile);
    }
}

TEST(says_that_waits_of_some_threads_are_missing)
{
    for (int refused = 0; refused <= 1; refused++) {
        char json[512];
        struct summary summary;
        struct recording *recording = program();
        add_event(recording, 1 * S, SWITCHES, 50, 0x1010);
        add_data(recording, FXT_STRING_SESSION, SESSION);
        (void)snprintf(json, sizeof json,
                       "{\"threads_refused\":%d,\"events\":[{\"event\":\"context-switches\","
                       "\"period\":0,\"total\":{\"counted\":50,\"sampled\":50,\"kept\":1}}]}",
                       refused);
        add_data(recording, FXT_STRING_BOOKS, json);
        struct profile *profile = load_good_event(recording, "cs");
        assert_int_equal(summary_take(profile, &summary), 0);
        summary.effective_count = 1000; /* few samples are another doubt */
        EXPECT_PRINTED("", (void)doubts_find(profile, &summary, on_doubt, file));
        profile->event.is_wait = true;
        EXPECT_PRINTED(refused == 0 ? ""
                                    : "there were more threads than are followed, of one user or "
                                      "of all: the waits of the others are missing\n",
                       (void)doubts_find(profile, &summary, on_doubt, file));
        (void)profile_free(profile);
    }
}

/* Exports in a text format. Returned: free(). */
static char *export_text(const struct profile *profile, const char *format)
{
    const struct export_options options = {0};
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    assert_int_equal(export_format_find(format)->print(file, profile, &options), 0);
    assert_int_equal(fclose(file), 0);
    return text;
}

TEST(exports_say_what_samples_stand_for)
{
    static const struct {
        const char *format;
        const char *expected[3];
    } cases[] = {
        {"folded", {"app;f 2000000000\n", "app;g 500000000\n", ""}},
        {"speedscope",
         {"\"unit\":\"nanoseconds\"", "\"weights\":[2000000000,500000000]",
          "\"endValue\":2500000000"}},
        {"firefox", {"\"weight\":[2000.000000,500.000000]", "\"weightType\":\"tracing-ms\"", ""}},
        {"callgrind", {"events: OffCpuNs\n", "totals: 2500000000\n", "desc: event: off-cpu\n"}},
        {"perf-script", {": 2000000000 off-cpu:\n", ": 500000000 off-cpu:\n", "# unit: ns\n"}},
        {"chrome", {"\"ts\":2000000,\"dur\":2000000", "\"ts\":5500000,\"dur\":500000", ""}},
    };
    struct profile *profile = waits();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *text = export_text(profile, cases[i].format);
        for (size_t at = 0; at < COUNT_OF(cases[i].expected); at++) {
            assert_contains(text, cases[i].expected[at]);
        }
        free(text);
    }
    (void)profile_free(profile);
}
