/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which samples a filter keeps, as forks and names are told and uids and cgroups are read.
 */
#include "filter.h"
#include "unit_test.h"

#include <errno.h>

static struct filter *new_filter(int32_t target_pid, int32_t excluded_pid, bool kernel_threads)
{
    struct session_targets targets = {.pids = {target_pid}, .pid_count = target_pid == 0 ? 0 : 1};
    struct filter *filter = filter_new(&(struct filter_config){
        .targets = &targets,
        .excluded_pids = &excluded_pid,
        .excluded_pid_count = excluded_pid == 0 ? 0 : 1,
        .kernel_threads = kernel_threads,
    });
    assert_non_null(filter);
    return filter;
}

static struct filter *new_targets(const struct session_targets *targets)
{
    struct filter *filter =
        filter_new(&(struct filter_config){.targets = targets, .kernel_threads = true});
    assert_non_null(filter);
    return filter;
}

/* What is told, and whether samples of threads of which nothing else is known are kept then. */
struct step {
    int32_t pid, parent_pid, tid; /* parent_pid -2: a sample */
    int result;                   /* of what is told */
    bool kept;                    /* the sample */
};

#define SAMPLE            (-2)
#define STEP(...)         ((struct step){__VA_ARGS__})
#define FORK(pid, parent) STEP(pid, parent, pid, 0, false)
#define IN(pid)           STEP(pid, SAMPLE, pid, 0, true)
#define OUT(pid)          STEP(pid, SAMPLE, pid, 0, false)

/* Frees the filter. */
static void play(struct filter *filter, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct step *step = &steps[i];
        const int r = step->parent_pid == SAMPLE
                          ? filter_matches(filter, NULL, NULL, step->pid, step->tid, 1000)
                          : filter_fork(filter, step->pid, step->parent_pid, step->tid);
        if (r != (step->parent_pid == SAMPLE ? step->kept : step->result)) {
            fail_msg("step %zu: %d", i + 1, r);
        }
    }
    assert_null(filter_free(filter));
}

#define PLAY(filter, ...) play(filter, ROWS_OF(struct step, __VA_ARGS__))

TEST(keeps_everything_without_targets)
{
    PLAY(new_filter(0, 30, true), IN(1), IN(29), IN(31), IN(30 + 64), IN(FILTER_PIDS_MAX - 1),
         IN(FILTER_PIDS_MAX), IN(0), IN(-1), OUT(30));
}

TEST(follows_the_children_of_a_target)
{
    PLAY(new_filter(10, 0, true), FORK(11, 10), FORK(12, 11), FORK(20, 9), IN(10), IN(11), IN(12),
         OUT(9), OUT(20), OUT(13), OUT(0), OUT(-1));
}

TEST(forgets_what_a_reused_pid_was)
{
    PLAY(new_filter(10, 30, true), FORK(11, 10), FORK(11, 9), OUT(11), OUT(30), FORK(30, 10),
         IN(30));
}

TEST(takes_a_new_thread_for_no_process)
{
    PLAY(new_filter(10, 30, true), {10, 10, 11, 0, false}, {30, 30, 31, 0, false}, IN(10));
    PLAY(new_filter(0, 30, true), FORK(30, 30), FORK(31, 30), OUT(30), IN(31));
}

TEST(refuses_pids_that_no_kernel_gives)
{
    PLAY(new_filter(10, 0, true), {FILTER_PIDS_MAX, 10, FILTER_PIDS_MAX, -ENOSPC, false},
         FORK(FILTER_PIDS_MAX - 1, 10), IN(FILTER_PIDS_MAX - 1), OUT(FILTER_PIDS_MAX), FORK(-5, 10),
         OUT(-5));
}

TEST(keeps_a_single_thread_and_nothing_that_it_starts)
{
    static const struct session_targets targets = {.tids = {12}, .tid_count = 1};
    PLAY(new_targets(&targets), {10, SAMPLE, 12, 0, true}, {10, SAMPLE, 10, 0, false},
         {12, SAMPLE, 13, 0, false}, FORK(20, 12), OUT(20),
         /* Another thread, and not the one that was meant. */
         {30, 30, 12, 0, false}, {30, SAMPLE, 12, 0, false},
         {30, 30, FILTER_PIDS_MAX, -ENOSPC, false});
}

TEST(leaves_out_kernel_threads_when_told)
{
    static const struct {
        int32_t target_pid;
        bool wanted, kernel, kept;
    } rows[] = {{0, false, true, false},
                {0, false, false, true},
                {0, true, true, true},
                {5, false, true, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct process process = {.pid = 5, .kernel_thread = rows[i].kernel};
        struct filter *filter = new_filter(rows[i].target_pid, 0, rows[i].wanted);
        assert_int_equal(filter_matches(filter, &process, NULL, 5, 5, 1000), rows[i].kept);
        assert_null(filter_free(filter));
    }
}

/* Process 10: leader "make", a thread 11 "cc1plus" and one 12 without a name of its own, which is
 * called "late" from 2000 on. */
static struct process_table *new_names(void)
{
    struct process_table *table = process_table_new(NULL, NULL);
    assert_non_null(table);
    process_table_comm(table, 10, 10, "make", false, 100);
    process_table_fork(table, 10, 10, 11, 10, 200);
    process_table_comm(table, 10, 11, "cc1plus", false, 300);
    process_table_fork(table, 10, 10, 12, 10, 400);
    process_table_comm(table, 10, 12, "late", false, 2000);
    return table;
}

static bool matches_name(const char *glob, int32_t tid, uint64_t time_ns)
{
    struct session_targets targets = {.comm_count = 1};
    struct process_table *table = new_names();
    (void)snprintf(targets.comms[0], sizeof targets.comms[0], "%s", glob);
    struct filter *filter = new_targets(&targets);
    struct process *process = process_table_find(table, 10, time_ns);
    bool matches = filter_matches(filter, process, NULL, 10, tid, time_ns);
    /* What is remembered says the same. */
    assert_int_equal(filter_matches(filter, process, NULL, 10, tid, time_ns), matches);
    assert_null(filter_free(filter));
    assert_null(process_table_free(table));
    return matches;
}

TEST(matches_the_name_of_the_thread_or_of_its_leader)
{
    static const struct {
        const char *glob;
        int32_t tid;
        uint64_t time_ns;
        bool matches;
    } rows[] = {
        {"make", 10, 1000, true},     {"make", 11, 1000, true},     {"make", 12, 3000, true},
        {"make", 13, 1000, true},     {"cc1plus", 11, 1000, true},  {"cc1plus", 10, 1000, false},
        {"cc1plus", 12, 1000, false}, {"cc1plus", 13, 1000, false}, {"cc1*", 11, 1000, true},
        {"CC1*", 11, 1000, false},    {"cc1", 11, 1000, false},     {"*", 12, 1000, true},
        {"late", 12, 1999, false},    {"late", 12, 2000, true},     {"late", 11, 2000, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (matches_name(rows[i].glob, rows[i].tid, rows[i].time_ns) != rows[i].matches) {
            fail_msg("%s, tid %d at %d", rows[i].glob, rows[i].tid, (int)rows[i].time_ns);
        }
    }
}

/* A ring of NAMES_KEPT names: a verdict goes with the name that it was about. */
TEST(judges_each_name_anew)
{
    static const struct session_targets targets = {.comms = {"yes*"}, .comm_count = 1};
    struct process_table *table = process_table_new(NULL, NULL);
    struct filter *filter = new_targets(&targets);
    for (uint64_t i = 1; i <= 50; i++) {
        char name[COMM_BYTES];
        bool matches = i % 3 == 0 || i % 7 == 0;
        (void)snprintf(name, sizeof name, "%s%d", matches ? "yes" : "no", (int)i);
        process_table_comm(table, 10, 10, name, false, i * 100);
        struct process *process = process_table_find(table, 10, i * 100);
        assert_int_equal(filter_matches(filter, process, NULL, 10, 10, i * 100), matches);
        bool before = (i - 1) % 3 == 0 || (i - 1) % 7 == 0;
        if (i > 1) {
            assert_int_equal(filter_matches(filter, process, NULL, 10, 10, i * 100 - 1), before);
        }
    }
    assert_null(filter_free(filter));
    assert_null(process_table_free(table));
}

TEST(wants_to_know_uids_and_cgroups)
{
    static const struct session_targets none = {.pids = {1}, .pid_count = 1};
    static const struct session_targets targets = {
        .uids = {0, 1000}, .uid_count = 2, .cgroups = {"/a", "/b"}, .cgroup_count = 2};
    struct filter *filter = new_targets(&none);
    assert_false(filter_wants_identity(filter));
    assert_null(filter_free(filter));

    filter = new_targets(&targets);
    assert_true(filter_wants_identity(filter));
    assert_true(filter_matches_identity(filter, 1000, ""));
    assert_false(filter_matches_identity(filter, 1001, "0::/x\n"));
    assert_true(filter_matches_identity(filter, 1001, "0::/b/c\n"));
    assert_null(filter_free(filter));
}

TEST(knows_nothing_of_who_is_outside_or_gone)
{
    static const struct session_targets targets = {.tids = {12},
                                                   .tid_count = 1,
                                                   .comms = {"*"},
                                                   .comm_count = 1,
                                                   .uids = {0},
                                                   .uid_count = 1,
                                                   .cgroups = {"/"},
                                                   .cgroup_count = 1};
    PLAY(new_targets(&targets), OUT(0), OUT(-1), {0, SAMPLE, 12, 0, false},
         {-1, SAMPLE, 12, 0, false}, OUT(10), {10, SAMPLE, 12, 0, true});
}

/* What is excluded stays so, whatever it matches. */
TEST(excludes_targets_too)
{
    static const struct session_targets targets = {
        .tids = {31}, .tid_count = 1, .uids = {0}, .uid_count = 1};
    static const int32_t excluded[] = {30};
    struct process process = {.pid = 30, .identity_matches = true};
    struct filter *filter = filter_new(&(struct filter_config){
        .targets = &targets, .excluded_pids = excluded, .excluded_pid_count = 1});
    assert_false(filter_matches(filter, &process, NULL, 30, 31, 1000));
    assert_null(filter_free(filter));
}

/* Some of what a small world knows: pids 1-8, tids 1-8, names a-d, uids 0-3, cgroups /a-/d and
 * in them units a-d. */
static void draw_targets(uint64_t *seed, struct session_targets *targets)
{
    *targets = (struct session_targets){
        .pid_count = draw_below(seed, 3),
        .tid_count = draw_below(seed, 3),
        .uid_count = draw_below(seed, 3),
        .comm_count = draw_below(seed, 3),
        .cgroup_count = draw_below(seed, 3),
        .unit_count = draw_below(seed, 3),
    };
    for (size_t i = 0; i < 2; i++) {
        targets->pids[i] = (int32_t)draw_below(seed, 8) + 1;
        targets->tids[i] = (int32_t)draw_below(seed, 8) + 1;
        targets->uids[i] = (uint32_t)draw_below(seed, 4);
        (void)snprintf(targets->comms[i], sizeof targets->comms[i], "%c*",
                       'a' + (int)draw_below(seed, 4));
        (void)snprintf(targets->cgroups[i], sizeof targets->cgroups[i], "/%c",
                       'a' + (int)draw_below(seed, 4));
        (void)snprintf(targets->units[i], sizeof targets->units[i], "%c.s*",
                       'a' + (int)draw_below(seed, 4));
    }
}

struct subject {
    int32_t pid;
    int32_t tid;
    uint32_t uid;
    char name[2];
    char leader_name[2];
    char cgroups[8];
    char group[16]; /* the sample's own: "/a.service"; "": not known */
};

/* Asked of the filter as the daemon does it. */
static bool is_kept(const struct session_targets *targets, const struct subject *subject)
{
    struct process_table *table = process_table_new(NULL, NULL);
    struct filter *filter = new_targets(targets);
    process_table_comm(table, subject->pid, subject->pid, subject->leader_name, false, 100);
    process_table_comm(table, subject->pid, subject->tid, subject->name, false, 100);
    struct process *process = process_table_find(table, subject->pid, 200);
    process->identity_matches = filter_matches_identity(filter, subject->uid, subject->cgroups);
    struct cgroup cgroup = {.id = 7, .path = subject->group};
    cgroup_owner_parse(cgroup.path, &cgroup.owner);
    bool kept = filter_matches(filter, process, subject->group[0] == '\0' ? NULL : &cgroup,
                               subject->pid, subject->tid, 200);
    assert_null(filter_free(filter));
    assert_null(process_table_free(table));
    return kept;
}

/* The rule as docs/session-config.md has it. */
static bool any_matches(const struct session_targets *targets, const struct subject *subject)
{
    bool any = session_targets_empty(targets);
    for (size_t i = 0; i < targets->pid_count; i++) {
        any = any || targets->pids[i] == subject->pid;
    }
    for (size_t i = 0; i < targets->tid_count; i++) {
        any = any || targets->tids[i] == subject->tid;
    }
    for (size_t i = 0; i < targets->uid_count; i++) {
        any = any || targets->uids[i] == subject->uid;
    }
    for (size_t i = 0; i < targets->comm_count; i++) {
        any = any || targets->comms[i][0] == subject->name[0] ||
              targets->comms[i][0] == subject->leader_name[0];
    }
    for (size_t i = 0; i < targets->cgroup_count; i++) {
        any = any || targets->cgroups[i][1] == subject->cgroups[4];
    }
    for (size_t i = 0; i < targets->unit_count; i++) {
        any = any || targets->units[i][0] == subject->group[1];
    }
    return any;
}

TEST(any_match_is_in_and_nothing_else)
{
    uint64_t seed = 1;
    unsigned kept_count = 0;
    for (size_t i = 0; i < 1500; i++) {
        struct session_targets targets;
        draw_targets(&seed, &targets);
        struct subject subject = {
            .pid = (int32_t)draw_below(&seed, 8) + 1,
            .tid = (int32_t)draw_below(&seed, 8) + 1,
            .uid = (uint32_t)draw_below(&seed, 4),
            .leader_name = {(char)('a' + draw_below(&seed, 4))},
        };
        subject.name[0] = subject.tid == subject.pid ? subject.leader_name[0]
                                                     : (char)('a' + draw_below(&seed, 4));
        (void)snprintf(subject.cgroups, sizeof subject.cgroups, "0::/%c\n",
                       'a' + (int)draw_below(&seed, 4));
        if (draw_below(&seed, 4) > 0) {
            (void)snprintf(subject.group, sizeof subject.group, "/%c.service",
                           'a' + (int)draw_below(&seed, 4));
        }
        bool kept = is_kept(&targets, &subject);
        kept_count += kept;
        if (kept != any_matches(&targets, &subject)) {
            fail_msg("draw %zu: kept is %d", i, kept);
        }
    }
    assert_in_range(kept_count, 300, 1350);
}
