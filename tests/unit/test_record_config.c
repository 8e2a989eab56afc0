/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How options become a config, and go over one from a file.
 */
#include "profctl.h"
#include "record.h"
#include "record_config.h"
#include "unit_test.h"

#include <errno.h>

TEST(puts_options_over_the_file)
{
    static const struct {
        const char *base;
        struct record_request request;
        pid_t child;
        const char *expected;
    } cases[] = {
        {NULL, {0}, 0, "{}"},
        {NULL, {.frequency_hz = 4000}, 0, "{\"frequency_hz\":4000}"},
        {NULL, {.kernel_stacks = true}, 0, "{\"kernel_stacks\":true}"},
        {NULL, {.no_kernel_stacks = true}, 0, "{\"kernel_stacks\":false}"},
        {"{\"kernel_stacks\":true}", {.no_kernel_stacks = true}, 0, "{\"kernel_stacks\":false}"},
        {NULL, {0}, 42, "{\"targets\":{\"pids\":[42]}}"},
        {NULL, {.whole_machine = true}, 42, "{}"},
        {"{\"max_stack_depth\":5}",
         {.frequency_hz = 7},
         0,
         "{\"max_stack_depth\":5,\"frequency_hz\":7}"},
        {"{\"max_duration_s\":5}", {.max_duration_s = 7}, 0, "{\"max_duration_s\":7}"},
        {"{\"sample_period_ns\":10000}", {.frequency_hz = 7}, 0, "{\"frequency_hz\":7}"},
        {"{\"sample_period_ns\":10000}", {0}, 0, "{\"sample_period_ns\":10000}"},
        {"{\"kernel_stacks\":false}", {.kernel_stacks = true}, 0, "{\"kernel_stacks\":true}"},
        {NULL, {.has_waits = true}, 0, "{\"off_cpu\":{}}"},
        {NULL, {.min_wait_us = 7}, 0, "{\"off_cpu\":{\"min_wait_us\":7}}"},
        {"{\"off_cpu\":false}", {.has_waits = true}, 0, "{\"off_cpu\":{}}"},
        {"{\"off_cpu\":{\"min_wait_us\":5,\"max_cost_percent\":9}}",
         {.min_wait_us = 7},
         0,
         "{\"off_cpu\":{\"max_cost_percent\":9,\"min_wait_us\":7}}"},
        {"{\"off_cpu\":{\"min_wait_us\":5}}",
         {.has_waits = true},
         0,
         "{\"off_cpu\":{\"min_wait_us\":5}}"},
        {"{\"targets\":{\"pids\":[1]}}", {0}, 0, "{\"targets\":{\"pids\":[1]}}"},
        {"{\"targets\":{\"pids\":[1]}}", {.whole_machine = true}, 0, "{}"},
        {"{\"targets\":{\"pids\":[1]}}", {.whole_machine = true}, 42, "{}"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *text = NULL;
        assert_int_equal(
            record_config_build(cases[i].base, &cases[i].request, cases[i].child, &text, NULL), 0);
        assert_string_equal(text, cases[i].expected);
        free(text);
    }
}

TEST(names_the_option_that_was_given_for_a_member)
{
    static cJSON given;
    static const struct {
        struct record_request request;
        const char *text;
        const char *expected;
    } cases[] = {
        {{.has_waits = true}, "off_cpu: is not allowed", "--wall: is not allowed"},
        {{.min_wait_us = 7}, "off_cpu: is not allowed", "--min-wait: is not allowed"},
        {{.frequency_hz = 7}, "off_cpu: is not allowed", NULL},
        {{.frequency_hz = 7}, "frequency_hz: is too high: by 1", "-F: is too high: by 1"},
        {{.max_duration_s = 7}, "max_duration_s: is too long", "-d: is too long"},
        {{.frequency_hz = 7}, "max_duration_s: is too long", NULL},
        {{.kernel_stacks = true}, "kernel_stacks: are kept", "--kernel: are kept"},
        {{.no_kernel_stacks = true}, "kernel_stacks: are kept", NULL},
        {{.events = &given}, "events: has 'cs'", "-e: has 'cs'"},
        {{.events = &given}, "events[1].event: is too long", "-e: is too long"},
        {{.events = &given}, "eventsful: is none", NULL},
        {{.has_waits = true}, "a session is there", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct profctl_fault fault = {.code = EINVAL};
        (void)snprintf(fault.text, sizeof fault.text, "%s", cases[i].text);
        record_name_option(&cases[i].request, &fault);
        assert_string_equal(fault.text,
                            cases[i].expected == NULL ? cases[i].text : cases[i].expected);
        assert_int_equal(fault.code, EINVAL);
    }
}

TEST(puts_targets_of_options_in_place_of_the_files)
{
    static const char *const bases[] = {NULL, "{}", "{\"targets\":{\"pids\":[1],\"uids\":[2]}}"};
    cJSON *targets = cJSON_Parse("{\"comms\":[\"a*\"]}");
    const struct record_request request = {.targets = targets};
    for (size_t i = 0; i < COUNT_OF(bases); i++) {
        char *text = NULL;
        assert_int_equal(record_config_build(bases[i], &request, 0, &text, NULL), 0);
        assert_string_equal(text, "{\"targets\":{\"comms\":[\"a*\"]}}");
        free(text);
    }
    cJSON_Delete(targets);
}

static const struct verb_option target_options[] = {TARGET_OPTIONS, {0}};
static const struct command_line line = {.usage = "a test", .options = target_options};

static const struct verb_option *find_option(const char *name)
{
    const struct verb_option *option = target_options;
    while (option->name == NULL || strcmp(option->name, name) != 0) {
        option++;
        assert_non_null(option->help);
    }
    return option;
}

/* The targets after some options, as JSON; a message where one is refused. */
static char *take(const char *const *options, const char *const *values, size_t count)
{
    cJSON *targets = NULL;
    int status = EXIT_DONE;
    for (size_t i = 0; i < count && status == EXIT_DONE; i++) {
        const struct verb_option *option = find_option(options[i]);
        status = option->take(&line, option, values[i], &targets);
    }
    char *text = status == EXIT_DONE ? cJSON_PrintUnformatted(targets) : strdup("refused");
    cJSON_Delete(targets);
    return text;
}

TEST(collects_targets_of_each_kind)
{
    static const char *const options[] = {"pid", "tid", "pid", "uid", "comm", "cgroup", "comm"};
    static const char *const values[] = {"1,2", "3", "4194304", "0,root,7", "a,b*", "/x,y", "c"};
    char *text = take(options, values, 7);
    assert_string_equal(text, "{\"pids\":[1,2,4194304],\"tids\":[3],\"uids\":[0,0,7],"
                              "\"comms\":[\"a,b*\",\"c\"],\"cgroups\":[\"/x,y\"]}");
    free(text);
}

TEST(refuses_what_the_daemon_would)
{
    static const struct {
        const char *option;
        const char *value;
    } rows[] = {
        {"pid", "0"},
        {"pid", "4194305"},
        {"pid", ""},
        {"pid", "1,"},
        {"pid", ",1"},
        {"pid", "-1"},
        {"pid", "root"},
        {"pid", "1 2"},
        {"pid", "99999999999999999999"},
        {"tid", "0"},
        {"uid", "nobody-is-called-so"},
        {"uid", "4294967295"},
        {"uid", ""},
        {"comm", ""},
        {"comm", "a\n"},
        {"comm", "chromium-browser"},
        {"cgroup", "relative"},
        {"cgroup", ""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *text = take(&rows[i].option, &rows[i].value, 1);
        if (strcmp(text, "refused") != 0) {
            fail_msg("'%s' is taken: %s", rows[i].value, text);
        }
        free(text);
    }
}

TEST(takes_a_least_wait_with_its_unit_alone)
{
    static const struct {
        const char *value;
        uint64_t min_wait_us; /* 0: it is refused */
    } cases[] = {
        {"5us", 5}, {"1ms", 1000}, {"0.5s", 500000}, {"10s", 10000000}, {"5", 0},   {"0.001", 0},
        {"", 0},    {"us", 0},     {"0us", 0},       {"0.1us", 0},      {"11s", 0}, {"5 us", 0},
    };
    static const struct verb_option option = OPTION_MIN_WAIT;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint64_t min_wait_us = 0;
        int status = option.take(&line, &option, cases[i].value, &min_wait_us);
        assert_int_equal(status, cases[i].min_wait_us > 0 ? EXIT_DONE : EXIT_WRONG_USAGE);
        assert_int_equal(min_wait_us, cases[i].min_wait_us);
    }
}

TEST(refuses_a_file_that_is_no_object)
{
    static const char *const cases[] = {"", "[]", "1", "{", "{} {}"};
    const struct record_request request = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *text = NULL;
        struct fault fault = {0};
        assert_int_equal(record_config_build(cases[i], &request, 0, &text, &fault), -EINVAL);
        assert_null(text);
        assert_string_not_equal(fault.text, "");
    }
}

TEST(refuses_targets_beside_a_command)
{
    char *text = NULL;
    struct fault fault = {0};
    const struct record_request request = {0};
    assert_int_equal(
        record_config_build("{\"targets\":{\"pids\":[1]}}", &request, 42, &text, &fault), -EINVAL);
    assert_null(text);
    assert_contains(fault.text, "targets: cannot be combined with a command");
}

TEST(finds_the_pids_that_are_targets)
{
    static const struct {
        const char *config;
        size_t count;
    } cases[] = {
        {"{}", 0},
        {"{\"targets\":{}}", 0},
        {"{\"targets\":{\"pids\":[]}}", 0},
        {"{\"targets\":{\"pids\":[7]}}", 1},
        {"{\"targets\":{\"pids\":[7,8]}}", 2},
        {"{\"targets\":{\"pids\":[7,8,9]}}", 2},
        {"{\"targets\":{\"pids\":[0,7,\"x\",1.5]}}", 1},
        {"no JSON", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int32_t pids[2] = {0};
        assert_int_equal(record_config_pids(cases[i].config, pids, 2), cases[i].count);
        assert_int_equal(pids[0], cases[i].count > 0 ? 7 : 0);
        assert_int_equal(pids[1], cases[i].count > 1 ? 8 : 0);
    }
}
