/* SPDX-License-Identifier: Apache-2.0 */

/* What is switched on by whom, with a descriptor that refuses: so it shows that it was asked. */
#include "perf_source.h"
#include "unit_test.h"

#include "perf_machine.h"

#include <errno.h>
#include <fcntl.h>
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
