/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Small stories of threads: their names, and when they and their process have ended.
 */
#include "process_story.h"

static size_t name_count(struct story *story)
{
    return process_find_thread(process_table_find(story->table, 10, 10000), 10, 10000)->name_count;
}

static void follows_the_names_of_threads(void **state)
{
    struct story *story = *state;
    process_table_comm(story->table, 10, 10, "leader-with-a-long-name", false, 100);
    process_table_fork(story->table, 10, 10, 12, 10, 200);
    assert_string_equal(name_of(story, 10, 10, 200), "leader-with-a-l");
    assert_string_equal(name_of(story, 10, 12, 199), "nobody");
    assert_string_equal(name_of(story, 10, 12, 200), "leader-with-a-l");
    process_table_comm(story->table, 10, 12, "worker", false, 210);
    process_table_comm(story->table, 10, 12, "worker", false, 220);
    fork_process(story, 20, 10, 205);
    process_table_fork(story->table, 21, 10, 21, 12, 230);
    assert_string_equal(name_of(story, 20, 20, 230), "leader-with-a-l");
    assert_string_equal(name_of(story, 21, 21, 230), "worker");
    const struct thread *thread =
        process_find_thread(process_table_find(story->table, 10, 230), 12, 230);
    assert_int_equal(thread->name_count, 2);
    assert_int_equal(thread->names[1].from_ns, 210);
    process_table_fork(story->table, 10, 10, 13, 12, 205); /* late: before its parent's new name */
    assert_string_equal(name_of(story, 10, 13, 230), "leader-with-a-l");

    const struct scanned_thread scanned = {.tid = 30, .comm = "scanned"};
    scan(story,
         (struct process_scan){
             .pid = 30, .begin_ns = 200, .end_ns = 201, .threads = &scanned, .thread_count = 1},
         NULL, 0);
    assert_int_equal(
        process_find_thread(process_table_find(story->table, 30, 9), 30, 9)->names[0].from_ns, 0);

    for (unsigned i = 0; i < 5; i++) {
        char name[COMM_BYTES];
        (void)snprintf(name, sizeof name, "n%u", i);
        process_table_comm(story->table, 10, 12, name, false, 300 + i);
    }
    assert_int_equal(thread->name_count, 7);
    assert_string_equal(name_of(story, 10, 12, 300), "n0");
    process_table_comm(story->table, 10, 12, "late", false, 250);
    assert_int_equal(thread->name_count, 8);
    assert_string_equal(name_of(story, 10, 12, 249), "worker");
    assert_string_equal(name_of(story, 10, 12, 299), "late");
    assert_string_equal(name_of(story, 10, 12, 400), "n4");
    process_table_prune(story->table, 302);
    assert_int_equal(thread->name_count, 3);
    assert_string_equal(name_of(story, 10, 12, 302), "n2");
}

/* A thread that is renamed all the time has no name for the older half of it, never a wrong one. */
static void forgets_names_half_by_half(void **state)
{
    struct story *story = *state;
    for (unsigned i = 0; i <= THREAD_NAMES_MAX; i++) {
        char name[COMM_BYTES];
        (void)snprintf(name, sizeof name, "n%u", i);
        process_table_comm(story->table, 10, 10, name, false, 100 + i);
    }
    assert_string_equal(name_of(story, 10, 10, 100), "");
    assert_string_equal(name_of(story, 10, 10, 100 + THREAD_NAMES_MAX / 2), "");
    assert_string_equal(name_of(story, 10, 10, 101 + THREAD_NAMES_MAX / 2), "n129");
    assert_string_equal(name_of(story, 10, 10, 100 + THREAD_NAMES_MAX), "n256");
    assert_int_equal(process_table_counts(story->table).counters.table_refused,
                     THREAD_NAMES_MAX / 2);
    assert_int_equal(name_count(story), THREAD_NAMES_MAX / 2 + 1);
    process_table_prune(story->table, 1000);
    assert_int_equal(name_count(story), 1);
}

/* Many threads of one process have an eighth of all names; another still has room for its own. */
static void shares_the_room_for_names(void **state)
{
    struct story *story = *state;
    const uint32_t each = THREAD_NAMES_MAX - 1;
    const uint32_t thread_count = PROCESS_TABLE_NAMES_MAX / 8 / each + 20;
    char name[COMM_BYTES];
    for (uint32_t i = 0; i < thread_count * each; i++) {
        (void)snprintf(name, sizeof name, "n%u", (unsigned)i);
        process_table_comm(story->table, 10, 10 + (int32_t)(i / each), name, false, 100 + i);
    }
    size_t older_count = process_table_find(story->table, 10, 100)->older_name_count;
    assert_in_range(older_count, PROCESS_TABLE_NAMES_MAX / 8 - THREAD_NAMES_MAX,
                    PROCESS_TABLE_NAMES_MAX / 8 + thread_count);
    assert_true(process_table_counts(story->table).counters.table_refused > 0);
    uint64_t refused_before = process_table_counts(story->table).counters.table_refused;
    for (uint32_t i = 0; i < each; i++) {
        (void)snprintf(name, sizeof name, "n%u", (unsigned)i);
        process_table_comm(story->table, 20000, 20000, name, false, 100 + i);
    }
    assert_int_equal(process_table_counts(story->table).counters.table_refused, refused_before);
    assert_string_equal(name_of(story, 20000, 20000, 100), "n0");
}

static void ends_a_process_with_its_last_thread(void **state)
{
    struct story *story = *state;
    fork_process(story, 11, 10, 100);
    process_table_fork(story->table, 11, 11, 12, 11, 110);
    process_table_exit(story->table, 11, 11, 200); /* the leader first */
    assert_string_equal(name_of(story, 11, 11, 200), "nobody");
    assert_string_equal(path_at(story, 11, 1, 250), "none");
    process_table_exit(story->table, 11, 12, 300);
    assert_string_equal(path_at(story, 11, 1, 299), "none");
    assert_string_equal(path_at(story, 11, 1, 300), "nobody");
    /* Of a process that was never read some threads are unknown; its leader's exit decides. */
    process_table_comm(story->table, 50, 51, "t", false, 100);
    process_table_exit(story->table, 50, 51, 110);
    assert_non_null(living(story, 50, 110));
    process_table_exit(story->table, 50, 50, 120);
    assert_null(living(story, 50, 120));
}

static void ends_the_other_threads_at_an_exec(void **state)
{
    struct story *story = *state;
    fork_process(story, 11, 10, 100);
    process_table_fork(story->table, 11, 11, 12, 11, 110);
    /* Thread 12 execs: the leader exits, and 12 takes its number. */
    process_table_exit(story->table, 11, 11, 190);
    exec_process(story, 11, "new", 200);
    assert_string_equal(name_of(story, 11, 12, 199), "");
    assert_string_equal(name_of(story, 11, 12, 200), "nobody");
    assert_string_equal(name_of(story, 11, 11, 200), "new");
    const struct scanned_thread renamed = {.tid = 11, .comm = "renamed"};
    scan(story,
         (struct process_scan){
             .pid = 11, .begin_ns = 210, .end_ns = 211, .threads = &renamed, .thread_count = 1},
         NULL, 0);
    assert_string_equal(name_of(story, 11, 11, 210), "renamed");
    process_table_fork(story->table, 11, 11, 13, 11, 230);
    exec_process(story, 11, "late", 220);
    assert_string_equal(name_of(story, 11, 13, 240), "renamed");
    process_table_exit(story->table, 11, 13, 250);
    process_table_exit(story->table, 11, 11, 300);
    assert_null(living(story, 11, 300));
}

/* The kernel writes an exit record as a program with other rights starts. */
static void a_set_user_id_program_does_not_exit_as_it_starts(void **state)
{
    struct story *story = *state;
    fork_process(story, 11, 10, 100);
    exec_process(story, 11, "su", 200);
    process_table_exit(story->table, 11, 11, 201);
    map(story, 11, 1, 1, "/bin/su", 202);
    assert_ptr_equal(living(story, 11, 250), living(story, 11, 150));
    assert_string_equal(name_of(story, 11, 11, 250), "su");
    assert_string_equal(path_at(story, 11, 1, 250), "/bin/su");
    process_table_exit(story->table, 11, 11, 300);
    assert_null(living(story, 11, 300));
    /* What has mapped something and exits is gone; a mapping is of another one. */
    map(story, 11, 1, 1, "/bin/other", 400);
    assert_string_equal(name_of(story, 11, 11, 400), "nobody");
    assert_string_equal(path_at(story, 11, 1, 400), "/bin/other");
    /* A fork tells of another one, too. */
    fork_process(story, 12, 10, 500);
    exec_process(story, 12, "su", 510);
    process_table_exit(story->table, 12, 12, 511);
    fork_process(story, 12, 10, 520);
    map(story, 12, 1, 1, "/bin/other", 530);
    assert_string_equal(name_of(story, 12, 12, 515), "nobody");
    assert_string_equal(name_of(story, 12, 12, 530), "");
    /* And one whose fork was lost may have the pid by now. */
    fork_process(story, 13, 10, 600);
    exec_process(story, 13, "su", 610);
    process_table_exit(story->table, 13, 13, 611);
    process_table_lost(story->table, 620);
    map(story, 13, 1, 1, "/bin/other", 630);
    assert_string_equal(name_of(story, 13, 13, 630), "nobody");
}

static void leaves_a_zombie_leader_out_of_a_scan(void **state)
{
    struct story *story = *state;
    const struct scanned_thread threads[] = {{.tid = 11}, {.tid = 12}};
    fork_process(story, 11, 10, 100);
    process_table_fork(story->table, 11, 11, 12, 11, 110);
    process_table_exit(story->table, 11, 11, 120);
    scan(story,
         (struct process_scan){
             .pid = 11, .begin_ns = 150, .end_ns = 151, .threads = threads, .thread_count = 2},
         NULL, 0);
    process_table_exit(story->table, 11, 12, 200);
    assert_null(living(story, 11, 200));
    /* /proc shows only the one that lives. */
    scan(story,
         (struct process_scan){
             .pid = 21, .begin_ns = 150, .end_ns = 151, .threads = &threads[1], .thread_count = 1},
         NULL, 0);
    process_table_exit(story->table, 21, 12, 200);
    assert_null(living(story, 21, 200));
}

static void leaves_what_exited_since_out_of_a_scan(void **state)
{
    struct story *story = *state;
    const struct scanned_thread threads[] = {{.tid = 11, .comm = "a"}, {.tid = 12, .comm = "b"}};
    fork_process(story, 11, 10, 100);
    process_table_fork(story->table, 11, 11, 12, 11, 110);
    process_table_exit(story->table, 11, 12, 155);
    scan(story,
         (struct process_scan){
             .pid = 11, .begin_ns = 150, .end_ns = 160, .threads = threads, .thread_count = 2},
         NULL, 0);
    assert_string_equal(name_of(story, 11, 12, 160), "nobody");
    assert_string_equal(name_of(story, 11, 11, 160), "a");
    process_table_exit(story->table, 11, 11, 200);
    assert_null(living(story, 11, 200));
}

static void knows_the_kernels_own_threads(void **state)
{
    struct story *story = *state;
    scan(story, (struct process_scan){.pid = 2, .kernel_thread = true, .begin_ns = 10}, NULL, 0);
    fork_process(story, 30, 2, 100);
    fork_process(story, 31, 30, 110); /* a helper of the kernel, on its way to an exec */
    assert_true(process_table_find(story->table, 30, 100)->kernel_thread);
    assert_true(process_table_find(story->table, 31, 110)->kernel_thread);
    exec_process(story, 31, "modprobe", 120);
    assert_false(process_table_find(story->table, 31, 120)->kernel_thread);
    /* In a pid namespace of its own, 2 is anybody. */
    scan(story, (struct process_scan){.pid = 2, .start_time_ns = 200, .begin_ns = 300}, NULL, 0);
    fork_process(story, 32, 2, 310);
    assert_false(process_table_find(story->table, 32, 310)->kernel_thread);
}

static void keeps_what_has_exited_until_it_is_forgotten(void **state)
{
    struct story *story = *state;
    fork_process(story, 11, 10, 100);
    process_table_fork(story->table, 11, 11, 12, 11, 110);
    process_table_exit(story->table, 11, 12, 150);
    process_table_fork(story->table, 11, 11, 12, 11, 170);
    process_table_exit(story->table, 11, 12, 190);
    process_table_exit(story->table, 11, 11, 200);
    fork_process(story, 11, 10, 300);

    /* In their exits, and afterwards. */
    struct process *first = process_table_find(story->table, 11, 100);
    assert_ptr_equal(process_table_find(story->table, 11, 200), first);
    assert_ptr_equal(process_table_find(story->table, 11, 299), first);
    assert_ptr_not_equal(process_table_find(story->table, 11, 300), first);
    assert_int_equal(process_find_thread(first, 12, 169)->from_ns, 110);
    assert_int_equal(process_find_thread(first, 12, 170)->from_ns, 170);
    assert_int_equal(process_find_thread(first, 12, 299)->from_ns, 170);
    assert_int_equal(process_find_thread(first, 11, 299)->from_ns, 100);
    assert_null(process_find_thread(first, 12, 109));
    assert_null(process_table_find(story->table, 11, 99));
    process_table_prune(story->table, 200);
    assert_null(process_table_find(story->table, 11, 299));
    assert_int_equal(process_table_find(story->table, 11, 300)->from_ns, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(follows_the_names_of_threads),
        STORY(forgets_names_half_by_half),
        STORY(shares_the_room_for_names),
        STORY(ends_a_process_with_its_last_thread),
        STORY(ends_the_other_threads_at_an_exec),
        STORY(a_set_user_id_program_does_not_exit_as_it_starts),
        STORY(leaves_a_zombie_leader_out_of_a_scan),
        STORY(keeps_what_has_exited_until_it_is_forgotten),
        STORY(leaves_what_exited_since_out_of_a_scan),
        STORY(knows_the_kernels_own_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
