/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Small stories of threads: their names, and when they and their process have ended.
 */
#include "process_story.h"

static size_t name_count(struct story *story)
{
    return process_find_thread(process_table_find(story->table, 10, 10000), 10, 10000)->name_count;
}

STORY(follows_the_names_of_threads)
{
    const struct scanned_thread scanned = {.tid = 30, .comm = "scanned"};
    PLAY(story, COMM(10, 10, "leader-with-a-long-name", 100), THREAD(10, 10, 12, 10, 200),
         NAME(10, 10, 200, "leader-with-a-l"), NAME(10, 12, 199, "nobody"),
         NAME(10, 12, 200, "leader-with-a-l"), COMM(10, 12, "worker", 210),
         COMM(10, 12, "worker", 220), FORK(20, 10, 205), THREAD(21, 10, 21, 12, 230),
         NAME(20, 20, 230, "leader-with-a-l"), NAME(21, 21, 230, "worker"));
    const struct thread *thread =
        process_find_thread(process_table_find(story->table, 10, 230), 12, 230);
    assert_int_equal(thread->name_count, 2);
    assert_int_equal(thread->names[1].from_ns, 210);
    PLAY(story, THREAD(10, 10, 13, 12, 205), /* late: before its parent's new name */
         NAME(10, 13, 230, "leader-with-a-l"),
         SCAN(30, 200, 201, NO_LINES, .threads = &scanned, .thread_count = 1));
    assert_int_equal(
        process_find_thread(process_table_find(story->table, 30, 9), 30, 9)->names[0].from_ns, 0);
    PLAY(story, COMM(10, 12, "n0", 300), COMM(10, 12, "n1", 301), COMM(10, 12, "n2", 302),
         COMM(10, 12, "n3", 303), COMM(10, 12, "n4", 304), NAME(10, 12, 300, "n0"),
         COMM(10, 12, "late", 250), NAME(10, 12, 249, "worker"), NAME(10, 12, 299, "late"),
         NAME(10, 12, 400, "n4"));
    assert_int_equal(thread->name_count, 8);
    PLAY(story, PRUNE(302), NAME(10, 12, 302, "n2"));
    assert_int_equal(thread->name_count, 3);
}

/* A thread that is renamed all the time has no name for the older half of it, never a wrong one. */
STORY(forgets_names_half_by_half)
{
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
STORY(shares_the_room_for_names)
{
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

STORY(ends_a_process_with_its_last_thread)
{
    PLAY(story, FORK(11, 10, 100), THREAD(11, 11, 12, 11, 110), EXIT(11, 11, 200), /* the leader */
         NAME(11, 11, 200, "nobody"), PATH(11, 1, 250, "none"), EXIT(11, 12, 300),
         PATH(11, 1, 299, "none"), PATH(11, 1, 300, "nobody"),
         /* Of a process that was never read some threads are unknown; its leader's exit decides. */
         COMM(50, 51, "t", 100), EXIT(50, 51, 110), PATH(50, 1, 110, "none"), EXIT(50, 50, 120),
         PATH(50, 1, 120, "nobody"));
}

STORY(ends_the_other_threads_at_an_exec)
{
    const struct scanned_thread renamed = {.tid = 11, .comm = "renamed"};
    /* Thread 12 execs: the leader exits, and 12 takes its number. */
    PLAY(story, FORK(11, 10, 100), THREAD(11, 11, 12, 11, 110), EXIT(11, 11, 190),
         EXEC(11, "new", 200), NAME(11, 12, 199, ""), NAME(11, 12, 200, "nobody"),
         NAME(11, 11, 200, "new"),
         SCAN(11, 210, 211, NO_LINES, .threads = &renamed, .thread_count = 1),
         NAME(11, 11, 210, "renamed"), THREAD(11, 11, 13, 11, 230), EXEC(11, "late", 220),
         NAME(11, 13, 240, "renamed"), EXIT(11, 13, 250), EXIT(11, 11, 300),
         PATH(11, 1, 300, "nobody"));
}

/* The kernel writes an exit record as a program with other rights starts. */
STORY(a_set_user_id_program_does_not_exit_as_it_starts)
{
    PLAY(story, FORK(11, 10, 100), EXEC(11, "su", 200), EXIT(11, 11, 201),
         MAP(11, 1, 1, "/bin/su", 202));
    assert_ptr_equal(living(story, 11, 250), living(story, 11, 150));
    PLAY(story, NAME(11, 11, 250, "su"), PATH(11, 1, 250, "/bin/su"), EXIT(11, 11, 300),
         PATH(11, 1, 300, "nobody"),
         /* What has mapped something and exits is gone; a mapping is of another one. */
         MAP(11, 1, 1, "/bin/other", 400), NAME(11, 11, 400, "nobody"),
         PATH(11, 1, 400, "/bin/other"),
         /* A fork tells of another one, too. */
         FORK(12, 10, 500), EXEC(12, "su", 510), EXIT(12, 12, 511), FORK(12, 10, 520),
         MAP(12, 1, 1, "/bin/other", 530), NAME(12, 12, 515, "nobody"), NAME(12, 12, 530, ""),
         /* And one whose fork was lost may have the pid by now. */
         FORK(13, 10, 600), EXEC(13, "su", 610), EXIT(13, 13, 611));
    process_table_lost(story->table, 620);
    PLAY(story, MAP(13, 1, 1, "/bin/other", 630), NAME(13, 13, 630, "nobody"));
}

/* The exec by which it becomes the first program again is lost, and /proc shows that one. */
STORY(dates_nothing_back_over_records_that_were_lost)
{
    const struct scanned_thread first = {.tid = 11, .comm = "first"};
    const struct scanned_thread other = {.tid = 50, .comm = "other"};
    PLAY(story, FORK(11, 10, 100), EXEC(11, "first", 110), MAP(11, 1, 1, "/first", 120));
    process_table_lost(story->table, 600);
    PLAY(story, EXEC(11, "su", 200), EXIT(11, 11, 201), MAP(11, 1, 1, "/bin/su", 202),
         SCAN(11, 700, 701, LINES({1, 1, "/first", 7}, {8, 1, "", 0}), .threads = &first,
              .thread_count = 1),
         PATH(11, 1, 300, "/bin/su"), PATH(11, 8, 300, "none"), PATH(11, 8, 699, "none"),
         PATH(11, 8, 700, "[anon]"), PATH(11, 1, 700, "/first"), NAME(11, 11, 300, ""),
         NAME(11, 11, 700, "first"),
         /* Nor is what a process was that was there before. */
         SCAN(50, 710, 711, LINES({1, 1, "/other", 7}), .threads = &other, .thread_count = 1),
         PATH(50, 1, 500, "none"), NAME(50, 50, 500, ""), PATH(50, 1, 710, "/other"),
         NAME(50, 50, 710, "other"),
         /* Nor over those after an exec that is told of late. */
         SCAN(60, 480, 481, LINES({8, 1, "", 0})), SCAN(60, 720, 721, LINES({8, 1, "", 0})),
         EXEC(60, "late", 590), PATH(60, 8, 599, "none"), PATH(60, 8, 720, "[anon]"));
}

STORY(leaves_a_zombie_leader_out_of_a_scan)
{
    const struct scanned_thread threads[] = {{.tid = 11}, {.tid = 12}};
    PLAY(story, FORK(11, 10, 100), THREAD(11, 11, 12, 11, 110), EXIT(11, 11, 120),
         SCAN(11, 150, 151, NO_LINES, .threads = threads, .thread_count = 2), EXIT(11, 12, 200),
         PATH(11, 1, 200, "nobody"),
         /* /proc shows only the one that lives. */
         SCAN(21, 150, 151, NO_LINES, .threads = &threads[1], .thread_count = 1), EXIT(21, 12, 200),
         PATH(21, 1, 200, "nobody"));
}

STORY(leaves_what_exited_since_out_of_a_scan)
{
    const struct scanned_thread threads[] = {{.tid = 11, .comm = "a"}, {.tid = 12, .comm = "b"}};
    PLAY(story, FORK(11, 10, 100), THREAD(11, 11, 12, 11, 110), EXIT(11, 12, 155),
         SCAN(11, 150, 160, NO_LINES, .threads = threads, .thread_count = 2),
         NAME(11, 12, 160, "nobody"), NAME(11, 11, 160, "a"), EXIT(11, 11, 200),
         PATH(11, 1, 200, "nobody"));
}

STORY(knows_the_kernels_own_threads)
{
    /* The second is a helper of the kernel, on its way to an exec. */
    PLAY(story, SCAN(2, 10, 0, NO_LINES, .kernel_thread = true), FORK(30, 2, 100),
         FORK(31, 30, 110));
    assert_true(process_table_find(story->table, 30, 100)->kernel_thread);
    assert_true(process_table_find(story->table, 31, 110)->kernel_thread);
    PLAY(story, EXEC(31, "modprobe", 120));
    assert_false(process_table_find(story->table, 31, 120)->kernel_thread);
    /* In a pid namespace of its own, 2 is anybody. */
    PLAY(story, SCAN(2, 300, 0, NO_LINES, .start_time_ns = 200), FORK(32, 2, 310));
    assert_false(process_table_find(story->table, 32, 310)->kernel_thread);
}

STORY(keeps_what_has_exited_until_it_is_forgotten)
{
    PLAY(story, FORK(11, 10, 100), THREAD(11, 11, 12, 11, 110), EXIT(11, 12, 150),
         THREAD(11, 11, 12, 11, 170), EXIT(11, 12, 190), EXIT(11, 11, 200), FORK(11, 10, 300));

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
