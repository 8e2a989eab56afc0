/* SPDX-License-Identifier: Apache-2.0 */

/* What the process table does in one call, whatever its processes have: a bounded part. */
#include "process_story.h"

STORY(forgets_a_bounded_part_at_a_time)
{
    const size_t count = 3 * PROCESS_PRUNE_STEPS;
    for (size_t i = 0; i < count; i++) {
        process_table_fork(story->table, 1, 1, 10 + (int32_t)i, 1, 100);
        process_table_exit(story->table, 1, 10 + (int32_t)i, 101);
    }
    size_t before = process_table_counts(story->table).thread_count;
    assert_true(before >= count);
    for (size_t i = 0; i < 3; i++) {
        process_table_prune(story->table, 200);
        size_t after = process_table_counts(story->table).thread_count;
        assert_in_range(before - after, PROCESS_PRUNE_STEPS - 1, PROCESS_PRUNE_STEPS);
        before = after;
    }
    process_table_prune(story->table, 200);
    assert_in_range(process_table_counts(story->table).thread_count, 0, 2);

    /* What comes between two calls, and what other processes have, is passed over by none. */
    for (int32_t pid = 2; pid < 2 + (int32_t)PROCESS_PRUNE_STEPS * 2; pid++) {
        process_table_comm(story->table, pid, pid, "x", false, 300);
        process_table_gone(story->table, pid, 301);
    }
    process_table_prune(story->table, 400);
    process_table_comm(story->table, 100000, 100000, "x", false, 300);
    process_table_gone(story->table, 100000, 301);
    prune_all(story, 400);
    assert_int_equal(process_table_counts(story->table).process_count, 1);
}

/* vfork() costs a process with many mappings next to nothing, and copying them much. */
STORY(copies_a_bounded_number_of_mappings_in_a_round)
{
    const size_t many = PROCESS_INHERIT_ROUND / 3;
    for (uint64_t i = 0; i < many; i++) {
        map(story, 1, 2 * i, 1, "/x", 100);
    }
    for (uint64_t i = 0; i < PROCESS_INHERIT_FEW; i++) {
        map(story, 2, 2 * i, 1, "/y", 100);
    }
    process_table_begin_round(story->table);
    for (int32_t pid = 10; pid < 13; pid++) {
        fork_process(story, pid, 1, 101);
        assert_string_equal(path_at(story, pid, 0, 101), "/x");
    }
    assert_int_equal(process_table_counts(story->table).counters.table_refused, 0);
    for (size_t i = 0; i < 100; i++) {
        fork_process(story, 13 + (int32_t)i, 1, 101);
        assert_string_equal(path_at(story, 13 + (int32_t)i, 0, 101), "none");
        assert_false(process_table_find(story->table, 13 + (int32_t)i, 101)->scanned);
    }
    assert_int_equal(process_table_counts(story->table).counters.table_refused, 100 * many);
    /* Those of others, who have few, come with all they have. */
    for (int32_t pid = 200; pid < 300; pid++) {
        fork_process(story, pid, 2, 102);
        assert_string_equal(path_at(story, pid, 0, 102), "/y");
    }
    process_table_begin_round(story->table);
    fork_process(story, 300, 1, 103);
    assert_string_equal(path_at(story, 300, 0, 103), "/x");
}
