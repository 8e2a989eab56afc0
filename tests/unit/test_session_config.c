/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Session configs: the files of tests/data/session_config, the examples that are shipped, the
 * defaults, and that the shipped schema says what the parser does.
 */
#include "cleanup.h"
#include "config_files.h"
#include "json.h"
#include "session_config.h"

#define CONFIG_DIR TEST_DATA_DIR "/../../config"

static const enum session_unwind unwind_default = SESSION_UNWIND_DEFAULT;

static int parse(const char *text, struct session_config *config, struct fault *fault)
{
    return session_config_parse(text, strlen(text), false, config, fault);
}

static void assert_equal_configs(const struct session_config *a, const struct session_config *b)
{
    assert_int_equal(a->period_ns, b->period_ns);
    assert_int_equal(a->max_stack_depth, b->max_stack_depth);
    assert_int_equal(a->unwind, b->unwind);
    assert_int_equal(a->stack_copy_bytes, b->stack_copy_bytes);
    assert_int_equal(a->kernel_stacks, b->kernel_stacks);
    assert_int_equal(a->kernel_threads, b->kernel_threads);
    assert_int_equal(a->exclude_self, b->exclude_self);
    assert_int_equal(a->buffer_kib_per_cpu, b->buffer_kib_per_cpu);
    assert_int_equal(a->max_duration_s, b->max_duration_s);
    assert_memory_equal(&a->off_cpu, &b->off_cpu, sizeof a->off_cpu);
    assert_memory_equal(&a->targets, &b->targets, sizeof a->targets);
    assert_int_equal(a->events.count, b->events.count);
    assert_int_equal(a->events.clock_is_asked, b->events.clock_is_asked);
    for (size_t i = 0; i < a->events.count; i++) {
        assert_string_equal(a->events.all[i].name, b->events.all[i].name);
        assert_int_equal(a->events.all[i].period, b->events.all[i].period);
        assert_int_equal(a->events.all[i].frequency_hz, b->events.all[i].frequency_hz);
        assert_int_equal(a->events.all[i].code.config, b->events.all[i].code.config);
        assert_int_equal(a->events.all[i].is_follower, b->events.all[i].is_follower);
        assert_int_equal(a->events.all[i].leader, b->events.all[i].leader);
    }
}

/* What is accepted is the same after it was printed. */
static int parse_and_print(const char *text, size_t bytes, struct fault *reterr)
{
    struct session_config config;
    struct session_config again;
    int r = session_config_parse(text, bytes, false, &config, reterr);
    if (r == 0) {
        cleanup_(freep) char *printed = session_config_print(&config);
        assert_non_null(printed);
        assert_int_equal(parse(printed, &again, reterr), 0);
        assert_equal_configs(&config, &again);
    }
    return r;
}

TEST(accepts_the_accepted)
{
    expect_verdicts(TEST_DATA_DIR "/session_config/accepted", parse_and_print);
}

TEST(refuses_the_refused_with_the_expected_line)
{
    expect_verdicts(TEST_DATA_DIR "/session_config/refused", parse_and_print);
}

TEST(accepts_the_examples_that_are_shipped)
{
    expect_verdicts(CONFIG_DIR "/examples", parse_and_print);
}

static cJSON *read_schema(void)
{
    size_t bytes = 0;
    cJSON *schema = NULL;
    char *text = read_config_file(CONFIG_DIR "/session.schema.json", &bytes);
    assert_int_equal(json_parse(text, bytes, 16, &schema, NULL), 0);
    free(text);
    return schema;
}

static void expect_printed(const char *text, const char *expected)
{
    struct session_config config;
    assert_int_equal(parse(text, &config, NULL), 0);
    cleanup_(freep) char *printed = session_config_print(&config);
    assert_string_equal(printed, expected);
}

TEST(fills_in_defaults)
{
    const bool fp = unwind_default == SESSION_UNWIND_FP;
    char expected[256];
    (void)snprintf(expected, sizeof expected,
                   "{\"sample_period_ns\":1002001,\"max_stack_depth\":127,\"unwind\":\"%s\",%s"
                   "\"kernel_stacks\":false,\"kernel_threads\":true,\"exclude_self\":true,"
                   "\"buffer_kib_per_cpu\":15000}",
                   fp ? "fp" : "auto", fp ? "" : "\"stack_copy_bytes\":65000,");
    expect_printed("{}", expected);
}

#define ALL_BUT_THE_RATE                                                                            \
    "\"max_stack_depth\":20,\"unwind\":\"cfi\",\"stack_copy_bytes\":4096,\"kernel_stacks\":true,"   \
    "\"kernel_threads\":false,\"targets\":{\"pids\":[11,12],\"tids\":[13],\"uids\":[0,4294967294]," \
    "\"comms\":[\"a*\",\"b\"],\"cgroups\":[\"/c\"],\"units\":[\"d.service\"]},"                     \
    "\"events\":[{\"event\":\"faults:u\",\"period\":7},{\"event\":\"cs\",\"frequency_hz\":9,"       \
    "\"followers\":[\"task-clock\",\"cycles:k\"]}],"                                                \
    "%s\"exclude_self\":false,%s\"buffer_kib_per_cpu\":777,\"max_duration_s\":9}"

/* Waits and a part of the CPUs exclude each other. */
TEST(reads_every_member)
{
    static const struct {
        const char *off_cpu;
        const char *cpus;
    } cases[] = {
        {"\"off_cpu\":{\"min_wait_us\":5,\"max_cost_percent\":7},", ""},
        {"", "\"cpus\":\"0-1\","},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        char expected[1024];
        (void)snprintf(text, sizeof text, "{\"frequency_hz\":3," ALL_BUT_THE_RATE, cases[i].off_cpu,
                       cases[i].cpus);
        (void)snprintf(expected, sizeof expected,
                       "{\"sample_period_ns\":333617567," ALL_BUT_THE_RATE, cases[i].off_cpu,
                       cases[i].cpus);
        expect_printed(text, expected);
    }
}

/* A follower is an event of its own, behind its leader, and has neither a rate nor a period. */
TEST(puts_followers_behind_their_leaders)
{
    static const char text[] =
        "{\"events\":[{\"event\":\"cycles\",\"period\":7,"
        "\"followers\":[\"instructions\",\"cache-misses\"]},{\"event\":\"cpu-clock\","
        "\"followers\":[\"faults\"]},{\"event\":\"cs\",\"followers\":[\"branches\"]}]}";
    static const struct {
        const char *name;
        bool is_follower;
        uint32_t leader;
    } expected[] = {
        {"cpu-clock", false, 0},   {"cycles", false, 0}, {"instructions", true, 1},
        {"cache-misses", true, 1}, {"faults", true, 0},  {"cs", false, 0},
        {"branches", true, 5},
    };
    struct session_config config;
    assert_int_equal(parse(text, &config, NULL), 0);
    assert_int_equal(config.events.count, COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const struct session_event *event = &config.events.all[i];
        assert_string_equal(event->name, expected[i].name);
        assert_int_equal(event->is_follower, expected[i].is_follower);
        assert_int_equal(event->leader, expected[i].leader);
        if (event->is_follower) {
            assert_int_equal(event->period + event->frequency_hz, 0);
        }
    }
}

TEST(sizes_the_default_buffer_by_rate_and_duration)
{
    static const struct {
        const char *text;
        uint32_t kib;
    } cases[] = {
        {"{\"frequency_hz\":4000}", 60061},
        {"{\"frequency_hz\":4000,\"max_duration_s\":30}", 30031},
        {"{\"frequency_hz\":4000,\"max_duration_s\":61}", 60061},
        {"{\"frequency_hz\":100000}", 1501502},
        {"{\"frequency_hz\":1}", 8192},
        {"{\"max_duration_s\":1}", 8192},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct session_config config;
        assert_int_equal(parse(cases[i].text, &config, NULL), 0);
        assert_int_equal(config.buffer_kib_per_cpu, cases[i].kib);
    }
}

/* Whatever period the rate comes to: one that was asked to hold 30 s is not to be read before. */
TEST(sizes_the_default_buffer_for_all_of_the_duration)
{
    for (uint32_t hz = 1; hz <= SESSION_FREQUENCY_HZ_MAX; hz += hz < 5000 ? 7 : 1777) {
        struct session_config config;
        char text[64];
        (void)snprintf(text, sizeof text, "{\"frequency_hz\":%u,\"max_duration_s\":30}", hz);
        assert_int_equal(parse(text, &config, NULL), 0);
        uint64_t samples = (uint64_t)config.buffer_kib_per_cpu * 1024 / SESSION_SAMPLE_BYTES;
        assert_true(samples * config.period_ns >= 30 * UINT64_C(1000000000));
    }
}

TEST(copies_of_stacks_by_rate)
{
    static const struct {
        const char *text;
        uint32_t bytes;
    } cases[] = {
        {"{\"unwind\":\"auto\"}", 65000},
        {"{\"unwind\":\"cfi\"}", 65000},
        {"{\"unwind\":\"fp\"}", 0},
        {"{\"unwind\":\"fp\",\"frequency_hz\":4000}", 0},
        {"{\"unwind\":\"auto\",\"frequency_hz\":1}", 65000},
        {"{\"unwind\":\"auto\",\"frequency_hz\":1015}", 65000},
        {"{\"unwind\":\"auto\",\"frequency_hz\":1016}", 32768},
        {"{\"unwind\":\"auto\",\"frequency_hz\":2014}", 32768},
        {"{\"unwind\":\"auto\",\"frequency_hz\":2015}", 16384},
        {"{\"unwind\":\"auto\",\"frequency_hz\":4000}", 16384},
        {"{\"unwind\":\"auto\",\"sample_period_ns\":248243}", 16384},
        {"{\"unwind\":\"auto\",\"sample_period_ns\":248242}", 8192},
        {"{\"unwind\":\"auto\",\"frequency_hz\":100000}", 8192},
        {"{\"unwind\":\"auto\",\"frequency_hz\":4000,\"stack_copy_bytes\":65000}", 65000},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct session_config config;
        assert_int_equal(parse(cases[i].text, &config, NULL), 0);
        if (config.stack_copy_bytes != cases[i].bytes) {
            fail_msg("%s gives %u", cases[i].text, config.stack_copy_bytes);
        }
    }
}

/* All that changes with SESSION_UNWIND_DEFAULT beside the default itself. */
TEST(takes_a_size_of_copies_alone_if_copies_are_the_default)
{
    cleanup_(json_freep) cJSON *schema = read_schema();
    const cJSON *dependent = cJSON_GetObjectItem(schema, "dependentSchemas");
    bool fp = unwind_default == SESSION_UNWIND_FP;
    struct session_config config;
    assert_int_equal(parse("{\"stack_copy_bytes\":8192}", &config, NULL), fp ? -EINVAL : 0);
    dependent = cJSON_GetObjectItem(dependent, "stack_copy_bytes");
    assert_int_equal(cJSON_HasObjectItem(dependent, "required"), fp);
}

TEST(leaves_the_output_alone_when_it_refuses)
{
    struct session_config config;
    struct session_config before;
    memset(&config, 0x5a, sizeof config);
    memset(&before, 0x5a, sizeof before);
    assert_int_equal(parse("{\"targets\":{\"pids\":[1,2,0]}}", &config, NULL), -EINVAL);
    assert_memory_equal(&config, &before, sizeof config);
}

TEST(refuses_a_text_that_is_too_long)
{
    size_t bytes = SESSION_CONFIG_BYTES_MAX + 1;
    char *text = malloc(bytes);
    struct session_config config;
    struct fault fault = {0};
    assert_non_null(text);
    memset(text, ' ', bytes);
    text[0] = '{';
    text[1] = '}';
    assert_int_equal(session_config_parse(text, bytes, false, &config, &fault), -EINVAL);
    assert_string_equal(fault.text, "has 65537 bytes; at most 65536 are allowed");
    assert_int_equal(session_config_parse(text, bytes - 1, false, &config, &fault), 0);
    free(text);
}

static bool takes_integer(const char *member, double value)
{
    struct session_config config;
    char text[128];
    (void)snprintf(text, sizeof text, "{\"unwind\":\"auto\",\"%s\":%.0f}", member, value);
    return parse(text, &config, NULL) == 0;
}

TEST(takes_the_ranges_of_the_schema)
{
    cleanup_(json_freep) cJSON *schema = read_schema();
    const cJSON *member = NULL;
    unsigned count = 0;
    cJSON_ArrayForEach(member, cJSON_GetObjectItem(schema, "properties"))
    {
        const cJSON *minimum = cJSON_GetObjectItem(member, "minimum");
        const cJSON *maximum = cJSON_GetObjectItem(member, "maximum");
        const cJSON *multiple = cJSON_GetObjectItem(member, "multipleOf");
        double step = multiple == NULL ? 1 : multiple->valuedouble;
        if (minimum == NULL) {
            continue;
        }
        count++;
        assert_true(takes_integer(member->string, minimum->valuedouble));
        assert_false(takes_integer(member->string, minimum->valuedouble - step));
        assert_int_equal(takes_integer(member->string, minimum->valuedouble + 1), multiple == NULL);
        assert_true(takes_integer(member->string, maximum->valuedouble));
        assert_false(takes_integer(member->string, maximum->valuedouble + step));
    }
    assert_int_equal(count, 6);
}

/* A default that the schema gives, written out, changes nothing. */
TEST(has_the_defaults_of_the_schema)
{
    cleanup_(json_freep) cJSON *schema = read_schema();
    struct session_config by_default;
    const cJSON *member = NULL;
    unsigned count = 0;
    assert_int_equal(parse("{}", &by_default, NULL), 0);
    cJSON_ArrayForEach(member, cJSON_GetObjectItem(schema, "properties"))
    {
        const cJSON *value = cJSON_GetObjectItem(member, "default");
        struct session_config config;
        char text[128];
        if (value == NULL) {
            continue;
        }
        count++;
        cleanup_(freep) char *printed = cJSON_PrintUnformatted(value);
        (void)snprintf(text, sizeof text, "{\"%s\":%s}", member->string, printed);
        assert_int_equal(parse(text, &config, NULL), 0);
        assert_equal_configs(&config, &by_default);
    }
    assert_int_equal(count, 7);
}

TEST(knows_the_members_of_the_schema_and_no_other)
{
    cleanup_(json_freep) cJSON *schema = read_schema();
    const cJSON *member = NULL;
    struct session_config config;
    struct fault fault = {0};
    char list[320] = "is not a member of the config; allowed are ";
    cJSON_ArrayForEach(member, cJSON_GetObjectItem(schema, "properties"))
    {
        (void)strncat(list, member->string, sizeof list - strlen(list) - 1);
        (void)strncat(list, member->next == NULL ? "" : ", ", sizeof list - strlen(list) - 1);
    }
    assert_int_equal(parse("{\"other\":1}", &config, &fault), -EINVAL);
    assert_string_equal(fault.text, list);
}

/* The session's record of the file has 32,000 bytes for it and some words about the host. */
TEST(prints_the_longest_targets_within_a_record)
{
    static struct session_config config;
    assert_int_equal(parse("{\"unwind\":\"auto\"}", &config, NULL), 0);
    struct session_targets *targets = &config.targets;
    targets->pid_count = SESSION_PIDS_MAX;
    targets->tid_count = SESSION_TIDS_MAX;
    targets->uid_count = SESSION_UIDS_MAX;
    targets->comm_count = SESSION_COMMS_MAX;
    targets->cgroup_count = SESSION_CGROUPS_MAX;
    targets->unit_count = SESSION_UNITS_MAX;
    for (size_t i = 0; i < SESSION_PIDS_MAX; i++) {
        targets->pids[i] = SESSION_PID_LIMIT;
        targets->tids[i % SESSION_TIDS_MAX] = SESSION_PID_LIMIT;
        targets->uids[i % SESSION_UIDS_MAX] = SESSION_UID_MAX;
    }
    /* These are escaped, and nothing else that is allowed. */
    for (size_t i = 0; i < SESSION_COMMS_MAX; i++) {
        memset(targets->comms[i], '\\', SESSION_COMM_BYTES_MAX);
    }
    for (size_t i = 0; i < SESSION_CGROUPS_MAX; i++) {
        memset(targets->cgroups[i], '"', SESSION_CGROUP_BYTES_MAX);
        targets->cgroups[i][0] = '/';
    }
    for (size_t i = 0; i < SESSION_UNITS_MAX; i++) {
        memset(targets->units[i], '\\', UNIT_GLOB_BYTES_MAX);
        targets->units[i][0] = '.';
    }
    cleanup_(freep) char *printed = session_config_print(&config);
    struct session_config again;
    assert_in_range(strlen(printed), 28000, 30500);
    assert_int_equal(parse(printed, &again, NULL), 0);
    assert_equal_configs(&config, &again);
}
