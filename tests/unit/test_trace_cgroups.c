/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The lines that say whose a process is: few of them, and by their times each sample has the group
 * that it was in.
 */
#include "trace_world.h"
#include "unit_test.h"

#include "cgroup_table.h"
#include "process_owner.h"
#include "trace_cgroups.h"

#include <inttypes.h>

#define PID       42
#define LINES_MAX ((size_t)TRACE_CGROUP_LINES_MAX)

enum {
    NO_GROUP,
    A_X,
    A_Y,
    B,
    NAMELESS,
    GROUPS
};

static const char *const paths[GROUPS] = {
    [A_X] = "/a.service/x", [A_Y] = "/a.service/y", [B] = "/b.service", [NAMELESS] = "/c"};
static struct cgroup groups[GROUPS];

static int set_up_groups(void **state)
{
    for (size_t i = A_X; i < GROUPS; i++) {
        groups[i] = (struct cgroup){.id = i, .path = paths[i], .owner_key = i == A_Y ? A_X : i};
        cgroup_owner_parse(paths[i], &groups[i].owner);
    }
    if (set_up(state) < 0) {
        return -1;
    }
    struct world *world = *state;
    world->shows_processes = true;
    process_table_fork(world->processes, PID, 1, PID, 1, 50);
    process_table_comm(world->processes, PID, PID, "prog", true, 60);
    return 0;
}

#define CGROUPS(name) TEST_OF(struct world *world, name, set_up_groups, tear_down)

/* Notes a sample, which is written at once or later. */
static void note(struct world *world, int32_t pid, const struct cgroup *cgroup, uint64_t time_ns)
{
    trace_note(world->trace, process_table_find(world->processes, pid, time_ns), cgroup, time_ns);
}

static void write_on(struct world *world, size_t cpu_index, int32_t pid, uint64_t time_ns)
{
    struct sample sample = {
        .time_ns = time_ns, .weight = 1, .cpu = cpu_index == 0 ? 0 : 5, .pid = pid, .tid = pid};
    bool uncertain = false;
    trace_sample(world->trace, cpu_index, &sample,
                 process_table_find(world->processes, pid, time_ns), &uncertain);
}

static void tick_on(struct world *world, size_t cpu_index, int32_t pid, const struct cgroup *cgroup,
                    uint64_t time_ns)
{
    note(world, pid, cgroup, time_ns);
    write_on(world, cpu_index, pid, time_ns);
}

static void tick_of(struct world *world, int32_t pid, const struct cgroup *cgroup, uint64_t time_ns)
{
    tick_on(world, 1, pid, cgroup, time_ns);
}

static void tick(struct world *world, size_t group, uint64_t time_ns)
{
    tick_of(world, PID, group == NO_GROUP ? NULL : &groups[group], time_ns);
}

/* A line: until when it was is what the next one says. */
struct line {
    uint64_t from_ns;
    char cgroup[32]; /* "": it has none */
    char unit[32];
};

struct lines {
    struct line lines[256];
    size_t count;
};

static void take_text(const char *line, const char *name, char ret[32])
{
    const char *end = strchr(line, '\n');
    const char *at = strstr(line, name);
    ret[0] = '\0';
    if (at != NULL && at < end) {
        assert_int_equal(sscanf(at + strlen(name), "%31[^\"]", ret), 1);
    }
}

/* Adds the lines that have come, of whatever process. */
static void read_lines(struct world *world, struct lines *lines)
{
    static const char head[] = "data {\"pid\":";
    for (const char *at = strstr(read_all(world), head); at != NULL; at = strstr(at + 1, head)) {
        assert_true(lines->count < COUNT_OF(lines->lines));
        struct line *line = &lines->lines[lines->count++];
        assert_int_equal(sscanf(at + strlen(head), "%*d,\"boot_ts_ns\":\"%" SCNu64, &line->from_ns),
                         1);
        take_text(at, "\"cgroup\":\"", line->cgroup);
        take_text(at, "\"unit\":\"", line->unit);
    }
}

/* The line that a sample has: the newest that is not later, of two the later in the file. NULL:
 * nothing is said of it. */
static const struct line *find_line(const struct lines *lines, uint64_t time_ns)
{
    const struct line *found = NULL;
    for (size_t i = 0; i < lines->count; i++) {
        const struct line *line = &lines->lines[i];
        if (line->from_ns <= time_ns && (found == NULL || line->from_ns >= found->from_ns)) {
            found = line;
        }
    }
    return found;
}

static bool is_of_group(const struct line *line, size_t group)
{
    return line != NULL && strcmp(line->cgroup, group == NO_GROUP ? "" : paths[group]) == 0;
}

/* Whether a line says of a sample what is not so. */
static bool is_wrong(const struct line *line, size_t group)
{
    static const char *const units[GROUPS] = {[NO_GROUP] = "",
                                              [A_X] = "a.service",
                                              [A_Y] = "a.service",
                                              [B] = "b.service",
                                              [NAMELESS] = ""};
    return line != NULL && ((line->cgroup[0] != '\0' && !is_of_group(line, group)) ||
                            (line->unit[0] != '\0' && strcmp(line->unit, units[group]) != 0));
}

/* The lines that have come are these: "FROM GROUP", "FROM (UNIT)" where it has no group, "FROM -"
 * where nothing is known. */
static void expect_lines(struct world *world, const char *expected)
{
    struct lines lines = {.count = 0};
    char text[4096] = "";
    size_t used = 0;
    read_lines(world, &lines);
    for (size_t i = 0; i < lines.count; i++) {
        const struct line *line = &lines.lines[i];
        bool is_coarse = line->cgroup[0] == '\0' && line->unit[0] != '\0';
        const char *name = line->cgroup[0] != '\0' ? line->cgroup : is_coarse ? line->unit : "-";
        used += (size_t)snprintf(text + used, sizeof text - used, "%" PRIu64 " %s%s%s\n",
                                 line->from_ns, is_coarse ? "(" : "", name, is_coarse ? ")" : "");
        assert_true(used < sizeof text);
    }
    assert_string_equal(text, expected);
}

static void expect_text(struct world *world, const char *expected)
{
    const char *line = strstr(read_all(world), "data {\"pid\"");
    assert_non_null(line);
    assert_memory_equal(line, expected, strlen(expected));
}

CGROUPS(a_process_that_stays_has_one_line_from_its_beginning)
{
    for (uint64_t time_ns = 100; time_ns < 200; time_ns++) {
        tick(world, A_X, time_ns);
    }
    expect_lines(world, "50 /a.service/x\n");
}

CGROUPS(a_line_has_all_that_is_known)
{
    static const char path[] =
        "/kubepods.slice/kubepods-pod00112233445566778899aabbccddeeff.slice/docker-"
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope/user.slice/"
        "user@7.service/app.slice/x.service";
    struct cgroup cgroup = {.id = 99, .path = path};
    cgroup_owner_parse(path, &cgroup.owner);
    tick_of(world, PID, &cgroup, 100);
    expect_text(
        world,
        "data {\"pid\":42,\"boot_ts_ns\":\"50\",\"uid\":42,\"ppid\":1,\"cgroup\":\"/kubepods.slice/"
        "kubepods-pod00112233445566778899aabbccddeeff.slice/docker-"
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope/user.slice/"
        "user@7.service/app.slice/x.service\",\"unit\":\"user@7.service\","
        "\"user_unit\":\"x.service\",\"container\":"
        "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","
        "\"runtime\":\"docker\",\"pod\":\"00112233445566778899aabbccddeeff\"}\n");
}

/* Its parent's line comes with it, and its parent's own; each once. */
CGROUPS(what_a_process_descends_from_is_told_once)
{
    process_table_comm(world->processes, 40, 40, "make", true, 10);
    process_table_fork(world->processes, 41, 40, 41, 40, 20);
    process_table_comm(world->processes, 41, 41, "sh", true, 21);
    process_table_fork(world->processes, 77, 41, 77, 41, 30);
    process_table_comm(world->processes, 77, 77, "cc", true, 31);
    struct process *parent = process_table_find(world->processes, 41, 30);
    struct process *first = process_table_find(world->processes, 40, 20);
    (void)read_all(world);
    note(world, 77, &groups[A_X], 100);
    assert_true(trace_take_parents(world->trace, process_table_find(world->processes, 77, 100)));
    assert_true(trace_note_parent(world->trace, parent, 30));
    assert_true(trace_note_parent(world->trace, first, 20));
    expect_read(world, "data {\"pid\":77,\"boot_ts_ns\":\"30\",\"uid\":77,\"ppid\":41,"
                       "\"cgroup\":\"/a.service/x\",\"unit\":\"a.service\"}\n"
                       "name 41/0 sh since 21\nname 41/41 sh since 21\n"
                       "data {\"pid\":41,\"boot_ts_ns\":\"20\",\"uid\":41,\"ppid\":40}\n"
                       "name 40/0 make since 10\nname 40/40 make since 10\n"
                       "data {\"pid\":40,\"boot_ts_ns\":\"0\",\"uid\":40}\n");
    note(world, 77, &groups[A_X], 110);
    assert_false(trace_take_parents(world->trace, process_table_find(world->processes, 77, 110)));
    assert_false(trace_note_parent(world->trace, parent, 30));
    expect_read(world, "");
    /* It is sampled all the same. */
    note(world, 41, &groups[A_X], 120);
    expect_read(world, "data {\"pid\":41,\"boot_ts_ns\":\"20\",\"uid\":41,\"ppid\":40,"
                       "\"cgroup\":\"/a.service/x\",\"unit\":\"a.service\"}\n");
}

/* A name that comes to be known later may hold from before: it must not be hidden. */
CGROUPS(a_parent_without_a_name_is_not_called_unknown)
{
    process_table_fork(world->processes, 77, 41, 77, 41, 30);
    (void)read_all(world);
    note(world, 77, NULL, 100);
    assert_true(trace_note_parent(world->trace, process_table_find(world->processes, 41, 30), 30));
    expect_read(world, "data {\"pid\":77,\"boot_ts_ns\":\"30\",\"uid\":77,\"ppid\":41}\n"
                       "data {\"pid\":41,\"boot_ts_ns\":\"0\",\"uid\":41}\n");
}

/* A reading brings the command line of what a process has executed last. */
static void read_command(struct world *world, int32_t pid, uint32_t uid, const char *bytes,
                         size_t size_bytes)
{
    const struct process_scan scan = {.pid = pid,
                                      .begin_ns = 1000,
                                      .end_ns = 1001,
                                      .command = bytes,
                                      .command_bytes = size_bytes,
                                      .command_uid = uid};
    struct process *process = process_table_command(world->processes, &scan);
    assert_non_null(process);
    trace_note_command(world->trace, process);
}

#define READ_COMMAND(world, uid, text) read_command(world, PID, uid, text, sizeof(text) - 1)

CGROUPS(a_command_line_is_told_with_its_arguments)
{
    READ_COMMAND(world, 7, "cc\0-c\0\0a \"b\".c\xff");
    expect_lines(world, ""); /* no sample was there */
    tick(world, NO_GROUP, 100);
    expect_text(world, "data {\"pid\":42,\"boot_ts_ns\":\"50\",\"uid\":42,\"ppid\":1,"
                       "\"cmdline\":[\"cc\",\"-c\",\"\",\"a \\\"b\\\".c\xEF\xBF\xBD\"]}\n");
    tick(world, NO_GROUP, 110);
    expect_lines(world, "");
}

CGROUPS(a_command_line_that_comes_later_holds_from_the_exec_on)
{
    tick(world, A_X, 100);
    (void)read_all(world);
    READ_COMMAND(world, 7, "cc");
    expect_text(world, "data {\"pid\":42,\"boot_ts_ns\":\"60\",\"uid\":42,\"ppid\":1,"
                       "\"cgroup\":\"/a.service/x\",\"unit\":\"a.service\","
                       "\"cmdline\":[\"cc\"]}\n");
    /* That of the next program is not known yet. */
    process_table_comm(world->processes, PID, PID, "as", true, 200);
    tick(world, A_X, 210);
    expect_text(world, "data {\"pid\":42,\"boot_ts_ns\":\"200\",\"uid\":42,\"ppid\":1,"
                       "\"cgroup\":\"/a.service/x\",\"unit\":\"a.service\"}\n");
}

/* As of a program that a manager starts: a sample in the manager's group, then others in its own,
 * before and after its exec. */
CGROUPS(a_command_line_known_before_its_time_holds_no_group_fast)
{
    struct lines lines = {.count = 0};
    tick(world, A_X, 100);
    process_table_comm(world->processes, PID, PID, "cc", true, 200);
    READ_COMMAND(world, 7, "cc");
    for (uint64_t time_ns = 150; time_ns < 300; time_ns += 10) {
        tick(world, B, time_ns);
    }
    read_lines(world, &lines);
    for (uint64_t time_ns = 150; time_ns < 300; time_ns += 10) {
        assert_true(is_of_group(find_line(&lines, time_ns), B));
    }
}

/* Whatever was read: the trace holds to its own right. */
CGROUPS(a_command_line_of_another_user_or_of_several_is_not_written)
{
    tick(world, A_X, 100);
    (void)read_all(world);
    READ_COMMAND(world, 8, "secret");
    READ_COMMAND(world, COMMAND_UID_NONE, "secret");
    READ_COMMAND(world, 0, "secret");
    tick(world, A_X, 110);
    expect_lines(world, "");
}

CGROUPS(a_process_that_executes_one_program_after_the_other_has_few_lines)
{
    struct lines lines = {.count = 0};
    tick(world, NO_GROUP, 100);
    for (uint64_t i = 0; i < 100; i++) {
        char text[16];
        int bytes = snprintf(text, sizeof text, "cc %d", (int)i);
        process_table_comm(world->processes, PID, PID, "cc", true, 200 + i);
        read_command(world, PID, 7, text, (size_t)bytes);
        tick(world, NO_GROUP, 200 + i);
    }
    read_lines(world, &lines);
    assert_int_equal(lines.count, 1 + TRACE_COMMAND_LINES_MAX);
}

CGROUPS(odd_bytes_are_escaped_and_long_texts_cut)
{
    char path[4096];
    struct cgroup cgroup = {.id = 99, .path = "/lxc.payload.\"\\\n\xff"};
    cgroup_owner_parse(cgroup.path, &cgroup.owner);
    tick_of(world, PID, &cgroup, 100);
    expect_text(world, "data {\"pid\":42,\"boot_ts_ns\":\"50\",\"uid\":42,\"ppid\":1,"
                       "\"cgroup\":\"/lxc.payload.\\\"\\\\\\u000a\xEF\xBF\xBD\","
                       "\"container\":\"\\\"\\\\\\u000a\xEF\xBF\xBD\",\"runtime\":\"lxc\"}\n");

    /* As long as a name can be, and each byte as long as it can get. */
    struct cgroup longest = {.id = 100, .path = path};
    memset(path, '\x01', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    memcpy(path, "/lxc.payload.", strlen("/lxc.payload."));
    path[256] = '/';
    cgroup_owner_parse(path, &longest.owner);
    assert_int_equal(longest.owner.container.bytes, 243);
    tick_of(world, PID, &longest, 200);
    const char *line = strstr(read_all(world), "data {\"pid\"");
    assert_non_null(line);
    assert_contains(line, "\\u0001\",\"container\":\"\\u0001\\u0001");
    assert_contains(line, "\\u0001\",\"runtime\":\"lxc\"}\n");
}

CGROUPS(a_change_costs_one_line)
{
    tick(world, A_X, 100);
    tick(world, A_X, 110);
    tick(world, B, 120);
    tick(world, B, 130);
    tick(world, NO_GROUP, 140);
    tick(world, NO_GROUP, 150);
    tick(world, A_X, 160);
    expect_lines(world, "50 /a.service/x\n"
                        "120 /b.service\n"
                        "140 -\n"
                        "160 /a.service/x\n");
}

CGROUPS(a_late_sample_moves_the_beginning_of_what_follows)
{
    tick(world, A_X, 100);
    tick(world, B, 120);
    tick(world, B, 110);
    tick(world, B, 115);
    tick(world, A_X, 105);
    tick(world, B, 107);
    expect_lines(world, "50 /a.service/x\n"
                        "120 /b.service\n"
                        "110 /b.service\n"
                        "107 /b.service\n");
}

CGROUPS(a_late_sample_between_two_is_told)
{
    tick(world, A_X, 100);
    tick(world, B, 120);
    tick(world, NAMELESS, 110);
    expect_lines(world, "50 /a.service/x\n"
                        "120 /b.service\n"
                        "110 /c\n");
}

CGROUPS(a_late_sample_amid_others_cuts_their_stretch)
{
    tick(world, A_X, 100);
    tick(world, A_X, 120);
    tick(world, B, 110);
    expect_lines(world, "50 /a.service/x\n"
                        "111 /a.service/x\n"
                        "110 /b.service\n");
    tick(world, A_X, 115); /* both of which are known */
    tick(world, A_X, 105);
    expect_lines(world, "");
    tick(world, B, 109); /* later than all that came before 110 */
    tick(world, A_X, 111);
    expect_lines(world, "109 /b.service\n");
}

CGROUPS(a_sample_that_is_late_by_all_is_told)
{
    static const size_t in_turn[] = {A_X, B};
    struct lines lines = {.count = 0};
    for (uint64_t i = 0; i < 8; i++) {
        tick(world, in_turn[i % 2], 100 + 10 * i);
    }
    read_lines(world, &lines);
    assert_int_equal(lines.count, 8);
    tick(world, NAMELESS, 105);
    tick(world, B, 95); /* the first line, which holds from the beginning on, is not its own */
    expect_lines(world, "105 /c\n"
                        "100 /a.service/x\n"
                        "50 /b.service\n");
    tick(world, A_Y, 90);
    tick(world, B, 93);
    tick(world, A_Y, 91);
    expect_lines(world, "95 /b.service\n"
                        "50 /a.service/y\n"
                        "93 /b.service\n");
}

/* Samples of a new process in three groups, each up to two places later than its time. With `execs`
 * it executes a program now and then, which is known up to two places before its time. */
static void play_late(struct world *world, int32_t pid, size_t count, bool execs,
                      uint64_t *times_ns, size_t *of)
{
    uint64_t seed = (uint64_t)pid;
    process_table_comm(world->processes, pid, pid, "prog", true, 50);
    for (size_t i = 0; i < count; i++) {
        times_ns[i] = 100 + 10 * i - draw_below(&seed, 25);
        of[i] = A_X + draw_below(&seed, 3);
        if (execs && draw_below(&seed, 4) == 0) {
            const uint64_t exec_ns = 100 + 10 * i + draw_below(&seed, 20);
            process_table_comm(world->processes, pid, pid, "next", true, exec_ns);
            read_command(world, pid, 7, "next", 4);
        }
        tick_of(world, pid, &groups[of[i]], times_ns[i]);
    }
}

/* Of two samples at one time, one may have the other's line. */
static bool is_alone(const uint64_t *times_ns, size_t count, size_t i)
{
    for (size_t k = 0; k < count; k++) {
        if (k != i && times_ns[k] == times_ns[i]) {
            return false;
        }
    }
    return true;
}

CGROUPS(each_late_sample_has_its_own_group)
{
    enum {
        SAMPLES = 8
    };
    for (int32_t pid = 1000; pid < 1300; pid++) {
        uint64_t times_ns[SAMPLES];
        size_t of[SAMPLES];
        struct lines lines = {.count = 0};
        play_late(world, pid, SAMPLES, pid % 2 == 0, times_ns, of);
        read_lines(world, &lines);
        assert_in_range(lines.count, 1, LINES_MAX);
        for (size_t i = 0; i < SAMPLES; i++) {
            const struct line *line = find_line(&lines, times_ns[i]);
            if (is_alone(times_ns, SAMPLES, i) && !is_of_group(line, of[i])) {
                fail_msg("process %d: sample %zu at %d is of %s, not %s", pid, i, (int)times_ns[i],
                         line == NULL ? "nothing" : line->cgroup, paths[of[i]]);
            }
        }
    }
}

/* As long as there is a line for it; then the unit is right, then nothing is said. A sample that
 * was late when less began to be told may have the line of another one. */
CGROUPS(many_changes_are_told_with_less_detail)
{
    enum {
        SAMPLES = 120
    };
    for (int32_t pid = 1000; pid < 1030; pid++) {
        uint64_t times_ns[SAMPLES];
        size_t of[SAMPLES];
        size_t wrong = 0;
        struct lines lines = {.count = 0};
        play_late(world, pid, SAMPLES, false, times_ns, of);
        read_lines(world, &lines);
        assert_in_range(lines.count, 2 * LINES_MAX + 1, 2 * (LINES_MAX + 1) + 1);
        for (size_t i = 0; i < SAMPLES; i++) {
            wrong += is_wrong(find_line(&lines, times_ns[i]), of[i]);
        }
        assert_in_range(wrong, 0, 6);
        assert_string_equal(find_line(&lines, UINT64_MAX)->unit, "");
    }
}

CGROUPS(threads_in_two_groups_of_a_unit_count_as_one_in_the_end)
{
    static const size_t in_turn[] = {A_X, A_Y};
    struct lines lines = {.count = 0};
    for (uint64_t i = 0; i < LINES_MAX + 50; i++) {
        tick(world, in_turn[i % 2], 100 + i);
    }
    read_lines(world, &lines);
    assert_int_equal(lines.count, LINES_MAX + 1);
    assert_string_equal(lines.lines[LINES_MAX - 1].cgroup, "/a.service/y");
    assert_string_equal(lines.lines[LINES_MAX].cgroup, "");
    assert_string_equal(lines.lines[LINES_MAX].unit, "a.service");
    /* Another unit is told, and the way back. */
    tick(world, B, 300);
    tick(world, A_Y, 400);
    tick(world, A_X, 401);
    expect_lines(world, "300 (b.service)\n400 (a.service)\n");
}

CGROUPS(threads_in_groups_without_a_name_count_as_one_too)
{
    struct cgroup nameless[2] = {{.id = 8, .path = "/g"}, {.id = 9, .path = "/h"}};
    struct lines lines = {.count = 0};
    for (uint64_t i = 0; i < LINES_MAX + 50; i++) {
        tick_of(world, PID, &nameless[i % 2], 100 + i);
    }
    read_lines(world, &lines);
    assert_int_equal(lines.count, LINES_MAX + 1);
    assert_string_equal(lines.lines[LINES_MAX - 1].cgroup, "/h");
    assert_string_equal(lines.lines[LINES_MAX].cgroup, "");
}

CGROUPS(threads_in_two_units_are_told_no_more_in_the_end)
{
    static const size_t in_turn[] = {A_X, B};
    struct lines lines = {.count = 0};
    for (uint64_t i = 0; i < 2 * LINES_MAX + 50; i++) {
        tick(world, in_turn[i % 2], 100 + i);
    }
    read_lines(world, &lines);
    assert_int_equal(lines.count, 2 * LINES_MAX + 1);
    assert_string_equal(lines.lines[2 * LINES_MAX - 1].unit, "b.service");
    assert_string_equal(lines.lines[2 * LINES_MAX].unit, "");
    assert_int_equal(lines.lines[2 * LINES_MAX].from_ns, 100 + 2 * LINES_MAX);
}

/* The sample with which less is told comes late: what was told of a later time must not stay. */
CGROUPS(less_is_told_with_the_last_line_by_time)
{
    struct lines lines = {.count = 0};
    tick(world, NAMELESS, 980);
    tick(world, NO_GROUP, 990);
    for (uint64_t time_ns = 1000; time_ns < 1050; time_ns += 10) {
        tick(world, B, time_ns);
        tick(world, A_X, time_ns + 5);
        tick(world, A_Y, time_ns + 2);
    }
    tick(world, A_Y, 2000);
    read_lines(world, &lines);
    assert_int_equal(lines.count, LINES_MAX + 1);
    assert_int_equal(lines.lines[LINES_MAX].from_ns, 1045);
    assert_string_equal(find_line(&lines, 2000)->cgroup, "");
    assert_string_equal(find_line(&lines, 2000)->unit, "a.service");
}

/* A round has all samples of one CPU before those of the next. */
CGROUPS(two_threads_on_two_cpus_have_their_unit_from_the_first_round_on)
{
    struct lines lines = {.count = 0};
    for (uint64_t i = 0; i < 100; i++) {
        tick(world, A_X, 1000 + 10 * i);
    }
    for (uint64_t i = 0; i < 100; i++) {
        tick(world, A_Y, 1005 + 10 * i);
    }
    read_lines(world, &lines);
    assert_in_range(lines.count, LINES_MAX + 1, LINES_MAX + 2);
    for (uint64_t i = 0; i < 100; i++) {
        const struct line *x = find_line(&lines, 1000 + 10 * i);
        const struct line *y = find_line(&lines, 1005 + 10 * i);
        assert_false(is_wrong(x, A_X));
        assert_false(is_wrong(y, A_Y));
        assert_string_equal(x->unit, "a.service");
        assert_string_equal(y->unit, "a.service");
    }
}

/* The same of two units, as long as anything is told. */
CGROUPS(two_threads_in_two_units_are_never_taken_for_each_other)
{
    struct lines lines = {.count = 0};
    for (uint64_t i = 0; i < 100; i++) {
        tick(world, A_X, 1000 + 10 * i);
    }
    for (uint64_t i = 0; i < 100; i++) {
        tick(world, B, 1005 + 10 * i);
    }
    read_lines(world, &lines);
    for (uint64_t i = 0; i < 100; i++) {
        assert_false(is_wrong(find_line(&lines, 1000 + 10 * i), A_X));
        assert_false(is_wrong(find_line(&lines, 1005 + 10 * i), B));
    }
    assert_string_equal(find_line(&lines, 1500)->unit, "");
}

/* A sample of a process that is new. */
static void sample_new(struct world *world, int32_t pid)
{
    process_table_comm(world->processes, pid, pid, "filler", true, 50);
    tick_on(world, 0, pid, NULL, 100);
}

/* Fills the log with definitions of others until another one is open. Returns the last pid. */
static int32_t fill_log(struct world *world)
{
    int32_t pid = 1000;
    while (trace_buffer_has_log(world->buffer)) {
        assert_true(pid < 20000);
        sample_new(world, pid++);
    }
    return pid;
}

/* What was told with less detail is told so again, but what comes is told with all of it. */
CGROUPS(a_new_log_tells_all_of_what_comes)
{
    static const size_t in_turn[] = {A_X, B};
    for (uint64_t i = 0; i < 2 * LINES_MAX + 50; i++) {
        tick(world, in_turn[i % 2], 100 + i);
    }
    (void)fill_log(world);
    (void)read_all(world);
    tick(world, A_X, 1000);
    tick(world, A_X, 1001);
    tick(world, B, 1002);
    expect_lines(world, "132 -\n1000 /a.service/x\n1002 /b.service\n");
}

/* A sample may have been noted before, and be written there. What is older than all that is
 * remembered has no owner. */
CGROUPS(a_new_log_tells_again_what_is_remembered)
{
    static const size_t in_turn[] = {A_X, B};
    for (uint64_t i = 0; i < 12; i++) {
        note(world, PID, &groups[in_turn[i % 2]], 100 + 10 * i);
    }
    (void)fill_log(world);
    (void)read_all(world);
    write_on(world, 1, PID, 150);
    expect_lines(world, "140 /a.service/x\n"
                        "150 /b.service\n"
                        "160 /a.service/x\n"
                        "170 /b.service\n"
                        "180 /a.service/x\n"
                        "190 /b.service\n"
                        "200 /a.service/x\n"
                        "210 /b.service\n");
    tick(world, B, 120);
    tick(world, A_Y, 220);
    expect_lines(world, "220 /a.service/y\n");
}

/* Samples that were written before they are noted are in the log that the note goes to. */
CGROUPS(a_note_does_not_begin_a_new_log)
{
    int32_t pid = 1000;
    tick(world, A_X, 100);
    while (!trace_is_full(world->trace)) {
        assert_true(pid < 20000);
        sample_new(world, pid++);
    }
    note(world, PID, &groups[B], 200);
    write_on(world, 1, PID, 200);
    static const char line[] = "data {\"pid\":42,\"boot_ts_ns\":\"200\"";
    const char *first = strstr(read_all(world), line);
    assert_non_null(first);
    assert_non_null(strstr(first + 1, line)); /* again, in the log of the next sample */
}

/* Samples of a process that moves, noted in the order of time, of which some wait until there is
 * another log. */
struct moves {
    size_t count;
    size_t of[120];
    bool waits[120];
};

static uint64_t moved_ns(size_t i)
{
    return 100 + 10 * i;
}

static void play_moves(struct world *world, int32_t pid, struct moves *moves, size_t first,
                       size_t count, uint64_t *seed)
{
    for (size_t i = first; i < first + count; i++) {
        moves->of[i] =
            i > 0 && draw_below(seed, 2) == 0 ? moves->of[i - 1] : (size_t)draw_below(seed, GROUPS);
        moves->waits[i] = draw_below(seed, 3) == 0;
        note(world, pid, moves->of[i] == NO_GROUP ? NULL : &groups[moves->of[i]], moved_ns(i));
        if (!moves->waits[i]) {
            write_on(world, 1, pid, moved_ns(i));
        }
    }
    moves->count = first + count;
}

/* Each sample that was written from `first` on has its own group, or less where there are many. */
static void expect_moves(const struct moves *moves, const struct lines *lines, size_t first,
                         bool waiting, bool exact)
{
    for (size_t i = first; i < moves->count; i++) {
        const struct line *line = find_line(lines, moved_ns(i));
        if (moves->waits[i] == waiting &&
            (exact ? !is_of_group(line, moves->of[i]) : is_wrong(line, moves->of[i]))) {
            fail_msg("sample %zu of %zu is of %s, not group %zu", i, moves->count,
                     line == NULL ? "nothing" : line->cgroup, moves->of[i]);
        }
    }
}

static void check_moves(struct world *world, int32_t pid, size_t count)
{
    uint64_t seed = (uint64_t)pid;
    struct moves moves = {.count = 0};
    struct lines lines = {.count = 0};
    const bool is_exact = count <= LINES_MAX / 2;
    process_table_comm(world->processes, pid, pid, "prog", true, 50);
    play_moves(world, pid, &moves, 0, count, &seed);
    read_lines(world, &lines);
    expect_moves(&moves, &lines, 0, false, is_exact);

    (void)fill_log(world);
    (void)read_all(world);
    lines.count = 0;
    play_moves(world, pid, &moves, count, count, &seed);
    for (size_t i = 0; i < moves.count; i++) {
        if (moves.waits[i]) {
            write_on(world, 1, pid, moved_ns(i));
        }
    }
    read_lines(world, &lines);
    expect_moves(&moves, &lines, 0, true, is_exact);
    expect_moves(&moves, &lines, count, false, is_exact);
}

CGROUPS(samples_that_wait_have_their_own_group_in_every_log)
{
    static const size_t counts[] = {LINES_MAX / 2, LINES_MAX, 60};
    for (int32_t i = 0; i < 60; i++) {
        check_moves(world, 30000 + i, counts[i % 3]);
    }
}

static uint32_t root(int32_t pid)
{
    (void)pid;
    return 0;
}

CGROUPS(another_user_is_told_from_the_exec_on)
{
    tick(world, A_X, 100);
    tick(world, A_X, 200);
    (void)read_all(world);
    owner_of = root;
    process_table_comm(world->processes, PID, PID, "su", true, 250);
    tick(world, A_X, 300);
    tick(world, A_X, 310);
    expect_text(world, "data {\"pid\":42,\"boot_ts_ns\":\"300\",\"uid\":0,\"ppid\":1,"
                       "\"cgroup\":\"/a.service/x\",\"unit\":\"a.service\"}\n");
    tick(world, A_X, 320);
    expect_lines(world, "");
}

/* It is not the group of a sample that was late for it. */
CGROUPS(another_user_does_not_bring_an_old_group_back)
{
    tick(world, A_X, 100);
    tick(world, B, 200);
    tick(world, B, 300);
    owner_of = root;
    process_table_comm(world->processes, PID, PID, "su", true, 310);
    tick(world, A_X, 150);
    tick(world, A_X, 350);
    struct lines lines = {.count = 0};
    read_lines(world, &lines);
    assert_string_equal(find_line(&lines, 150)->cgroup, "/a.service/x");
    assert_string_equal(find_line(&lines, 250)->cgroup, "/b.service");
    assert_string_equal(find_line(&lines, 350)->cgroup, "/a.service/x");
}

/* Nor are lines of less detail brought back to all of it. */
CGROUPS(many_users_do_not_begin_the_count_anew)
{
    static const size_t in_turn[] = {A_X, B};
    struct lines lines = {.count = 0};
    for (uint64_t i = 0; i < 2 * LINES_MAX + 1; i++) {
        tick(world, in_turn[i % 2], 100 + i);
    }
    read_lines(world, &lines);
    owner_of = root;
    process_table_comm(world->processes, PID, PID, "su", true, 310);
    tick(world, A_X, 320);
    expect_text(world, "data {\"pid\":42,\"boot_ts_ns\":\"320\",\"uid\":0,\"ppid\":1}\n");
}

static uint32_t unknown_user(int32_t pid)
{
    (void)pid;
    return PROCESS_OWNER_UNKNOWN;
}

CGROUPS(a_user_that_is_learnt_late_is_that_of_the_beginning)
{
    owner_of = unknown_user;
    tick(world, A_X, 100);
    expect_text(world, "data {\"pid\":42,\"boot_ts_ns\":\"50\",\"ppid\":1,\"cgroup\"");
    struct process_scan scan = {
        .pid = PID, .begin_ns = 150, .end_ns = 160, .account_known = true, .account = 7};
    process_table_scan(world->processes, &scan);
    tick(world, A_X, 200);
    tick(world, A_X, 201);
    expect_text(world, "data {\"pid\":42,\"boot_ts_ns\":\"50\",\"uid\":7,\"ppid\":1,\"cgroup\"");
    expect_lines(world, "");
}

/* However often it comes, and whatever comes then, until another log has all of it. */
CGROUPS(a_refused_line_drops_the_samples)
{
    char path[4000];
    const struct cgroup longest = {.id = 100, .path = path};
    int32_t pid = fill_log(world); /* and none of it is read, so there is one log left */
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    tick(world, A_X, 200);
    while (trace_buffer_has_room(world->buffer, TRACE_LANE_DEFINITIONS, BUFFER_BYTES / 32 + 4096)) {
        assert_true(pid < 20000);
        sample_new(world, pid++);
    }
    assert_int_equal(trace_lane_counts(world->trace, 1, 0).dropped, 0);
    for (uint64_t i = 0; i < 40; i++) {
        tick_of(world, PID, &longest, 300 + i);
    }
    assert_int_equal(trace_lane_counts(world->trace, 1, 0).dropped, 40);
    tick(world, A_X, 400);
    assert_int_equal(trace_lane_counts(world->trace, 1, 0).dropped, 41);
    (void)read_all(world);
    tick(world, A_X, 410);
    assert_int_equal(trace_lane_counts(world->trace, 1, 0).dropped, 41);
    expect_lines(world, "50 /a.service/x\n"
                        "300 /xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"
                        "400 /a.service/x\n");
}
