/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rows of a comparison of small recordings: what is sure, what cannot be, and what is refused.
 */
#include "diff.h"
#include "made_recording.h"

#include <math.h>

#define MODULE                                                                                     \
    "name 7 0 0 app; module 7 1 /new/app 0xab; mmap 0 7 1 0x1000 0x1000 0;"                        \
    "symbol ab /new/app 0 main; symbol ab /new/app 16 work; symbol ab /new/app 32 rest;"           \
    "symbol ab /new/app 48 rare"
#define MAIN "0x1001"
#define WORK "0x1011"
#define REST "0x1021"
#define RARE "0x1031"

/* 600 samples of main, one each millisecond, in which of each 6 `work_of_six` call work, and the
 * others rest; and so many of rare behind them. */
static struct profile *make(const char *definitions, unsigned work_of_six, unsigned rare)
{
    struct recording *recording = recording_of(definitions);
    char line[128];
    for (unsigned i = 0; i < 600 + rare; i++) {
        (void)snprintf(line, sizeof line, "sample %u 7 1 %s " MAIN, 1000000 * (i + 1),
                       i >= 600                            ? RARE
                       : (i * 5 + i / 6) % 6 < work_of_six ? WORK
                                                           : REST);
        add_lines(recording, line);
    }
    return load_recording(recording);
}

/* Takes the profile. */
static void add(struct diff *diff, enum diff_side side, struct profile *profile)
{
    assert_int_equal(diff_add(diff, side, profile, side == DIFF_BEFORE ? "a" : "b", 100), 0);
    (void)profile_free(profile);
}

/* Each side has as many recordings, all alike. Takes the profiles. */
static struct diff *compare_several(const struct diff_options *options, struct profile *before,
                                    struct profile *after, size_t count)
{
    struct fault fault = {0};
    struct diff *diff = diff_new(options);
    assert_non_null(diff);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(diff_add(diff, DIFF_BEFORE, before, "a", 100), 0);
        assert_int_equal(diff_add(diff, DIFF_AFTER, after, "b", 100), 0);
    }
    (void)profile_free(before);
    (void)profile_free(after);
    if (diff_compare(diff, &fault) < 0) {
        fail_msg("%s", fault.text);
    }
    return diff;
}

#define A_SIDE 3

static struct diff *compare(const struct diff_options *options, struct profile *before,
                            struct profile *after)
{
    return compare_several(options, before, after, A_SIDE);
}

static const struct diff_row *find(const struct diff *diff, const char *name)
{
    size_t count = 0;
    const struct diff_row *rows = diff_rows(diff, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    fail_msg("no row '%s'", name);
    return NULL;
}

static const struct diff_options options = {.discovery_rate = 0.05};

TEST(says_nothing_of_equal_recordings)
{
    struct diff *diff = compare(&options, make(MODULE, 3, 0), make(MODULE, 3, 0));
    size_t count = 0;
    const struct diff_row *rows = diff_rows(diff, &count);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        assert_true(rows[i].self.change == 0 && rows[i].total.change == 0);
        assert_false(rows[i].self.is_sure || rows[i].total.is_sure);
    }
    (void)diff_free(diff);
}

/* How runs differ is not in so few recordings: not even half of all is sure, and what is known is
 * the noise within the recordings. */
TEST(is_never_sure_of_few_recordings_of_a_side)
{
    static const size_t counts[][DIFF_SIDES] = {{1, 1}, {1, 4}, {4, 1}, {2, 2}, {2, 4}};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct fault fault = {0};
        struct diff *diff = diff_new(&options);
        for (size_t at = 0; at < counts[i][DIFF_BEFORE]; at++) {
            add(diff, DIFF_BEFORE, make(MODULE, 0, 0));
        }
        for (size_t at = 0; at < counts[i][DIFF_AFTER]; at++) {
            add(diff, DIFF_AFTER, make(MODULE, 3, 0));
        }
        assert_int_equal(diff_compare(diff, &fault), 0);
        assert_false(diff_is_judged(diff));
        const struct diff_row *row = find(diff, "work");
        assert_true(row->self.change == 0.5);
        assert_false(row->self.is_sure || row->self.is_tested);
        assert_true(row->self.has_margin && row->self.margin > 0 && row->self.margin < 0.1);
        EXPECT_PRINTED("nothing is called sure", {
            char *text = NULL;
            size_t text_bytes = 0;
            FILE *head = open_memstream(&text, &text_bytes);
            assert_int_equal(diff_write_head(head, diff), 0);
            assert_int_equal(fclose(head), 0);
            const char *said = strstr(text, "nothing is called sure");
            assert_non_null(said);
            (void)fprintf(file, "%.*s", 22, said);
            free(text);
        });
        (void)diff_free(diff);
    }
}

/* What is in half of all runs parts two sides of n in 2 of 2^2n cases. */
TEST(needs_recordings_for_its_rate)
{
    assert_int_equal(diff_recordings_needed(0.5), 2);
    assert_int_equal(diff_recordings_needed(0.125), 2);
    assert_int_equal(diff_recordings_needed(0.124), 3);
    assert_int_equal(diff_recordings_needed(0.05), 3);
    assert_int_equal(diff_recordings_needed(0.01), 4);
    assert_int_equal(diff_recordings_needed(0.001), 6);
}

/* Three recordings a side that are alike but for so many samples of rare in the last one. */
static struct diff *compare_rare(unsigned count)
{
    struct fault fault = {0};
    struct diff *diff = diff_new(&options);
    for (size_t i = 0; i < A_SIDE; i++) {
        add(diff, DIFF_BEFORE, make(MODULE, 3, 0));
        add(diff, DIFF_AFTER, make(MODULE, 3, i + 1 == A_SIDE ? count : 0));
    }
    assert_int_equal(diff_compare(diff, &fault), 0);
    return diff;
}

/* One sample against none is no fact, and no more are nine. */
TEST(is_never_sure_of_a_few_samples)
{
    static const unsigned counts[] = {1, 9};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct diff *diff = compare_rare(counts[i]);
        const struct diff_row *row = find(diff, "rare");
        assert_int_equal(row->self.samples[DIFF_BEFORE], 0);
        assert_int_equal(row->self.samples[DIFF_AFTER], counts[i]);
        assert_false(row->self.is_sure || row->total.is_sure || row->self.is_tested);
        (void)diff_free(diff);
    }
}

/* 60 samples that all came at once can be one event; as many that come all the time cannot. */
TEST(tells_one_moment_from_a_habit)
{
    struct diff *diff = compare_rare(60);
    const struct diff_row *row = find(diff, "rare");
    assert_true(row->self.is_tested);
    assert_false(row->self.is_sure);
    (void)diff_free(diff);
    diff = compare(&options, make(MODULE, 0, 0), make(MODULE, 1, 0));
    row = find(diff, "work");
    assert_int_equal(row->self.samples[DIFF_BEFORE], 0);
    assert_int_equal(row->self.samples[DIFF_AFTER], A_SIDE * 100);
    assert_true(row->self.is_sure);
    (void)diff_free(diff);
}

#define BOOKS(expected, missed)                                                                    \
    "{\"period_ns\":1000000,\"cpus\":[],\"total\":{\"expected\":" expected                         \
    ",\"received\":600,\"lost\":0,\"throttled\":0,\"missed\":" missed                              \
    ",\"idle\":0,\"unexplained\":0,\"kept\":600,\"filtered\":0,\"dropped\":0}}\n"

/* A profile with such books, and such a session. */
static struct profile *make_with(const char *books, const char *session)
{
    struct recording *recording = recording_of(MODULE);
    char line[128];
    add_data(recording, FXT_STRING_SESSION, session);
    add_data(recording, FXT_STRING_BOOKS, books);
    for (unsigned i = 0; i < 600; i++) {
        (void)snprintf(line, sizeof line, "sample %u 7 1 %s " MAIN, 1000000 * (i + 1),
                       i % 2 == 0 ? WORK : REST);
        add_lines(recording, line);
    }
    return load_recording(recording);
}

#define SESSION(targets, kernel)                                                                   \
    "{\"session\":\"1\",\"host\":\"h\",\"kernel\":\"6\",\"config\":{\"sample_period_ns\":1000000," \
    "\"unwind\":\"auto\",\"kernel_stacks\":" kernel ",\"targets\":{" targets "}}}\n"

/* By work, as many samples in twice as many units are half the cost, of what calls too. Without a
 * period samples are no time. */
TEST(divides_by_units_of_work)
{
    struct diff_options per_work = options;
    struct fault fault = {0};
    per_work.per = DIFF_PER_WORK;
    struct diff *diff = diff_new(&per_work);
    add(diff, DIFF_BEFORE, make(MODULE, 3, 0));
    add(diff, DIFF_AFTER, make(MODULE, 3, 0));
    assert_int_equal(diff_compare(diff, &fault), -EINVAL);
    assert_contains(fault.text, "how much time a sample stands for");
    (void)diff_free(diff);

    diff = diff_new(&per_work);
    struct profile *profile = make_with(BOOKS("800", "0"), SESSION("", "true"));
    for (size_t i = 0; i < A_SIDE; i++) {
        assert_int_equal(diff_add(diff, DIFF_BEFORE, profile, "a", 100), 0);
        assert_int_equal(diff_add(diff, DIFF_AFTER, profile, "b", 200), 0);
    }
    (void)profile_free(profile);
    assert_int_equal(diff_compare(diff, &fault), 0);
    const struct diff_row *row = find(diff, "main");
    assert_true(fabs(row->total.values[DIFF_BEFORE] - 0.006) < 1e-12);
    assert_true(fabs(row->total.values[DIFF_AFTER] - 0.003) < 1e-12);
    assert_true(row->total.is_sure && find(diff, "work")->self.is_sure && !row->self.is_sure);
    double part = 0;
    bool is_visible = false;
    assert_null(diff_find_above(diff, 0.03, &part, &is_visible));
    (void)diff_free(diff);
}

/* What a unit costs differs from run to run for all functions alike: 600 samples in 90, 100 and 110
 * units are 11, 0 and -9 % more than the mean, a deviation of 10.2 % with 4 degrees of freedom. Of
 * the mean of three on both sides that is 8.3 %, and Student's limit for 5 % is 2.776. */
TEST(measures_how_much_wholes_differ)
{
    struct diff_options per_work = options;
    struct fault fault = {0};
    per_work.per = DIFF_PER_WORK;
    struct diff *diff = diff_new(&per_work);
    struct profile *profile = make_with(BOOKS("800", "0"), SESSION("", "true"));
    for (int work = 90; work <= 110; work += 10) {
        assert_int_equal(diff_add(diff, DIFF_BEFORE, profile, "a", work), 0);
        assert_int_equal(diff_add(diff, DIFF_AFTER, profile, "b", work), 0);
    }
    (void)profile_free(profile);
    assert_int_equal(diff_compare(diff, &fault), 0);
    const struct diff_change *total = &find(diff, "main")->total;
    assert_true(fabs(total->margin / total->values[DIFF_BEFORE] - 2.776 * 0.0829) < 0.002);
    assert_true(find(diff, "work")->self.margin > 0.2 * find(diff, "work")->self.values[0]);
    (void)diff_free(diff);
}

/* Missed ticks are no idleness: 600 of 800 seen ticks on both sides. */
TEST(divides_by_the_ticks_that_were_seen)
{
    const char *session = SESSION("", "true");
    struct diff *diff = compare(&options, make_with(BOOKS("800", "0"), session),
                                make_with(BOOKS("1000", "200"), session));
    const struct diff_row *row = find(diff, "work");
    assert_true(row->self.values[DIFF_BEFORE] == 300.0 / 800);
    assert_true(row->self.values[DIFF_AFTER] == 300.0 / 800);
    (void)diff_free(diff);
}

TEST(divides_by_the_cpu_time_of_all_where_a_part_was_recorded)
{
    const char *session = SESSION("\"pids\":[7]", "true");
    struct diff *diff = compare(&options, make_with(BOOKS("800", "0"), session),
                                make_with(BOOKS("8000", "0"), session));
    const struct diff_row *row = find(diff, "work");
    assert_true(row->self.values[DIFF_BEFORE] == 0.5);
    assert_true(row->self.values[DIFF_AFTER] == 0.5);
    (void)diff_free(diff);
}

/* The samples of make() without rare ones, as faults of such a weight each. */
static struct profile *make_faults(unsigned work_of_six, uint64_t weight, const char *unit)
{
    struct recording *recording = recording_of(MODULE);
    struct profile *profile = NULL;
    struct fault fault = {0};
    char session[256];
    for (unsigned i = 0; i < 600; i++) {
        const uint64_t stack[] = {(i * 5 + i / 6) % 6 < work_of_six ? 0x1011 : 0x1021, 0x1001};
        struct fxt_sample sample =
            user_sample((uint64_t)1000000 * (i + 1), 7, COMPLETE, stack, COUNT_OF(stack));
        sample.fields |= FXT_SAMPLE_EVENT | FXT_SAMPLE_WEIGHT;
        sample.event = 1;
        sample.weight = weight;
        fxt_write_sample(&recording->writer, &sample);
    }
    (void)snprintf(session, sizeof session,
                   "{\"events\":[{\"event\":\"cpu-clock\"},{\"event\":\"page-faults\","
                   "\"unit\":\"%s\",\"period\":1}]}\n",
                   unit);
    add_data(recording, FXT_STRING_SESSION, session);
    if (profile_load_memory((const uint8_t *)recording->memory, recording->writer.used_bytes,
                            "page-faults", &profile, &fault) < 0) {
        fail_msg("%s", fault.text);
    }
    free(recording);
    return profile;
}

/* How sure a change is does not depend on what each sample stands for. */
TEST(is_as_sure_of_an_event_as_of_as_many_ticks)
{
    const struct diff_options per_all = {.per = DIFF_PER_CPU, .discovery_rate = 0.05};
    struct diff *ticks = compare(&per_all, make(MODULE, 2, 0), make(MODULE, 3, 0));
    struct diff *faults =
        compare(&per_all, make_faults(2, 1000, "faults"), make_faults(3, 1000, "faults"));
    static const char *const names[] = {"main", "work", "rest"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct diff_change *expected = &find(ticks, names[i])->self;
        const struct diff_change *found = &find(faults, names[i])->self;
        assert_int_equal(found->samples[DIFF_AFTER], 1000 * expected->samples[DIFF_AFTER]);
        assert_true(fabs(found->change - expected->change) < 1e-9);
        assert_true(fabs(found->margin - expected->margin) < 1e-9);
        assert_true(fabs(found->visible - expected->visible) < 1e-9);
        assert_true(fabs(found->probability - expected->probability) < 1e-9);
        assert_int_equal(found->is_sure, expected->is_sure);
    }
    assert_true(find(faults, "work")->self.is_sure);
    (void)diff_free(ticks);
    (void)diff_free(faults);
}

/* By work, values are amounts: the whole of a recording is 600,000 faults for 100 units of work. */
TEST(divides_an_event_by_units_of_work)
{
    const struct diff_options per_work = {.per = DIFF_PER_WORK, .discovery_rate = 0.05};
    struct diff *diff =
        compare(&per_work, make_faults(3, 1000, "faults"), make_faults(3, 2000, "faults"));
    const struct diff_change *main = &find(diff, "main")->total;
    assert_true(fabs(main->values[DIFF_BEFORE] - 6000) < 1e-6);
    assert_true(fabs(main->values[DIFF_AFTER] - 12000) < 1e-6);
    assert_true(main->is_sure);
    EXPECT_PRINTED("Numbers are thousand faults for a unit of work. All that is compared: 6.00 "
                   "before, 12.00 after (+100.0 %).\n",
                   {
                       char *text = NULL;
                       size_t text_bytes = 0;
                       FILE *head = open_memstream(&text, &text_bytes);
                       assert_int_equal(diff_write_head(head, diff), 0);
                       assert_int_equal(fclose(head), 0);
                       (void)fprintf(file, "%.*s", (int)(strchr(text, '\n') + 1 - text), text);
                       free(text);
                   });
    (void)diff_free(diff);
}

TEST(refuses_an_event_in_different_units)
{
    struct fault fault = {0};
    struct diff *diff = diff_new(&options);
    add(diff, DIFF_BEFORE, make_faults(3, 2, "faults"));
    add(diff, DIFF_AFTER, make_faults(3, 2, "pages"));
    assert_int_equal(diff_compare(diff, &fault), -EINVAL);
    assert_contains(fault.text, "has different units");
    (void)diff_free(diff);
}

TEST(refuses_recordings_that_were_not_made_alike)
{
    struct fault fault = {0};
    for (int has_force = 0; has_force < 2; has_force++) {
        struct diff_options forced = options;
        forced.has_force = has_force != 0;
        struct diff *diff = diff_new(&forced);
        add(diff, DIFF_BEFORE, make_with(BOOKS("800", "0"), SESSION("", "true")));
        add(diff, DIFF_AFTER, make_with(BOOKS("800", "0"), SESSION("", "false")));
        assert_int_equal(diff_compare(diff, &fault), has_force != 0 ? 0 : -EINVAL);
        (void)diff_free(diff);
    }
    assert_contains(fault.text, "stacks of the kernel");
}

/* Perf has two names for some events. */
TEST(knows_that_two_names_are_of_one_event)
{
#define EVENT_SESSION(name)                                                                        \
    "{\"session\":\"1\",\"config\":{},\"events\":[{\"event\":\"cpu-clock\"},"                      \
    "{\"event\":\"" name "\",\"unit\":\"faults\",\"period\":10}]}\n"
    static const struct {
        const char *session;
        int r;
    } cases[] = {{EVENT_SESSION("faults"), 0}, {EVENT_SESSION("minor-faults"), -EINVAL}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fault fault = {0};
        struct diff *diff = diff_new(&options);
        add(diff, DIFF_BEFORE, make_with(BOOKS("800", "0"), EVENT_SESSION("page-faults")));
        add(diff, DIFF_AFTER, make_with(BOOKS("800", "0"), cases[i].session));
        assert_int_equal(diff_compare(diff, &fault), cases[i].r);
        (void)diff_free(diff);
    }
}

/* The CPU-seconds of a side whose recordings have such periods, 0: not known; of 600 samples each.
 */
static char *write_wholes_of(const uint64_t periods_ns[2])
{
    const struct diff_options per_cpu = {.per = DIFF_PER_CPU, .discovery_rate = 0.05};
    struct fault fault = {0};
    struct diff *diff = diff_new(&per_cpu);
    char *text = NULL;
    size_t text_bytes = 0;
    for (size_t i = 0; i < 2; i++) {
        char session[128];
        (void)snprintf(session, sizeof session,
                       "{\"session\":\"1\",\"config\":{\"sample_period_ns\":%llu}}\n",
                       (unsigned long long)periods_ns[i]);
        add(diff, DIFF_BEFORE, make_with("{}\n", session));
        add(diff, DIFF_AFTER, make_with("{}\n", "{\"config\":{\"sample_period_ns\":2500000}}\n"));
    }
    assert_int_equal(diff_compare(diff, &fault), 0);
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    assert_int_equal(diff_write_head(file, diff), 0);
    assert_int_equal(fclose(file), 0);
    (void)diff_free(diff);
    return text;
}

TEST(says_the_cpu_time_of_recordings_in_digits)
{
    char *text = write_wholes_of((const uint64_t[]){24000000000, 24000000000});
    assert_contains(text, "14400 -> 1.50 CPU-seconds a recording (-100 %)");
    free(text);
    text = write_wholes_of((const uint64_t[]){20000, 30000});
    assert_contains(text, "0.0150 -> 1.50 CPU-seconds a recording (+9900 %)");
    free(text);
}

/* The mean of what is known would be that of other recordings than those of the other side. */
TEST(says_no_cpu_time_where_a_recording_has_none)
{
    char *text = write_wholes_of((const uint64_t[]){2500000, 0});
    assert_null(strstr(text, "CPU-seconds"));
    free(text);
}

/* Events are named as -e and --wall name them, and all of them, however long the sentence is. */
TEST(names_the_events_that_differ_in_whole)
{
    static const char waits[] =
        "{\"session\":\"1\",\"config\":{},\"events\":[{\"event\":\"cpu-clock\",\"unit\":\"ns\","
        "\"period\":1002001},{\"event\":\"off-cpu\",\"unit\":\"ns\",\"period\":1},"
        "{\"event\":\"a-long-name-of-an-event-of-some-counter-in-the-processor\",\"unit\":\"events\","
        "\"period\":100},{\"event\":\"page-faults\",\"unit\":\"faults\",\"period\":10}]}\n";
    static const char clock[] = "{\"session\":\"1\",\"config\":{}}\n";
    static const char longest[] =
        "a-name-of-a-recording-that-is-as-long-as-those-of-a-folder-with-a-"
        "date-and-the-commit-and-the-machine-it-was-made-on.fxt";
    struct fault fault = {0};
    char expected[1024];
    struct diff *diff = diff_new(&options);
    struct profile *before = make_with(BOOKS("800", "0"), clock);
    struct profile *after = make_with(BOOKS("800", "0"), waits);
    assert_int_equal(diff_add(diff, DIFF_BEFORE, before, longest, 0), 0);
    assert_int_equal(diff_add(diff, DIFF_AFTER, after, "b.fxt", 0), 0);
    assert_int_equal(diff_compare(diff, &fault), -EINVAL);
    (void)snprintf(expected, sizeof expected,
                   "the events that were sampled differ: %s has cpu-clock, and b.fxt has "
                   "cpu-clock, off-cpu, "
                   "a-long-name-of-an-event-of-some-counter-in-the-processor:100 and "
                   "page-faults:10; the same function then has other samples; --force compares "
                   "them all the same",
                   longest);
    assert_string_equal(diff_refusal(diff), expected);
    (void)diff_free(diff);
    (void)profile_free(before);
    (void)profile_free(after);
}

/* What has no name is called by an address, which another build has for something else. */
TEST(does_not_match_addresses_of_another_build)
{
    static const char before[] = "name 7 0 0 app; module 7 1 /bin/app 0xab;"
                                 "mmap 0 7 1 0x1000 0x1000 0";
    static const char after[] = "name 7 0 0 app; module 7 1 /bin/app 0xcd;"
                                "mmap 0 7 1 0x1000 0x1000 0";
    struct diff *diff = compare(&options, make(before, 3, 0), make(after, 3, 0));
    size_t count = 0;
    const struct diff_row *rows = diff_rows(diff, &count);
    assert_int_equal(count, 6);
    for (size_t i = 0; i < count; i++) {
        assert_true(rows[i].is_unmatched);
        assert_false(rows[i].self.is_tested || rows[i].total.is_tested);
    }
    (void)diff_free(diff);
}

/* Nor is what they called the same stack on both sides, whatever its name is; and what grew without
 * being compared is no growth that would have been seen. */
TEST(does_not_match_stacks_below_addresses_of_another_build)
{
#define NAMED                                                                                      \
    "module 7 2 /lib/named 0xee; mmap 0 7 2 0x1010 0x20 0; symbol ee /lib/named 0 work; symbol ee /lib/named 16 rest"
    static const char before[] =
        "name 7 0 0 app; module 7 1 /bin/app 0xab; mmap 0 7 1 0x1000 0x10 0;" NAMED;
    static const char after[] =
        "name 7 0 0 app; module 7 1 /bin/app 0xcd; mmap 0 7 1 0x1000 0x10 0x100;" NAMED;
    struct diff_options by_stack = options;
    double part = 0;
    bool is_visible = true;
    by_stack.by = DIFF_BY_STACK;
    struct diff *diff = compare(&by_stack, make(before, 3, 0), make(after, 3, 0));
    size_t count = 0;
    const struct diff_row *rows = diff_rows(diff, &count);
    assert_int_equal(count, 6);
    for (size_t i = 0; i < count; i++) {
        assert_true(rows[i].is_unmatched && !rows[i].self.is_tested && !rows[i].total.is_tested);
    }
    assert_null(diff_find_above(diff, 0.03, &part, &is_visible));
    assert_false(is_visible);
    (void)diff_free(diff);
}

/* Without a build-id nothing says that it is the same build. */
TEST(does_not_match_addresses_without_a_build_id)
{
    static const char bare[] = "name 7 0 0 app; module 7 1 /bin/app; mmap 0 7 1 0x1000 0x1000 0";
    struct diff *diff = compare(&options, make(bare, 3, 0), make(bare, 3, 0));
    size_t count = 0;
    const struct diff_row *rows = diff_rows(diff, &count);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        assert_true(rows[i].is_unmatched && !rows[i].total.is_tested);
    }
    (void)diff_free(diff);
}

/* The path of a module may be another, and each recording has its own numbers. */
TEST(matches_a_module_that_was_moved)
{
    static const char moved[] =
        "name 7 0 0 app; module 7 1 /old/app 0xcd; mmap 0 7 1 0x1000 0x1000 0;"
        "symbol cd /old/app 32 rest; symbol cd /old/app 16 work; symbol cd /old/app 0 main";
    struct diff *diff = compare(&options, make(moved, 3, 0), make(MODULE, 3, 0));
    size_t count = 0;
    (void)diff_rows(diff, &count);
    assert_int_equal(count, 3);
    assert_true(find(diff, "work")->self.change == 0);
    (void)diff_free(diff);
}

/* A stack is a function as it is called: work below main and work alone are two. */
TEST(tells_stacks_apart)
{
    struct diff_options by_stack = options;
    by_stack.by = DIFF_BY_STACK;
    struct recording *recording = recording_of(MODULE);
    add_lines(recording, "sample 1000 7 1 " WORK " " MAIN "; sample 2000 7 1 " WORK
                         "; sample 3000 7 2 " WORK " " MAIN);
    struct diff *diff = compare(&by_stack, load_recording(recording), make(MODULE, 6, 0));
    EXPECT_PRINTED("[truncated] > main > work", {
        size_t count = 0;
        const struct diff_row *rows = diff_rows(diff, &count);
        char *text = NULL;
        size_t text_bytes = 0;
        FILE *table = open_memstream(&text, &text_bytes);
        const struct page page = {.file = table, .columns = PAGE_UNLIMITED};
        assert_int_equal(count, 6); /* main, its work, work, and those below [truncated] */
        assert_true(rows[0].total.samples[DIFF_AFTER] == A_SIDE * 600);
        assert_int_equal(diff_print_table(&page, diff, 0), 0);
        assert_int_equal(fclose(table), 0);
        const char *path = strstr(text, "[truncated] > main > work");
        assert_non_null(path);
        (void)fprintf(file, "%.*s", 25, path);
        free(text);
    });
    (void)diff_free(diff);
}

/* Prints a comparison on a page of 80 columns. Takes the diff; returned: free(). */
static char *print_on_80_columns(struct diff *diff)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    const struct page page = {.file = file, .columns = PAGE_COLUMNS_DEFAULT};
    assert_int_equal(diff_print_table(&page, diff, 0), 0);
    assert_int_equal(fclose(file), 0);
    (void)diff_free(diff);
    return text;
}

#define LONG_NAME "a_function_with_a_name_that_is_longer_than_its_column"

TEST(shows_the_leaf_of_a_stack_that_is_too_long)
{
    static const struct {
        const char *stack;
        const char *expected;
    } cases[] = {
        {WORK " " REST " 0x1041 " MAIN, "  ... > rest > work  "},
        {"0x1041 " REST " " RARE " " MAIN, "  a_function_w..._its_column  "},
        {WORK, "  work  "},
    };
    struct diff_options by_stack = options;
    by_stack.by = DIFF_BY_STACK;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char line[128];
        struct recording *recording = recording_of(MODULE "; symbol ab /new/app 64 " LONG_NAME);
        (void)snprintf(line, sizeof line, "sample 1000 7 1 %s", cases[i].stack);
        add_lines(recording, line);
        char *text =
            print_on_80_columns(compare(&by_stack, load_recording(recording), make(MODULE, 3, 0)));
        assert_contains(text, cases[i].expected);
        free(text);
    }
}

/* What stands between frames may stand in the name of one. */
TEST(cuts_a_stack_between_frames_alone)
{
    struct diff_options by_stack = options;
    by_stack.by = DIFF_BY_STACK;
    struct recording *recording = recording_of(MODULE);
    add_symbol(recording, "ab", "/new/app", "64", "cut<(N > 3)>()", 16);
    add_lines(recording, "sample 1000 7 1 " WORK " 0x1041 " MAIN);
    char *text =
        print_on_80_columns(compare(&by_stack, load_recording(recording), make(MODULE, 3, 0)));
    assert_contains(text, "  ... > work  ");
    assert_null(strstr(text, " > 3)>() > work"));
    free(text);
}

/* Prints the difference of two recordings that have samples of one session, or have not. */
static char *print_alike(struct profile *before, struct profile *after, bool has_shared)
{
    struct diff *diff = compare_several(&options, before, after, 1);
    if (has_shared) {
        diff_note_shared(diff);
    }
    return print_on_80_columns(diff);
}

TEST(says_in_a_sentence_that_recordings_are_the_same)
{
    char *text = print_alike(make(MODULE, 3, 5), make(MODULE, 3, 5), true);
    assert_string_equal(text, "a and b are the same recording: 605 samples in 0.604 s, as many in "
                              "each of 4\nfunctions.\n");
    free(text);
    text = print_alike(make(MODULE, 3, 5), make(MODULE, 3, 4), true);
    assert_null(strstr(text, "the same recording"));
    assert_contains(text, " rare ");
    free(text);
    /* As many samples, elsewhere. */
    text = print_alike(make(MODULE, 3, 0), make(MODULE, 4, 0), true);
    assert_null(strstr(text, "the same recording"));
    free(text);
    /* All is alike, of another session. */
    text = print_alike(make(MODULE, 3, 5), make(MODULE, 3, 5), false);
    assert_null(strstr(text, "the same recording"));
    free(text);
}

TEST(says_that_recordings_share_hardly_anything)
{
    static const char other[] =
        "name 7 0 0 app; module 7 1 /new/other 0xcd; mmap 0 7 1 0x1000 0x1000 0;"
        "symbol cd /new/other 0 start; symbol cd /new/other 16 spin; symbol cd /new/other 32 rest;"
        "symbol cd /new/other 48 rare";
    char *text = print_on_80_columns(compare(&options, make(MODULE, 3, 0), make(other, 3, 0)));
    assert_contains(text, "- hardly anything is in both: rows that both sides have are 0.0 % of "
                          "the CPU");
    free(text);
    text = print_on_80_columns(compare(&options, make(MODULE, 3, 0), make(MODULE, 4, 0)));
    assert_null(strstr(text, "hardly anything"));
    free(text);
}
