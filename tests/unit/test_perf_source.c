/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The attributes of events that are counted together. What is switched on by whom, with a
 * descriptor that refuses: so it shows that it was asked.
 */
#include "perf_event.h"
#include "perf_source.h"
#include "unit_test.h"

#include "perf_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

TEST(no_switches_are_wanted_of_a_source_that_does_not_sample)
{
    struct perf_cpu cpu = {
        .streams[PERF_STREAM_CLOCK] = {.consumer = PERF_CONSUMER_SAMPLES, .fd = -1},
        .streams[PERF_STREAM_SWITCHES] = {.consumer = PERF_CONSUMER_SWITCHES,
                                          .fd = open("/dev/null", O_RDONLY | O_CLOEXEC)},
    };
    struct perf_source source = {
        .cpus = &cpu, .cpu_count = 1, .mutex = PTHREAD_MUTEX_INITIALIZER, .sampling = true};
    assert_true(cpu.streams[PERF_STREAM_SWITCHES].fd >= 0);
    assert_int_equal(perf_source_control_switches(&source, 0, true), -ENOTTY);
    /* A stop, while the collector is about to try them again. */
    assert_int_equal(perf_source_disable_sampling(&source), -ENOTTY);
    assert_int_equal(perf_source_control_switches(&source, 0, true), 0);
    assert_int_equal(perf_source_control_switches(&source, 0, false), -ENOTTY);
    (void)close(cpu.streams[PERF_STREAM_SWITCHES].fd);
}

TEST(knows_how_far_a_time_namespace_is_off)
{
    static const struct {
        const char *text;
        int64_t offset_ns;
    } cases[] = {
        {"monotonic           0         0\nboottime            0         0\n", 0},
        {"monotonic           7         0\nboottime          -12 500000000\n", -11500000000},
        {"monotonic           0         0\nboottime   9223372036         0\n", 9223372036000000000},
        {"boottime 9223372036854775807 0\n", INT64_MAX},
        {"boottime", 0},
        {"", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(perf_machine_parse_clock_offset(cases[i].text), cases[i].offset_ns);
    }
}

TEST(knows_from_which_step_on_a_cpu_has_tasks)
{
    assert_int_equal(perf_machine_active_step("  0: offline\n154: perf:online\n"
                                              "235: sched:active\n236: online\n"),
                     235);
    assert_int_equal(perf_machine_active_step("7: sched:active\n"), 7);
    assert_int_equal(perf_machine_active_step("x: sched:active\n"), -1);
    assert_int_equal(perf_machine_active_step("235: sched:activated\n"), -1);
    assert_int_equal(perf_machine_active_step(""), -1);
}

#define INSTRUCTIONS 1
#define CACHE_MISSES 3

/* cycles with instructions and cache-misses; and context-switches alone. */
static const struct perf_event_choice choices[] = {
    {.name = "cycles:u",
     .code = {.type = EVENT_HARDWARE, .precise = 2, .exclude_kernel = true},
     .period = 1000000,
     .stack_copy_bytes = 4096},
    {.name = "instructions",
     .code = {.type = EVENT_HARDWARE, .config = INSTRUCTIONS},
     .is_follower = true,
     .leader = 1},
    {.name = "cache-misses:k",
     .code = {.type = EVENT_HARDWARE, .config = CACHE_MISSES, .exclude_user = true},
     .is_follower = true,
     .leader = 1},
    {.name = "cs",
     .code = {.type = EVENT_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES},
     .period = 1,
     .stack_copy_bytes = 4096},
};

#define PLACES (PERF_STREAMS + COUNT_OF(choices))

/* Lists the events of these choices, of which only the first may lead. */
static void list_events(struct perf_event *events, uint32_t follower_count)
{
    const struct perf_source_config config = {.period_ns = 1000000,
                                              .events = choices,
                                              .event_count = COUNT_OF(choices),
                                              .max_stack_depth = 127};
    const struct perf_features features = {.format_lost = true};
    const struct perf_plan plan = {0};
    const struct perf_group groups[1 + PERF_EVENTS_MAX] = {[1] = {2, follower_count}};
    perf_event_list(
        &(struct perf_event_needs){
            .config = &config, .features = &features, .plan = &plan, .groups = groups},
        events);
}

TEST(a_leader_is_read_with_its_group)
{
    struct perf_event events[PLACES] = {0};
    list_events(events, 2);
    const struct perf_event *leader = &events[perf_event_place(1)];
    const struct perf_event *other = &events[perf_event_place(4)];
    assert_int_equal(leader->attr.type, PERF_TYPE_HARDWARE);
    assert_int_equal(leader->attr.config, PERF_COUNT_HW_CPU_CYCLES);
    assert_int_equal(leader->attr.sample_period, 1000000);
    assert_int_equal(leader->attr.read_format, PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                   PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID |
                                                   PERF_FORMAT_LOST | PERF_FORMAT_GROUP);
    assert_int_equal(leader->attr.sample_type & PERF_SAMPLE_READ, PERF_SAMPLE_READ);
    assert_int_equal(leader->attr.disabled, 1);
    /* One without followers is as it ever was. */
    assert_int_equal(other->attr.sample_type & PERF_SAMPLE_READ, 0);
    assert_int_equal(other->attr.read_format & PERF_FORMAT_GROUP, 0);
    assert_int_equal(other->attr.disabled, 1);
}

TEST(a_follower_counts_and_does_not_sample)
{
    struct perf_event events[PLACES] = {0};
    list_events(events, 2);
    for (uint32_t event = 2; event <= 3; event++) {
        const struct perf_event *follower = &events[perf_event_place(event)];
        const struct perf_event_attr *attr = &follower->attr;
        assert_int_equal(follower->consumer, PERF_CONSUMER_LEADER);
        assert_int_equal(follower->index, event);
        assert_int_equal(follower->leader, 1);
        assert_string_equal(follower->leader_name, "cycles:u");
        assert_int_equal(attr->type, PERF_TYPE_HARDWARE);
        assert_int_equal(attr->config, event == 2 ? INSTRUCTIONS : CACHE_MISSES);
        assert_int_equal(attr->sample_period + attr->freq + attr->sample_type, 0);
        assert_int_equal(attr->read_format, PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID |
                                                PERF_FORMAT_LOST);
        /* It is on as soon as its leader is; the kernel has one clock for a group. */
        assert_int_equal(attr->disabled, 0);
        assert_int_equal(attr->use_clockid, 1);
        assert_int_equal(attr->clockid, events[perf_event_place(1)].attr.clockid);
        assert_int_equal(attr->exclude_user, event == 3);
        assert_int_equal(attr->exclude_kernel + attr->exclude_idle + attr->precise_ip, 0);
    }
}

TEST(records_of_a_leader_have_the_words_of_its_group)
{
    struct perf_source source = {
        .layout = {.sample_type = 1},
        .rated_layout = {.sample_type = 2, .read_words = 5},
        .features = {.format_lost = true},
        .groups = {[2] = {3, 2}},
    };
    const struct perf_stream leader = {.event = 2};
    const struct perf_stream rated = {.event = 1, .is_rated = true};
    const struct perf_stream other = {.event = 1};
    assert_int_equal(perf_source_layout(&source, &leader).sample_type, 2);
    assert_int_equal(perf_source_layout(&source, &leader).read_words, 3 + 3 * 3);
    assert_int_equal(perf_source_layout(&source, &leader).follower_count, 2);
    assert_int_equal(perf_source_layout(&source, &rated).read_words, 5);
    assert_int_equal(perf_source_layout(&source, &rated).follower_count, 0);
    assert_int_equal(perf_source_layout(&source, &other).sample_type, 1);
    source.features.format_lost = false;
    assert_int_equal(perf_source_layout(&source, &leader).read_words, 3 + 3 * 2);
}

/* The clock, sideband, and the four events of the session: without switches and waits. */
TEST(says_how_many_descriptors_a_session_needs)
{
    struct perf_event events[PLACES] = {0};
    struct perf_cpu cpu = {0};
    struct rlimit limit;
    struct fault fault = {0};
    list_events(events, 2);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {0, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int r = perf_cpu_open(events, PLACES, true, NULL, &cpu, &fault);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (r != -EMFILE) {
        skip(); /* this user may open none at all */
    }
    assert_string_equal(fault.text, "no file descriptor is left for perf events, of which each "
                                    "sampled CPU needs 6: RLIMIT_NOFILE is 0; raise LimitNOFILE= "
                                    "or ulimit -n");
    (void)perf_event_fault(EMFILE, 0, &fault);
    assert_non_null(strstr(fault.text, "is left for perf events: RLIMIT_NOFILE is "));
    (void)perf_event_fault(ENFILE, 6, &fault);
    assert_string_equal(fault.text, "this machine has no open file left for perf events: raise the "
                                    "sysctl fs.file-max");
}
