/* SPDX-License-Identifier: Apache-2.0 */

/* What comes of /proc as it is, through the threads that read it. */
#include "clock.h"
#include "proc_feed.h"
#include "waiting_child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>

struct world {
    struct process_table *processes;
    struct filter *filter;
    struct proc_feed *readings;
};

static struct world begin(const struct session_targets *targets)
{
    struct world world = {.processes = process_table_new(NULL, NULL),
                          .filter = filter_new(&(struct filter_config){.targets = targets})};
    assert_non_null(world.processes);
    assert_non_null(world.filter);
    world.readings = proc_feed_new(world.processes, NULL, &world.filter, 1);
    assert_non_null(world.readings);
    return world;
}

static void end(struct world *world)
{
    assert_null(proc_feed_free(world->readings));
    assert_null(process_table_free(world->processes));
    assert_null(filter_free(world->filter));
}

static void apply(struct world *world)
{
    proc_feed_begin_round(world->readings);
    (void)proc_feed_apply(world->readings, UINT64_MAX);
    (void)poll(NULL, 0, 1);
}

/* As long as this machine's processes take. */
static void walk(struct world *world)
{
    proc_feed_walk(world->readings);
    assert_true(proc_feed_is_walking(world->readings));
    while (proc_feed_is_walking(world->readings)) {
        apply(world);
    }
}

/* Asks for a process and waits for what comes of it. */
static enum reading_state ask(struct world *world, int32_t pid)
{
    const uint64_t time_ns = clock_ns(CLOCK_BOOTTIME);
    enum reading_state state = READING_ASKED;
    while (state == READING_ASKED || state == READING_COMES) {
        state = proc_feed_ask(world->readings, pid, 0, time_ns);
        apply(world);
    }
    return state;
}

/* A child whose command line is empty until `go_fd` has a byte, as that of a program in the midst
 * of an exec. */
static pid_t start_nameless_child(const int go[2])
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char *name = program_invocation_name; /* the memory of argv[0] */
        char first = name[0];
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        memset(name, 0, strlen(name));
        if (write(ready[1], "y", 1) == 1 && read(go[0], &byte, 1) == 1) {
            name[0] = first;
            (void)pause();
        }
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return child;
}

static void note_command(struct process *process, void *userdata)
{
    (void)process;
    *(bool *)userdata = true;
}

static void apply_until_now(struct world *world)
{
    proc_feed_begin_round(world->readings);
    (void)proc_feed_apply(world->readings, clock_ns(CLOCK_BOOTTIME));
    (void)poll(NULL, 0, 1);
}

TEST(reads_a_command_line_again_that_an_exec_has_not_made_yet)
{
    struct world world = begin(NULL);
    bool has_command = false;
    int go[2];
    assert_int_equal(pipe(go), 0);
    pid_t child = start_nameless_child(go);
    proc_feed_read_commands(world.readings,
                            &(struct command_right){.is_given = true, .uid = getuid()},
                            note_command, &has_command);
    assert_int_equal(ask(&world, child), READING_CAME);
    process_table_comm(world.processes, child, child, "new", true, clock_ns(CLOCK_BOOTTIME));
    const struct process *process = process_table_find(world.processes, child, TIME_OPEN_NS);
    assert_non_null(process);
    proc_feed_ask_command(world.readings, process);
    for (int i = 0; i < 20; i++) {
        apply_until_now(&world);
    }
    assert_false(has_command);
    assert_int_equal(write(go[1], "g", 1), 1);
    while (!has_command) {
        apply_until_now(&world);
    }
    assert_non_null(process->command);
    end_child(child);
    (void)close(go[0]);
    (void)close(go[1]);
    end(&world);
}

/* In a container it may not even with root's rights. */
static bool can_read_maps(int32_t pid)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%" PRId32 "/maps", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

TEST(a_walk_finds_everybody_and_ends_who_is_gone)
{
    enum {
        CHILD_COUNT = 3
    };
    struct world world = begin(NULL);
    pid_t children[CHILD_COUNT];
    for (size_t i = 0; i < CHILD_COUNT; i++) {
        children[i] = start_child();
        assert_int_equal(ask(&world, children[i]), READING_CAME);
    }
    for (size_t i = 1; i < CHILD_COUNT; i++) {
        end_child(children[i]);
    }
    const uint64_t begin_ns = clock_ns(CLOCK_BOOTTIME);
    proc_feed_walk(world.readings);
    /* Not in /proc, but its first word came during the walk, whatever its time is. */
    process_table_comm(world.processes, INT32_MAX, INT32_MAX, "new", false, begin_ns - 1);
    while (proc_feed_is_walking(world.readings)) {
        apply(&world);
    }
    const int32_t alive[] = {1, children[0], getpid(), INT32_MAX};
    for (size_t i = 0; i < COUNT_OF(alive); i++) {
        const struct process *process =
            process_table_find(world.processes, alive[i], clock_ns(CLOCK_BOOTTIME));
        assert_non_null(process);
        assert_int_equal(process->to_ns, TIME_OPEN_NS);
        assert_int_equal(process->scanned, can_read_maps(alive[i]));
    }
    for (size_t i = 1; i < CHILD_COUNT; i++) {
        const struct process *gone = process_table_find(world.processes, children[i], begin_ns);
        assert_in_range(gone->to_ns, begin_ns, clock_ns(CLOCK_BOOTTIME));
        assert_int_equal(gone->live_thread_count, 0);
    }
    walk(&world);
    assert_in_range(process_table_find(world.processes, INT32_MAX, begin_ns)->to_ns, begin_ns,
                    clock_ns(CLOCK_BOOTTIME));
    end_child(children[0]);
    end(&world);
}

TEST(a_walk_is_news_of_a_process_that_was_asked_for)
{
    struct world world = begin(NULL);
    assert_int_equal(ask(&world, getpid()), READING_CAME);
    const uint64_t between_ns = clock_ns(CLOCK_BOOTTIME);
    walk(&world);
    assert_int_equal(proc_feed_ask(world.readings, getpid(), between_ns, between_ns), READING_CAME);
    end(&world);
}

TEST(knows_that_a_process_is_gone)
{
    struct world world = begin(NULL);
    assert_int_equal(ask(&world, INT32_MAX), READING_GONE);
    assert_null(process_table_find(world.processes, INT32_MAX, clock_ns(CLOCK_BOOTTIME)));
    /* Until somebody else may have its pid. */
    const uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    assert_int_equal(proc_feed_ask(world.readings, INT32_MAX, now_ns, now_ns), READING_ASKED);
    assert_int_equal(proc_feed_ask(world.readings, INT32_MAX, now_ns, now_ns), READING_COMES);
    end(&world);
}

/* Whether this process is found to be a target's. */
static bool is_target(const struct session_targets *targets, bool wants_identity)
{
    struct world world = begin(targets);
    assert_int_equal(ask(&world, getpid()), READING_CAME);
    struct process *self = process_table_find(world.processes, getpid(), clock_ns(CLOCK_BOOTTIME));
    assert_int_equal(self->identity_ns != 0, wants_identity);
    bool matches = self->identity_matches;
    self->identity_matches = !matches;
    self->identity_ns = 0;
    proc_feed_identify(world.readings, self, clock_ns(CLOCK_BOOTTIME));
    while (wants_identity && self->identity_ns == 0) {
        apply(&world);
    }
    assert_int_equal(self->identity_matches, wants_identity ? matches : !matches);
    end(&world);
    return matches;
}

TEST(judges_by_uid_where_it_is_asked_for)
{
    const struct session_targets own = {.uids = {geteuid()}, .uid_count = 1};
    const struct session_targets other = {.uids = {geteuid() + 1}, .uid_count = 1};
    assert_true(is_target(&own, true));
    assert_false(is_target(&other, true));
    assert_false(is_target(NULL, false));
}

TEST(judges_by_every_cgroup)
{
    char line[4096] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    size_t count = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        struct session_targets targets = {.cgroup_count = 1};
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(targets.cgroups[0], sizeof targets.cgroups[0], "%s",
                       strchr(strchr(line, ':') + 1, ':') + 1);
        assert_true(is_target(&targets, true));
        count++;
    }
    assert_true(count > 0);
    assert_int_equal(fclose(file), 0);
}
