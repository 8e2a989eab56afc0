/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whose a sample's process was: lines by their times, what owners are called, and samples that are
 * selected by them.
 */
#include "made_recording.h"
#include "selection.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define ID        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define WEB       "\"cgroup\":\"/system.slice/web.service\",\"unit\":\"web.service\""
#define CONTAINER "\"container\":\"" ID "\",\"runtime\":\"docker\""

/* A sample of each process, at 100, 200, ... */
static struct profile *load_lines(const char *lines, const uint64_t *pids, size_t count)
{
    struct recording *recording = recording_new();
    add_data(recording, FXT_STRING_PROCESSES, lines);
    for (size_t i = 0; i < count; i++) {
        add_sample(recording, 100 * (i + 1), pids[i], COMPLETE, ADDRESSES(0x1002));
    }
    return load_recording(recording);
}

#define PIDS(...) ROWS_OF(uint64_t, __VA_ARGS__)

static const char *label(const struct profile *profile, size_t sample, enum profile_label kind)
{
    return profile_text(profile, profile_label(profile, &profile->samples[sample], kind));
}

TEST(names_owners)
{
    static const struct {
        const char *members;
        const char *unit;
        const char *container;
        const char *user;
    } rows[] = {
        {WEB ",\"uid\":4000000000", "web.service", "[no known container]", "uid 4000000000"},
        {WEB "," CONTAINER, "web.service in docker:" ID, "docker:" ID, "[unknown]"},
        {"\"unit\":\"user@7.service\",\"user_unit\":\"sync.service\"", "sync.service (user@7)",
         "[no known container]", "[unknown]"},
        {CONTAINER, "docker:" ID, "docker:" ID, "[unknown]"},
        {"\"container\":\"box\"", "container:box", "container:box", "[unknown]"},
        {"\"cgroup\":\"/\"", "/", "[no known container]", "[unknown]"},
        {"\"uid\":-1,\"unit\":7,\"pod\":\"\"", "[unknown]", "[no known container]", "[unknown]"},
        {"\"other\":1", "[unknown]", "[no known container]", "[unknown]"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char line[512];
        (void)snprintf(line, sizeof line, "{\"pid\":7,\"boot_ts_ns\":\"0\",%s}\n", rows[i].members);
        struct profile *profile = load_lines(line, PIDS(7));
        assert_string_equal(label(profile, 0, PROFILE_LABEL_UNIT), rows[i].unit);
        assert_string_equal(label(profile, 0, PROFILE_LABEL_CONTAINER), rows[i].container);
        assert_string_equal(label(profile, 0, PROFILE_LABEL_USER), rows[i].user);
        (void)profile_free(profile);
    }
}

/* By time, wherever the lines stand; of two with one time the later. Times may be numbers. */
TEST(takes_the_newest_line_that_is_not_later)
{
    static const char *const expected[] = {"[unknown]", "a.service", "b.service", "[unknown]",
                                           "d.service"};
    struct profile *profile =
        load_lines("{\"pid\":7,\"boot_ts_ns\":\"500\",\"unit\":\"c.service\"}\n"
                   "{\"pid\":7,\"boot_ts_ns\":\"500\",\"unit\":\"d.service\"}\n"
                   "{\"pid\":7,\"boot_ts_ns\":\"301\"}\n"
                   "{\"pid\":7,\"boot_ts_ns\":300,\"unit\":\"b.service\"}\n"
                   "{\"pid\":7,\"boot_ts_ns\":\"101\",\"unit\":\"a.service\"}\n"
                   "{\"pid\":8,\"boot_ts_ns\":\"0\",\"unit\":\"other.service\"}\n",
                   PIDS(7, 7, 7, 7, 7));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_string_equal(label(profile, i, PROFILE_LABEL_UNIT), expected[i]);
    }
    (void)profile_free(profile);
}

/* Neither what is no line of ours nor a line of another segment says anything of a process. */
TEST(passes_over_what_is_no_line)
{
    struct recording *recording = recording_new();
    add_data(recording, FXT_STRING_PROCESSES,
             "{\"pid\":7,\"unit\":\"a.service\"}\n"
             "{\"pid\":\"x\",\"boot_ts_ns\":\"0\",\"unit\":\"a.service\"}\n"
             "{\"pid\":7,\"boot_ts_ns\":\"-1\",\"unit\":\"a.service\"}\n"
             "[7]\n7\nno JSON\n\n{\"pid\":7,\"boot_ts_ns\":{}}\n");
    fxt_write_segment_begin(&recording->writer, 2, "test");
    add_data(recording, FXT_STRING_PROCESSES,
             "{\"pid\":8,\"boot_ts_ns\":\"0\",\"unit\":\"a.service\"}\n");
    fxt_write_segment_begin(&recording->writer, 3, "test");
    add_sample(recording, 100, 7, COMPLETE, ADDRESSES(0x1002));
    add_sample(recording, 100, 8, COMPLETE, ADDRESSES(0x1002));
    struct profile *profile = load_recording(recording);
    assert_string_equal(label(profile, 0, PROFILE_LABEL_UNIT), "[unknown]");
    assert_string_equal(label(profile, 1, PROFILE_LABEL_UNIT), "[unknown]");
    (void)profile_free(profile);
}

/* Users have their names if all sessions are of this machine. */
TEST(names_users_of_this_machine_only)
{
    char here[HOST_NAME_MAX + 1] = "";
    char session[512];
    assert_int_equal(gethostname(here, sizeof here - 1), 0);
    (void)snprintf(session, sizeof session, "{\"session\":\"1\",\"host\":\"%s\"}\n", here);
    for (size_t i = 0; i < 2; i++) {
        struct recording *recording = recording_new();
        add_data(recording, FXT_STRING_SESSION, session);
        add_data(recording, FXT_STRING_PROCESSES, "{\"pid\":7,\"boot_ts_ns\":\"0\",\"uid\":0}\n");
        add_sample(recording, 100, 7, COMPLETE, ADDRESSES(0x1002));
        if (i == 1) {
            fxt_write_segment_begin(&recording->writer, 2, "test");
            add_data(recording, FXT_STRING_SESSION, "{\"session\":\"2\",\"host\":\"\"}\n");
        }
        struct profile *profile = load_recording(recording);
        assert_string_equal(label(profile, 0, PROFILE_LABEL_USER), i == 0 ? "root" : "uid 0");
        (void)profile_free(profile);
    }
}

TEST(selects_samples_by_owner)
{
    static const char lines[] =
        "{\"pid\":1,\"boot_ts_ns\":\"0\",\"uid\":0," WEB "}\n"
        "{\"pid\":2,\"boot_ts_ns\":\"0\",\"uid\":7,\"cgroup\":\"/user.slice/a\","
        "\"unit\":\"user@7.service\",\"user_unit\":\"web.service\"}\n"
        "{\"pid\":3,\"boot_ts_ns\":\"0\",\"cgroup\":\"/system.slice/web.service.d/x\"}\n";
    static const struct {
        struct selection selection;
        size_t expected;
    } rows[] = {
        {{.units = {"web.service"}, .unit_count = 1}, 2},
        {{.units = {"user@*"}, .unit_count = 1}, 1},
        {{.units = {"*"}, .unit_count = 1}, 2},
        {{.units = {"web"}, .unit_count = 1}, 0},
        {{.uids = {0}, .uid_count = 1}, 1},
        {{.uids = {7, 0}, .uid_count = 2}, 2},
        {{.uids = {PROFILE_UID_UNKNOWN}, .uid_count = 1}, 0},
        {{.cgroups = {"/system.slice"}, .cgroup_count = 1}, 2},
        {{.cgroups = {"/system.slice/web.service"}, .cgroup_count = 1}, 1},
        {{.cgroups = {"/system.slice/web.service//"}, .cgroup_count = 1}, 1},
        {{.cgroups = {"/"}, .cgroup_count = 1}, 3},
        {{.cgroups = {"/system"}, .cgroup_count = 1}, 0},
        {{.cgroups = {"/user.slice"}, .cgroup_count = 1, .uids = {0}, .uid_count = 1}, 2},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fault fault = {0};
        struct profile *profile = load_lines(lines, PIDS(1, 2, 3, 4));
        int r = selection_apply(&rows[i].selection, profile, &fault);
        assert_int_equal(r, rows[i].expected == 0 ? -ESRCH : 0);
        if (r == 0 && profile->sample_count != rows[i].expected) {
            fail_msg("row %zu: %zu samples", i, profile->sample_count);
        }
        (void)profile_free(profile);
    }
}
