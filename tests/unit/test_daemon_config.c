/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The daemon's config: the files of tests/data/daemon_config, which files are trusted at all, whom
 * a config admits, and how its limits meet session configs.
 */
#include "cleanup.h"
#include "config_files.h"
#include "daemon_config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA_DIR TEST_DATA_DIR "/daemon_config"

static struct daemon_config parse_good(const char *text)
{
    struct daemon_config config;
    struct fault fault = {0};
    if (daemon_config_parse(text, strlen(text), "F", &config, &fault) != 0) {
        fail_msg("%s: %s: %s", text, fault.member, fault.text);
    }
    return config;
}

static int parse(const char *text, size_t bytes, struct fault *reterr)
{
    struct daemon_config config;
    return daemon_config_parse(text, bytes, "F", &config, reterr);
}

TEST(accepts_the_accepted)
{
    expect_verdicts(DATA_DIR "/accepted", parse);
}

TEST(refuses_the_refused_with_the_expected_line)
{
    expect_verdicts(DATA_DIR "/refused", parse);
}

/* Parses a session's config within a daemon's. */
static int parse_within(const struct session_limits *limits, const char *text, bool detached,
                        struct session_config *ret, struct fault *reterr)
{
    return session_config_parse_within(text, strlen(text), detached, limits, ret, reterr);
}

TEST(limits_nothing_by_default)
{
    struct daemon_config configs[] = {parse_good("{}"), {0}};
    daemon_config_init(&configs[1], "F");
    for (size_t i = 0; i < COUNT_OF(configs); i++) {
        assert_false(configs[i].has_allow_list);
        assert_int_equal(configs[i].limits.max_frequency_hz, 100000);
        assert_int_equal(configs[i].limits.max_stack_copy_bytes, 65000);
        assert_int_equal(configs[i].limits.max_duration_s, 0);
        assert_true(configs[i].limits.allow_kernel_stacks);
        assert_int_equal(configs[i].max_unread_s, 600);
        assert_string_equal(configs[i].limits.path, "F");
    }
}

TEST(admits_whom_a_list_names_and_root)
{
    static const gid_t gids[] = {7, 27, 9};
    static const struct {
        const char *text;
        uid_t uid;
        size_t gid_count;
        bool admitted;
    } cases[] = {
        {"{}", 1000, 0, true},
        {"{\"max_frequency_hz\":1}", 1000, 0, true},
        {"{\"allowed_uids\":[5,1000]}", 1000, 0, true},
        {"{\"allowed_uids\":[5,1000]}", 1001, 3, false},
        {"{\"allowed_uids\":[]}", 1000, 3, false},
        {"{\"allowed_uids\":[]}", 0, 0, true},
        {"{\"allowed_gids\":[]}", 1000, 3, false},
        {"{\"allowed_gids\":[]}", 0, 0, true},
        {"{\"allowed_gids\":[1000]}", 1000, 3, false},
        {"{\"allowed_uids\":[27]}", 1000, 3, false},
        {"{\"allowed_gids\":[27]}", 1000, 3, true},
        {"{\"allowed_gids\":[9]}", 1000, 3, true},
        {"{\"allowed_gids\":[9]}", 1000, 2, false},
        {"{\"allowed_uids\":[1000],\"allowed_gids\":[27]}", 1000, 0, true},
        {"{\"allowed_uids\":[1000],\"allowed_gids\":[27]}", 1001, 2, true},
        {"{\"allowed_uids\":[1000],\"allowed_gids\":[27]}", 1001, 1, false},
        {"{\"allowed_uids\":[4294967294]}", 4294967294, 0, true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct daemon_config config = parse_good(cases[i].text);
        if (daemon_config_admits(&config, cases[i].uid, gids, cases[i].gid_count) !=
            cases[i].admitted) {
            fail_msg("case %zu: %s", i, cases[i].text);
        }
    }
}

TEST(lets_defaults_give_way)
{
    static const struct {
        const char *daemon, *session;
        bool detached;
        const char *outcome; /* period, how to unwind if not "auto", copied bytes, longest time */
    } cases[] = {
        {"{}", "{}", true, "1002001 65000 600"},
        {"{\"max_frequency_hz\":500}", "{}", false, "2005958 65000 0"},
        {"{\"max_frequency_hz\":999}", "{}", false, "1002001 65000 0"},
        {"{\"max_frequency_hz\":3}", "{\"frequency_hz\":3}", false, "333617567 65000 0"},
        {"{\"max_frequency_hz\":3}", "{\"sample_period_ns\":333333333}", false,
         "333333333 65000 0"},
        {"{\"max_stack_copy_bytes\":512}", "{}", false, "1002001 512 0"},
        {"{\"max_stack_copy_bytes\":20000}", "{\"frequency_hz\":4000}", false, "249753 16384 0"},
        {"{\"max_stack_copy_bytes\":16384}", "{\"unwind\":\"cfi\",\"stack_copy_bytes\":16384}",
         false, "1002001 cfi 16384 0"},
        {"{\"max_stack_copy_bytes\":0}", "{}", false, "1002001 fp 0 0"},
        {"{\"max_stack_copy_bytes\":0}", "{\"unwind\":\"fp\"}", false, "1002001 fp 0 0"},
        {"{\"max_duration_s\":60}", "{}", false, "1002001 65000 60"},
        {"{\"max_duration_s\":60}", "{}", true, "1002001 65000 60"},
        {"{\"max_duration_s\":900}", "{}", true, "1002001 65000 600"},
        {"{\"max_duration_s\":900}", "{\"max_duration_s\":900}", true, "1002001 65000 900"},
    };
    static const char *const unwinds[] = {
        [SESSION_UNWIND_AUTO] = "", [SESSION_UNWIND_CFI] = "cfi ", [SESSION_UNWIND_FP] = "fp "};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct daemon_config daemon = parse_good(cases[i].daemon);
        struct session_config session;
        char text[64];
        assert_int_equal(
            parse_within(&daemon.limits, cases[i].session, cases[i].detached, &session, NULL), 0);
        (void)snprintf(text, sizeof text, "%d %s%u %u", (int)session.period_ns,
                       unwinds[session.unwind], session.stack_copy_bytes, session.max_duration_s);
        assert_string_equal(text, cases[i].outcome);
    }
}

/* A default buffer is for the time that the limit leaves. */
TEST(sizes_a_buffer_for_the_limited_session)
{
    struct daemon_config daemon = parse_good("{\"max_duration_s\":2,\"max_frequency_hz\":50000}");
    struct session_config session;
    assert_int_equal(
        parse_within(&daemon.limits, "{\"frequency_hz\":50000}", false, &session, NULL), 0);
    assert_int_equal(session.buffer_kib_per_cpu, 25026);
}

/* A user's session config, within what a daemon config allows. */
struct limit_case {
    const char *daemon;
    uid_t uid;
    const char *session;
    const char *line; /* NULL: it is accepted */
};

static void expect_within(const struct limit_case *expected)
{
    const struct daemon_config daemon = parse_good(expected->daemon);
    const struct session_limits limits = daemon_config_limits(&daemon, expected->uid);
    struct session_config session;
    struct fault fault = {0};
    char line[512];
    int r = parse_within(&limits, expected->session, false, &session, &fault);
    (void)snprintf(line, sizeof line, "%s: %s", fault.member, fault.text);
    print_message("%s within %s\n", expected->session, expected->daemon);
    assert_string_equal(line, expected->line == NULL ? ": " : expected->line);
    assert_int_equal(r, expected->line == NULL ? 0 : -EINVAL);
}

TEST(refuses_what_is_above_a_limit)
{
    static const struct limit_case cases[] = {
        {"{\"max_frequency_hz\":500}", 0, "{\"frequency_hz\":501}",
         "frequency_hz: is above the administrator's limit; at most 500 is allowed "
         "(max_frequency_hz in F)"},
        {"{\"max_frequency_hz\":3}", 0, "{\"sample_period_ns\":333333332}",
         "sample_period_ns: is below the administrator's limit; at least 333333333 is allowed "
         "(max_frequency_hz in F)"},
        {"{\"max_stack_copy_bytes\":512}", 0, "{\"stack_copy_bytes\":520}",
         "stack_copy_bytes: is above the administrator's limit; at most 512 is allowed "
         "(max_stack_copy_bytes in F)"},
        {"{\"max_stack_copy_bytes\":0}", 0, "{\"stack_copy_bytes\":512}",
         "stack_copy_bytes: is above the administrator's limit; at most 0 is allowed "
         "(max_stack_copy_bytes in F)"},
        {"{\"max_stack_copy_bytes\":0}", 0, "{\"unwind\":\"auto\"}",
         "unwind: takes copies of stacks, and the administrator allows none; \"fp\" is allowed "
         "(max_stack_copy_bytes in F)"},
        {"{\"max_duration_s\":60}", 0, "{\"max_duration_s\":61}",
         "max_duration_s: is above the administrator's limit; at most 60 is allowed "
         "(max_duration_s in F)"},
        {"{\"allow_kernel_stacks\":false}", 0, "{\"kernel_stacks\":true}",
         "kernel_stacks: is kept from sessions by the administrator; false is allowed "
         "(allow_kernel_stacks in F)"},
        {"{}", 0, "{\"frequency_hz\":100000}", NULL},
        {"{\"max_frequency_hz\":50000}", 1000, "{\"frequency_hz\":50000}", NULL},
        {"{}", 1000, "{\"frequency_hz\":10000}", NULL},
        {"{}", 1000, "{\"frequency_hz\":10001}",
         "frequency_hz: is more than users other than root may ask for; at most 10000 is allowed, "
         "unless max_frequency_hz in F says more"},
        {"{}", 1000, "{\"sample_period_ns\":90000}",
         "sample_period_ns: is less than users other than root may ask for; at least 100000 is "
         "allowed, unless max_frequency_hz in F says more"},
        /* What is no config at all is told first. */
        {"{\"max_frequency_hz\":500}", 0, "{\"frequency_hz\":100001}",
         "frequency_hz: is out of range; an integer from 1 to 100000 is allowed"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect_within(&cases[i]);
    }
}

TEST(refuses_events_that_are_not_allowed)
{
    static const struct limit_case cases[] = {
        {"{}", 0, "{\"events\":[{\"event\":\"r1\",\"frequency_hz\":100000}]}", NULL},
        {"{}", 1000, "{\"events\":[{\"event\":\"cs\",\"frequency_hz\":10000}]}", NULL},
        {"{}", 1000, "{\"events\":[{\"event\":\"cs\",\"frequency_hz\":10001}]}",
         "events: has 'cs' at 10001 a second, above the limit; at most 10000 is allowed "
         "(max_event_rate_hz in F)"},
        {"{}", 1000, "{\"events\":[{\"event\":\"cycles\"}]}",
         "events: has 'cycles', a hardware event, which users other than root may not have, unless "
         "the administrator says so (allowed_events in F)"},
        {"{\"allowed_events\":[\"hardware\"]}", 1000, "{\"events\":[{\"event\":\"cycles\"}]}",
         NULL},
        {"{\"allowed_events\":[\"software\"]}", 0,
         "{\"events\":[{\"event\":\"cs\",\"followers\":[\"cycles\"]}]}",
         "events: has 'cycles', a hardware event, which the administrator does not allow "
         "(allowed_events in F)"},
        {"{\"allowed_events\":[]}", 0, "{\"events\":[{\"event\":\"cs\"}]}",
         "events: has 'cs', a software event, which the administrator does not allow "
         "(allowed_events in F)"},
        {"{\"allowed_events\":[\"hardware\"]}", 0, "{\"off_cpu\":{}}",
         "off_cpu: samples a software event, which the administrator does not allow; a session "
         "without it is allowed (allowed_events in F)"},
        {"{\"max_event_rate_hz\":50000}", 1000,
         "{\"events\":[{\"event\":\"cs\",\"frequency_hz\":50000}]}", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect_within(&cases[i]);
    }
}

static char path[64];

static void write_file(size_t bytes, mode_t mode)
{
    (void)snprintf(path, sizeof path, "/tmp/test-daemon-config-%d.json", (int)getpid());
    cleanup_(closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    cleanup_(freep) char *text = malloc(bytes);
    assert_non_null(text);
    memset(text, ' ', bytes);
    memcpy(text, "{\"max_duration_s\":7}", 20);
    assert_int_equal(write(fd, text, bytes), bytes);
}

static int remove_file(void **state)
{
    (void)state;
    (void)unlink(path);
    return 0;
}

TEST_WITH(loads_a_file, NULL, remove_file)
{
    struct daemon_config config;
    write_file(DAEMON_CONFIG_BYTES_MAX, 0644);
    assert_int_equal(daemon_config_load(path, &config, NULL), 0);
    assert_int_equal(config.limits.max_duration_s, 7);
    assert_ptr_equal(config.limits.path, path);
}

static void assert_load_fails(const char *file, int r, const char *member, const char *begin)
{
    struct daemon_config config;
    struct fault fault = {0};
    assert_int_equal(daemon_config_load(file, &config, &fault), r);
    assert_string_equal(fault.member, member);
    if (strncmp(fault.text, begin, strlen(begin)) != 0) {
        fail_msg("%s: %s", file, fault.text);
    }
}

TEST_WITH(refuses_a_file_that_others_may_have_written, NULL, remove_file)
{
    static const mode_t modes[] = {0646, 0664, 0666, 0602};
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        write_file(20, modes[i]);
        assert_load_fails(path, -EPERM, "", "may be written to by others (its mode is 06");
    }
    if (geteuid() == 0) {
        write_file(20, 0600);
        assert_int_equal(chown(path, 1234, 0), 0);
        assert_load_fails(path, -EPERM, "", "belongs to uid 1234, who could change");
    }
}

TEST_WITH(refuses_what_is_no_file_of_its_size, NULL, remove_file)
{
    assert_load_fails("/tmp/there/is/none", -ENOENT, "", "cannot be opened: No such file");
    assert_load_fails("/", -EBADF, "", "is not a regular file");
    assert_load_fails("/dev/null", -EBADF, "", "is not a regular file");
    write_file(DAEMON_CONFIG_BYTES_MAX + 1, 0644);
    assert_load_fails(path, -EINVAL, "config", "has 65537 bytes; at most 65536 are allowed");
}

/* It has no writer: a daemon that waited would never start. */
TEST_WITH(does_not_wait_for_a_pipe, NULL, remove_file)
{
    (void)snprintf(path, sizeof path, "/tmp/test-daemon-config-%d.pipe", (int)getpid());
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_load_fails(path, -EBADF, "", "is not a regular file");
}
