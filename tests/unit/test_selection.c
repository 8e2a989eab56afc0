/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which samples are selected: times as a person writes them, and tasks.
 */
#include "made_recording.h"
#include "selection.h"

#define S UINT64_C(1000000000)

TEST(reads_offsets_times_of_the_day_and_dates)
{
    static const struct {
        const char *text;
        struct selection_time expected;
    } cases[] = {
        {"0", {.kind = SELECTION_OFFSET}},
        {"2", {.kind = SELECTION_OFFSET, .offset_ns = 2 * S}},
        {"1.5", {.kind = SELECTION_OFFSET, .offset_ns = 3 * S / 2}},
        {"1.5s", {.kind = SELECTION_OFFSET, .offset_ns = 3 * S / 2}},
        {".5", {.kind = SELECTION_OFFSET, .offset_ns = S / 2}},
        {"250ms", {.kind = SELECTION_OFFSET, .offset_ns = S / 4}},
        {"7us", {.kind = SELECTION_OFFSET, .offset_ns = 7000}},
        {"0.000000001", {.kind = SELECTION_OFFSET, .offset_ns = 1}},
        {"2.5m", {.kind = SELECTION_OFFSET, .offset_ns = 150 * S}},
        {"1h", {.kind = SELECTION_OFFSET, .offset_ns = 3600 * S}},
        {"14:05", {.kind = SELECTION_TIME_OF_DAY, .hour = 14, .minute = 5}},
        {"14:05:09.25",
         {.kind = SELECTION_TIME_OF_DAY, S / 4, .hour = 14, .minute = 5, .second = 9}},
        {"2026-01-31 14:05:09", {SELECTION_DATE, 0, 2026, 1, 31, 14, 5, 9}},
        {"2026-01-31T14:05:09", {SELECTION_DATE, 0, 2026, 1, 31, 14, 5, 9}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct selection_time time = {0};
        assert_true(selection_parse_time(cases[i].text, &time));
        assert_int_equal(time.kind, cases[i].expected.kind);
        assert_int_equal(time.offset_ns, cases[i].expected.offset_ns);
        assert_int_equal(time.hour, cases[i].expected.hour);
        assert_int_equal(time.minute, cases[i].expected.minute);
        assert_int_equal(time.second, cases[i].expected.second);
        if (time.kind == SELECTION_DATE) {
            assert_int_equal(time.year, cases[i].expected.year);
            assert_int_equal(time.month, cases[i].expected.month);
            assert_int_equal(time.day, cases[i].expected.day);
        }
    }
}

TEST(refuses_what_is_no_time)
{
    static const char *const texts[] = {
        "",
        "s",
        "-1",
        "1.",
        ".",
        "1,5",
        "1 s",
        "1d",
        "0x10",
        "1e3",
        "25:00",
        "10:60",
        "10:00:61x",
        "10:",
        "10:00:",
        "10:00.",
        "1.5.5",
        "10:00 ",
        "2026-01-31",
        "1969-01-31 10:00",
        "nan",
        "99999999999999999999",
        "1.1234567890",
        "2026-13-01 10:00",
        "9999-01-01 10:00",
        "2026-02-31 14:05",
        "2026-02-29 14:05",
        "2026-04-31T14:05",
        "99999999999h",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct selection_time time = {0};
        if (selection_parse_time(texts[i], &time)) {
            fail_msg("'%s' is taken", texts[i]);
        }
    }
}

#define TASK(pid, comm)                                                                            \
    "name " pid " 0 0 " comm "; name " pid " " pid " 0 " comm ";"                                  \
    "module " pid " 1 m; mmap 0 " pid " 1 0x1000 0x1000 0;"

/* Samples of three tasks at 1, 2, 3 and 4 s after 10:00:00 UTC on a day. */
static struct profile *three_tasks(void)
{
    struct recording *recording =
        recording_of(TASK("7", "app") TASK("8", "cc1plus") TASK("9", "cc1"));
    for (uint64_t i = 1; i <= 4; i++) {
        add_sample(recording, i * S, i == 4 ? 7 : 6 + i, COMPLETE, ADDRESSES(0x1002));
    }
    add_data(recording, FXT_STRING_SESSION,
             "{\"session\":\"1\",\"created_boot_ns\":1000000000,"
             "\"created_realtime_ns\":\"1769767200000000000\"}\n"); /* 2026-01-30 10:00:00 */
    return load_recording(recording);
}

/* Frees the profile. Where nothing is expected the selection is refused. */
static void assert_selected(struct profile *profile, const struct selection *selection,
                            size_t expected)
{
    struct fault fault = {0};
    assert_int_equal(selection_apply(selection, profile, &fault), expected == 0 ? -ESRCH : 0);
    assert_int_equal(profile->sample_count, expected == 0 ? 4 : expected);
    assert_int_equal(profile->unselected_count, expected == 0 ? 0 : 4 - expected);
    (void)profile_free(profile);
}

static struct selection between(const char *from, const char *to)
{
    struct selection selection = {0};
    assert_true(from == NULL || selection_parse_time(from, &selection.from));
    assert_true(to == NULL || selection_parse_time(to, &selection.to));
    return selection;
}

TEST(selects_by_time_with_the_end_left_out)
{
    static const struct {
        const char *from;
        const char *to;
        size_t expected;
    } cases[] = {
        {NULL, NULL, 4},
        {"0", NULL, 4},
        {"1", NULL, 3},
        {"1.000000001", NULL, 2},
        {NULL, "1", 1},
        {"1", "3", 2},
        {"500ms", "2500ms", 2},
        {"100", NULL, 0},
        {"10:00:01", NULL, 3},
        {"10:00:01", "10:00:02.5", 2},
        {"2026-01-30 10:00:02", NULL, 2},
        {"2026-01-31 10:00", NULL, 0},
        {"2026-01-29 10:00", "2026-01-31 10:00", 4},
    };
    (void)setenv("TZ", "UTC", 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct selection selection = between(cases[i].from, cases[i].to);
        assert_selected(three_tasks(), &selection, cases[i].expected);
    }
}

/* Sampled for 3.5 s. What is selected by process is as long. */
TEST(says_when_the_selected_part_began_and_how_long_it_is)
{
    static const struct {
        const char *from;
        const char *to;
        uint64_t pid;
        uint64_t begin_ns;
        uint64_t length_ns;
    } cases[] = {
        {NULL, NULL, 0, 0, 3500000000},
        {NULL, NULL, 7, 0, 3500000000},
        {"0.5", "3", 0, 500000000, 2500000000},
        {"1", NULL, 0, S, 2500000000},
        {NULL, "1", 0, 0, S},
        {"2.5", "100", 0, 2500000000, S},
        {"1", "3", 8, S, 2 * S},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct profile *profile = three_tasks();
        struct selection selection = between(cases[i].from, cases[i].to);
        struct fault fault = {0};
        selection.pids[0] = cases[i].pid;
        selection.pid_count = cases[i].pid == 0 ? 0 : 1;
        assert_true(profile->session_times[0].has_samples);
        profile->session_times[0].length_ns = 3500000000;
        assert_int_equal(selection_apply(&selection, profile, &fault), 0);
        const struct profile_span span = profile_span(profile);
        assert_int_equal(span.begin_ns, S + cases[i].begin_ns);
        assert_int_equal(span.length_ns, cases[i].length_ns);
        (void)profile_free(profile);
    }
}

TEST(takes_a_time_of_the_day_for_the_one_around_the_recording)
{
    static const struct {
        const char *zone;
        const char *from;
        const char *to;
        size_t expected;
    } cases[] = {
        {"UTC+10", "23:59:59", "00:00:02", 2}, /* it began at midnight there */
        {"UTC-14", "23:59:59", NULL, 4},
        {"UTC-13:59:58", "23:59:59", "00:00:01", 2}, /* there it went on past it */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)setenv("TZ", cases[i].zone, 1);
        const struct selection selection = between(cases[i].from, cases[i].to);
        assert_selected(three_tasks(), &selection, cases[i].expected);
    }
}

TEST(refuses_what_ends_before_it_begins)
{
    struct fault fault = {0};
    struct profile *profile = three_tasks();
    const struct selection selection = between("2", "1");
    assert_int_equal(selection_apply(&selection, profile, &fault), -EINVAL);
    assert_int_equal(profile->sample_count, 4);
    (void)profile_free(profile);
}

TEST(selects_tasks_that_match_one_name_or_number)
{
    const struct selection by_pid = {.pids = {7, 9}, .pid_count = 2};
    const struct selection by_tid = {.tids = {8}, .tid_count = 1};
    const struct selection by_comm = {.comms = {"cc1*"}, .comm_count = 1};
    const struct selection by_either = {
        .pids = {7}, .pid_count = 1, .comms = {"cc1"}, .comm_count = 1};
    const struct selection by_none = {.comms = {"CC1"}, .comm_count = 1};
    assert_selected(three_tasks(), &by_pid, 3);
    assert_selected(three_tasks(), &by_tid, 1);
    assert_selected(three_tasks(), &by_comm, 2);
    assert_selected(three_tasks(), &by_either, 3);
    assert_selected(three_tasks(), &by_none, 0);
}

/* A sample in a library that the program called, one in the program, two in neither. */
static struct profile *two_modules(void)
{
    return load_recording(
        recording_of("name 7 0 0 app; module 7 1 /bin/app; module 7 2 /lib/libm.so.6;"
                     "mmap 0 7 1 0x1000 0x1000 0; mmap 0 7 2 0x5000 0x1000 0;"
                     "sample 1 7 1 0x5002 0x1002; sample 2 7 1 0x1002; sample 3 7 1 0x9000 0x1002;"
                     "sample 4 7 1 0x9000"));
}

TEST(selects_samples_by_the_module_of_their_innermost_frame)
{
    static const struct {
        const char *globs[2];
        size_t expected;
    } cases[] = {
        {{"libm.so.6"}, 1},
        {{"/lib/libm.so.6"}, 1},
        {{"libm*"}, 1},
        {{"app"}, 1},
        {{"app", "libm*"}, 2},
        {{"[unknown]"}, 2},
        {{"[unknown]", "*app"}, 3},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct selection selection = {
            .modules = {cases[i].globs[0], cases[i].globs[1]},
            .module_count = cases[i].globs[1] == NULL ? 1 : 2,
        };
        assert_selected(two_modules(), &selection, cases[i].expected);
    }
    /* Both have to be so. */
    const struct selection none = {
        .modules = {"app"}, .module_count = 1, .pids = {8}, .pid_count = 1};
    assert_selected(two_modules(), &none, 0);
}

TEST(says_what_there_is_where_nothing_is_selected)
{
    static const struct {
        struct selection selection;
        const char *expected;
    } cases[] = {
        {{.pids = {12}, .pid_count = 1},
         "no sample is of -p 12; most are of app (7), cc1plus (8), cc1 (9)"},
        {{.tids = {12}, .tid_count = 1},
         "no sample is of -t 12; most are of app (7), cc1plus (8), cc1 (9)"},
        {{.comms = {"cc1pls"}, .comm_count = 1},
         "no sample is of --comm 'cc1pls'; did you mean 'cc1plus'? Most are of app, cc1plus, cc1"},
        {{.comms = {"nosuch"}, .comm_count = 1, .uids = {4}, .uid_count = 1},
         "no sample is of -u 4 or --comm 'nosuch'; most are of app, cc1plus, cc1"},
        {{.uids = {4}, .uid_count = 1},
         "no sample is of -u 4; profctl report --by user lists what there is"},
        {{.uids = {4}, .uid_count = 1, .event = "off-cpu"},
         "no sample is of -u 4; profctl report --by user --event off-cpu lists what there is"},
        {{.cgroups = {"/x"}, .cgroup_count = 1},
         "no sample is of -G '/x'; profctl report --by unit lists what there is"},
        {{.from = {.kind = SELECTION_OFFSET, .offset_ns = 9 * S}},
         "no sample is between these times; those that would be selected are from 0.000 s to "
         "3.000 s"},
        {{.from = {.kind = SELECTION_OFFSET, .offset_ns = 2 * S}, .pids = {8}, .pid_count = 1},
         "no sample is between these times; those that would be selected are from 1.000 s to "
         "1.000 s"},
        {{.from = {.kind = SELECTION_OFFSET, .offset_ns = 9 * S}, .pids = {12}, .pid_count = 1},
         "no sample is of -p 12; most are of app (7), cc1plus (8), cc1 (9)"},
        {{.pids = {12}, .pid_count = 1, .modules = {"m"}, .module_count = 1},
         "no sample is of -p 12 and --module 'm'; most are of app (7), cc1plus (8), cc1 (9)"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fault fault = {0};
        struct profile *profile = three_tasks();
        assert_int_equal(selection_apply(&cases[i].selection, profile, &fault), -ESRCH);
        assert_string_equal(fault.text, cases[i].expected);
        (void)profile_free(profile);
    }
    /* A profile without a sample has none to select, which is no fault of the selection's. */
    struct profile *empty = load_recording(recording_of(TASK("7", "app")));
    assert_int_equal(selection_apply(&cases[0].selection, empty, NULL), 0);
    (void)profile_free(empty);
}

TEST(refuses_a_module_that_no_sample_was_in)
{
    struct fault fault = {0};
    struct profile *profile = two_modules();
    const struct selection selection = {.modules = {"libc*"}, .module_count = 1};
    assert_int_equal(selection_apply(&selection, profile, &fault), -ESRCH);
    assert_string_equal(fault.text, "no sample was in a module 'libc*'; profctl report --by module "
                                    "lists them");
    assert_int_equal(profile->sample_count, 4);
    (void)profile_free(profile);
}

TEST(refuses_a_time_of_the_day_that_the_recording_does_not_know)
{
    struct fault fault = {0};
    struct profile *profile = load_recording(recording_of(TASK("7", "app") "sample 1 7 1 0x1002;"));
    const struct selection selection = between("10:00", NULL);
    assert_int_equal(selection_apply(&selection, profile, &fault), -ENODATA);
    assert_int_equal(profile->sample_count, 1);
    (void)profile_free(profile);
}

/* Times that only a hostile recording has, whose sums are no times. */
TEST(refuses_a_time_of_the_day_where_the_recordings_clocks_cannot_be)
{
    static const struct {
        const char *session;
        const char *from;
    } cases[] = {
        {"{\"created_boot_ns\":0,\"created_realtime_ns\":\"9223372036854775807\"}\n", "10:00"},
        {"{\"created_boot_ns\":0,\"created_realtime_ns\":\"9223372034854775807\"}\n", "10:00"},
        {"{\"created_boot_ns\":\"9223372036854775807\",\"created_realtime_ns\":0}\n",
         "2200-01-01 10:00"},
    };
    (void)setenv("TZ", "UTC", 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fault fault = {0};
        struct recording *recording = recording_of(TASK("7", "app") "sample 1000000000 7 1 0x1002");
        add_data(recording, FXT_STRING_SESSION, cases[i].session);
        struct profile *profile = load_recording(recording);
        const struct selection selection = between(cases[i].from, NULL);
        assert_int_equal(selection_apply(&selection, profile, &fault), -ENODATA);
        (void)profile_free(profile);
    }
}
