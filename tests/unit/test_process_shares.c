/* SPDX-License-Identifier: Apache-2.0 */
#include "process_story.h"

#define HOSTILE   4711
#define VICTIM    4712
#define PARENT    7 /* of HOSTILE's processes */
#define BYSTANDER 8 /* VICTIM's */
#define PIDS_FROM 100000

/* A table in which HOSTILE and VICTIM have a process each, as the first reading of /proc says. */
static void begin_storm(struct story *story)
{
    own(story, PARENT, HOSTILE, 100);
    own(story, BYSTANDER, VICTIM, 100);
    own(story, 1, 0, 100);
}

/* A new process of an account, one after the storm, gets its name, threads and mappings. */
static void expect_room(struct story *story, int32_t parent_pid, int32_t pid)
{
    uint64_t refused = process_table_counts(story->table).counters.table_refused;
    fork_process(story, pid, parent_pid, 200);
    exec_process(story, pid, "victim", 201);
    for (uint64_t i = 0; i < 100; i++) {
        map(story, pid, 2 * i, 1, "/usr/lib/some.so", 202);
        process_table_fork(story->table, pid, pid, pid + 1000 + (int32_t)i, pid, 203);
        process_table_comm(story->table, pid, pid + 1000 + (int32_t)i, "thread", false, 204);
    }
    assert_string_equal(name_of(story, pid, pid, 205), "victim");
    assert_string_equal(name_of(story, pid, pid + 1099, 205), "thread");
    assert_string_equal(name_of(story, pid, pid + 1099, 203), "victim");
    assert_string_equal(path_at(story, pid, 198, 205), "/usr/lib/some.so");
    assert_int_equal(process_table_counts(story->table).counters.table_refused, refused);
}

static void expect_room_for_others(struct story *story)
{
    expect_room(story, BYSTANDER, 50000);
    expect_room(story, 1, 60000);
}

STORY(processes_of_one_account_leave_room_for_others)
{
    begin_storm(story);
    for (int32_t i = 0; i < (int32_t)PROCESS_TABLE_PROCESSES_MAX; i++) {
        fork_process(story, PIDS_FROM + i, PARENT, 110);
    }
    struct process_table_counts counts = process_table_counts(story->table);
    assert_in_range(counts.process_count, PROCESS_TABLE_PROCESSES_MAX / 3,
                    PROCESS_TABLE_PROCESSES_MAX / 2);
    assert_int_equal(counts.counters.table_refused,
                     PROCESS_TABLE_PROCESSES_MAX + 3 - counts.process_count);
    /* The children of those that were refused have no parent that is known. */
    for (int32_t i = 0; i < (int32_t)PROCESS_TABLE_PROCESSES_MAX; i++) {
        fork_process(story, 2 * PIDS_FROM + i, 4 * PIDS_FROM + i, 120);
    }
    assert_in_range(process_table_counts(story->table).process_count, counts.process_count,
                    PROCESS_TABLE_PROCESSES_MAX * 2 / 3);
    assert_false(process_table_take_root_refused(story->table));
    expect_room_for_others(story);
}

STORY(threads_of_one_account_leave_room_for_others)
{
    begin_storm(story);
    for (int32_t i = 0; i < (int32_t)PROCESS_TABLE_THREADS_MAX; i++) {
        int32_t pid = PARENT + i % 16;
        if (i < 16 && pid != PARENT) {
            fork_process(story, PIDS_FROM + pid, PARENT, 110);
        }
        process_table_fork(story->table, PIDS_FROM + pid, PIDS_FROM + pid, 2 * PIDS_FROM + i,
                           PIDS_FROM + pid, 111);
    }
    assert_in_range(process_table_counts(story->table).thread_count, PROCESS_TABLE_THREADS_MAX / 3,
                    PROCESS_TABLE_THREADS_MAX / 2);
    expect_room_for_others(story);
}

/* An eighth of what is left for each process, in vain: all of them are one account's. */
STORY(mappings_of_one_account_leave_room_for_others)
{
    begin_storm(story);
    for (uint64_t i = 0; i < PROCESS_MAPPINGS_MAX; i++) {
        map(story, PARENT, 2 * i, 1, "/x", 110);
    }
    for (int32_t i = 0; i < 100; i++) {
        fork_process(story, PIDS_FROM + i, PARENT, 111);
    }
    assert_true(process_table_counts(story->table).counters.table_refused > PROCESS_MAPPINGS_MAX);
    expect_room_for_others(story);
}

STORY(names_of_one_account_leave_room_for_others)
{
    char name[COMM_BYTES];
    begin_storm(story);
    for (int32_t i = 0; i < 2000; i++) {
        fork_process(story, PIDS_FROM + i, PARENT, 110);
        for (uint64_t k = 1; k < THREAD_NAMES_MAX; k++) {
            (void)snprintf(name, sizeof name, "n%d", (int)k);
            process_table_comm(story->table, PIDS_FROM + i, PIDS_FROM + i, name, false, 110 + k);
        }
    }
    assert_true(process_table_counts(story->table).counters.table_refused > THREAD_NAMES_MAX);
    for (int32_t i = 0; i < 200; i++) {
        fork_process(story, 50000 + i, BYSTANDER, 400);
        process_table_comm(story->table, 50000 + i, 50000 + i, "one", false, 401);
        process_table_comm(story->table, 50000 + i, 50000 + i, "two", false, 402);
        process_table_comm(story->table, 50000 + i, 50000 + i, "three", false, 403);
        assert_string_equal(name_of(story, 50000 + i, 50000 + i, 401), "one");
        assert_string_equal(name_of(story, 50000 + i, 50000 + i, 402), "two");
    }
}

/* A user who logs in has root's account until /proc is asked: root's own find no place then. */
STORY(a_walk_charges_to_a_user_what_was_charged_to_root)
{
    begin_storm(story);
    fork_process(story, PARENT + 10, 1, 105); /* sshd's child, which becomes HOSTILE's */
    for (int32_t i = 0; i < (int32_t)PROCESS_TABLE_PROCESSES_MAX; i++) {
        fork_process(story, PIDS_FROM + i, PARENT + 10, 110);
    }
    assert_true(process_table_take_root_refused(story->table));
    assert_false(process_table_take_root_refused(story->table));
    for (int32_t i = 0; i < (int32_t)PROCESS_TABLE_PROCESSES_MAX; i++) {
        if (living(story, PIDS_FROM + i, 120) != NULL) {
            own(story, PIDS_FROM + i, HOSTILE, 120);
        }
    }
    expect_room_for_others(story);
    assert_false(process_table_take_root_refused(story->table));
}

/* With the last of its processes a share is gone; the sanitizers look at what is left. */
STORY(accounts_end_with_their_processes)
{
    for (int32_t i = 1; i <= 3000; i++) {
        own(story, i, (uint32_t)i << 16, 100);
        fork_process(story, 10000 + i, i, 101);
        own(story, 10000 + i, (uint32_t)i, 102);
        process_table_gone(story->table, i, 110);
    }
    process_table_prune(story->table, 110);
    assert_int_equal(process_table_counts(story->table).process_count, 3000);
    for (int32_t i = 1; i <= 3000; i++) {
        process_table_gone(story->table, 10000 + i, 120);
    }
    process_table_prune(story->table, 120);
    assert_int_equal(process_table_counts(story->table).process_count, 0);
    assert_int_equal(process_table_counts(story->table).counters.table_refused, 0);
}
