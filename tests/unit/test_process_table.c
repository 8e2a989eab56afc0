/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Small stories told to the process table: which process and which mapping a sample of each time
 * finds.
 */
#include "process_notes.h"
#include "process_story.h"

#include <stdio.h>
#include <string.h>

static void tells_before_from_after_an_exec(void **state)
{
    struct story *story = *state;
    map(story, 10, 1, 4, "/bin/sh", 100);
    fork_process(story, 11, 10, 200);
    exec_process(story, 11, "make", 300);
    map(story, 11, 2, 4, "/bin/make", 301);

    assert_string_equal(path_at(story, 11, 2, 199), "nobody");
    assert_string_equal(path_at(story, 11, 2, 200), "/bin/sh");
    assert_string_equal(path_at(story, 11, 2, 299), "/bin/sh");
    assert_string_equal(path_at(story, 11, 2, 300), "none");
    assert_string_equal(path_at(story, 11, 2, 301), "/bin/make");
    assert_string_equal(path_at(story, 11, 1, 301), "none");
    assert_string_equal(path_at(story, 10, 2, 400), "/bin/sh");
    const struct process *child = process_table_find(story->table, 11, 400);
    assert_int_equal(child->exec_ns, 300);
    assert_int_equal(child->from_ns, 200);
    assert_int_equal(child->parent_pid, 10);
    assert_true(child->scanned);
}

/* A module's note of a process begins with zeros, also where another process had its place. */
static void a_note_is_of_one_process(void **state)
{
    struct story *story = *state;
    struct process_notes *notes = process_notes_new(sizeof(uint64_t));
    assert_non_null(notes);
    fork_process(story, 11, 10, 100);
    fork_process(story, 12, 10, 100);
    struct process *first = process_table_find(story->table, 11, 100);
    const struct process *second = process_table_find(story->table, 12, 100);
    const size_t place = first->place;
    *(uint64_t *)process_notes_of(notes, first) = 1;
    *(uint64_t *)process_notes_of(notes, second) = 2;
    assert_int_equal(*(uint64_t *)process_notes_of(notes, first), 1);
    process_table_exit(story->table, 11, 11, 200);
    process_table_prune(story->table, 300);
    assert_null(process_table_find(story->table, 11, 300));
    fork_process(story, 13, 10, 400);
    first = process_table_find(story->table, 13, 400);
    assert_int_equal(first->place, place);
    assert_int_equal(*(uint64_t *)process_notes_of(notes, first), 0);
    assert_int_equal(*(uint64_t *)process_notes_of(notes, second), 2);
    notes = process_notes_free(notes);
}

static void knows_a_child_as_well_as_its_parent(void **state)
{
    struct story *story = *state;
    map(story, 10, 1, 1, "/a", 100);
    fork_process(story, 11, 10, 200);
    assert_false(process_table_find(story->table, 11, 200)->scanned);
    scan(story, (struct process_scan){.pid = 10, .begin_ns = 210, .end_ns = 211}, NULL, 0);
    fork_process(story, 12, 10, 220);
    assert_true(process_table_find(story->table, 12, 220)->scanned);
}

/* Whether the filter's verdict on uid and cgroups is known, and what it is. */
static void expect_identity(struct story *story, int32_t pid, uint64_t time_ns, uint64_t read_ns,
                            bool matches)
{
    const struct process *process = process_table_find(story->table, pid, time_ns);
    assert_non_null(process);
    assert_int_equal(process->identity_ns, read_ns);
    assert_int_equal(process->identity_matches, matches);
}

static void a_child_begins_with_its_parents_identity(void **state)
{
    struct story *story = *state;
    struct process_scan reading = {
        .pid = 10, .begin_ns = 110, .end_ns = 111, .identity_read = true, .identity_matches = true};
    map(story, 10, 1, 1, "/a", 100);
    scan(story, reading, NULL, 0);
    expect_identity(story, 10, 120, 111, true);
    fork_process(story, 11, 10, 200);
    expect_identity(story, 11, 200, 0, true);
    /* The program may be setuid, so it must be read again; until then the last word stands. */
    exec_process(story, 10, "su", 300);
    expect_identity(story, 10, 300, 0, true);
    reading.begin_ns = 310;
    reading.end_ns = 311;
    reading.identity_matches = false;
    scan(story, reading, NULL, 0);
    expect_identity(story, 10, 320, 311, false);
    fork_process(story, 12, 10, 330);
    expect_identity(story, 12, 330, 0, false);
    expect_identity(story, 11, 330, 0, true);
    /* A reading that says nothing of it changes nothing. */
    scan(story, (struct process_scan){.pid = 10, .begin_ns = 400, .end_ns = 401}, NULL, 0);
    expect_identity(story, 10, 410, 311, false);
}

static void a_child_that_was_read_before_its_fork_was_told_keeps_its_identity(void **state)
{
    struct story *story = *state;
    map(story, 10, 1, 1, "/a", 100);
    scan(story,
         (struct process_scan){.pid = 11,
                               .parent_pid = 10,
                               .begin_ns = 210,
                               .end_ns = 211,
                               .identity_read = true,
                               .identity_matches = true},
         NULL, 0);
    fork_process(story, 11, 10, 200);
    expect_identity(story, 11, 250, 211, true);
}

static void copies_mappings_as_they_were_at_the_fork(void **state)
{
    struct story *story = *state;
    map(story, 10, 1, 2, "/old", 100);
    struct mapping *written =
        process_find_mapping(process_table_find(story->table, 10, 100), PAGE, 100);
    written->module_id = 5;
    map(story, 10, 1, 1, "/new", 300);
    fork_process(story, 11, 10, 200); /* told late */
    assert_string_equal(path_at(story, 11, 1, 300), "/old");
    assert_string_equal(path_at(story, 11, 2, 300), "/old");
    assert_string_equal(path_at(story, 10, 1, 300), "/new");
    const struct mapping *copy =
        process_find_mapping(process_table_find(story->table, 11, 200), 2 * PAGE, 200);
    assert_int_equal(copy->module_id, 0);
    assert_int_equal(copy->from_ns, 200);
    const struct mapping *kept =
        process_find_mapping(process_table_find(story->table, 10, 300), 2 * PAGE, 300);
    assert_int_equal(kept->module_id, 5);
}

static void keeps_a_reused_pid_apart(void **state)
{
    struct story *story = *state;
    fork_process(story, 11, 10, 100);
    map(story, 11, 1, 1, "/first", 110);
    process_table_exit(story->table, 11, 11, 200);
    fork_process(story, 11, 10, 300);
    map(story, 11, 1, 1, "/second", 310);
    assert_string_equal(path_at(story, 11, 1, 150), "/first");
    assert_string_equal(path_at(story, 11, 1, 200), "nobody");
    assert_string_equal(path_at(story, 11, 1, 300), "none");
    assert_string_equal(path_at(story, 11, 1, 310), "/second");
    fork_process(story, 11, 10, 400); /* its exit was lost */
    assert_string_equal(path_at(story, 11, 1, 399), "/second");
    assert_string_equal(path_at(story, 11, 1, 400), "none");
}

static void keeps_what_an_address_was_before_its_reuse(void **state)
{
    struct story *story = *state;
    map(story, 10, 10, 10, "/lib/a", 100);
    map(story, 10, 13, 2, "/lib/b", 200); /* splits it */
    map(story, 10, 8, 3, "/lib/c", 300);  /* trims its beginning */
    map(story, 10, 19, 5, "/lib/d", 400); /* trims its end */
    static const struct {
        uint64_t page;
        uint64_t time_ns;
        const char *path;
    } rows[] = {
        {10, 99, "none"},    {10, 100, "/lib/a"}, {10, 299, "/lib/a"}, {10, 300, "/lib/c"},
        {11, 500, "/lib/a"}, {13, 199, "/lib/a"}, {13, 200, "/lib/b"}, {14, 500, "/lib/b"},
        {15, 500, "/lib/a"}, {18, 500, "/lib/a"}, {19, 399, "/lib/a"}, {19, 400, "/lib/d"},
        {8, 299, "none"},    {8, 300, "/lib/c"},  {23, 400, "/lib/d"}, {24, 400, "none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(path_at(story, 10, rows[i].page, rows[i].time_ns), rows[i].path);
    }
    assert_int_equal(offset_at(story, 10, 18, 500), (0x100 + 8) * PAGE);
    assert_int_equal(offset_at(story, 10, 12, 500), (0x100 + 2) * PAGE);
    assert_int_equal(offset_at(story, 10, 13, 199), (0x100 + 3) * PAGE);
}

static void lays_a_scan_beneath_records(void **state)
{
    struct story *story = *state;
    map(story, 10, 3, 2, "/record", 100);
    static const struct scan_line lines[] = {{1, 8, "/scanned", 7}, {20, 1, "", 0}};
    scan(story, (struct process_scan){.pid = 10, .begin_ns = 150, .end_ns = 160}, lines, 2);
    assert_string_equal(path_at(story, 10, 1, 5), "/scanned");
    assert_string_equal(path_at(story, 10, 3, 99), "none");
    assert_string_equal(path_at(story, 10, 3, 100), "/record");
    assert_string_equal(path_at(story, 10, 5, 5), "/scanned");
    assert_string_equal(path_at(story, 10, 20, 5), "[anon]");
    assert_int_equal(offset_at(story, 10, 8, 5), 8 * PAGE);

    uint64_t generation = process_table_find(story->table, 10, 200)->generation;
    scan(story, (struct process_scan){.pid = 10, .begin_ns = 250, .end_ns = 260}, lines, 2);
    assert_int_equal(process_table_find(story->table, 10, 200)->generation, generation);
    map(story, 10, 5, 1, "//anon", 300);
    assert_int_not_equal(process_table_find(story->table, 10, 300)->generation, generation);
    assert_string_equal(path_at(story, 10, 5, 299), "/scanned");
    assert_string_equal(path_at(story, 10, 5, 300), "[anon]");
}

static void lets_a_newer_scan_replace_an_older_one(void **state)
{
    struct story *story = *state;
    static const struct scan_line first[] = {{1, 4, "/a", 7}};
    static const struct scan_line second[] = {{3, 4, "/b", 8}};
    scan(story, (struct process_scan){.pid = 10, .begin_ns = 150, .end_ns = 160}, first, 1);
    scan(story, (struct process_scan){.pid = 10, .begin_ns = 250, .end_ns = 260}, second, 1);
    assert_string_equal(path_at(story, 10, 2, 300), "/a");
    assert_string_equal(path_at(story, 10, 3, 249), "/a");
    assert_string_equal(path_at(story, 10, 3, 250), "/b");
    assert_string_equal(path_at(story, 10, 6, 249), "none"); /* or it would have been there */
    assert_string_equal(path_at(story, 10, 6, 250), "/b");
}

static void drops_a_scan_that_records_have_overtaken(void **state)
{
    struct story *story = *state;
    static const struct scan_line lines[] = {{1, 4, "/stale", 7}};
    exec_process(story, 10, "x", 155);
    fork_process(story, 11, 10, 155);
    fork_process(story, 12, 10, 120);
    process_table_exit(story->table, 12, 12, 155);
    for (int32_t pid = 10; pid <= 12; pid++) {
        scan(story, (struct process_scan){.pid = pid, .begin_ns = 150, .end_ns = 160}, lines, 1);
        assert_string_not_equal(path_at(story, pid, 1, 158), "/stale");
    }
    /* A zombie: its start is as old as the process that ended. */
    scan(story, (struct process_scan){.pid = 12, .start_time_ns = 119, .begin_ns = 170}, lines, 1);
    assert_string_equal(path_at(story, 12, 1, 200), "nobody");
}

static void keeps_a_scan_that_is_newer_than_a_late_exec(void **state)
{
    struct story *story = *state;
    static const struct scan_line old[] = {{1, 1, "/old", 7}};
    static const struct scan_line new[] = {{5, 1, "/new", 8}};
    scan(story, (struct process_scan){.pid = 10, .begin_ns = 100, .end_ns = 101}, old, 1);
    scan(story, (struct process_scan){.pid = 10, .begin_ns = 150, .end_ns = 160}, new, 1);
    exec_process(story, 10, "x", 140);
    assert_string_equal(path_at(story, 10, 1, 139), "/old");
    assert_string_equal(path_at(story, 10, 1, 140), "none");
    assert_string_equal(path_at(story, 10, 5, 139), "none");
    assert_string_equal(path_at(story, 10, 5, 150), "/new");
}

static void takes_no_scan_of_the_parent_for_one_of_the_child(void **state)
{
    struct story *story = *state;
    static const struct scan_line lines[] = {{1, 1, "/parent", 7}};
    scan(story, (struct process_scan){.pid = 10, .begin_ns = 200, .end_ns = 201}, lines, 1);
    fork_process(story, 11, 10, 180);
    exec_process(story, 11, "x", 190);
    assert_string_equal(path_at(story, 11, 1, 189), "/parent");
    assert_string_equal(path_at(story, 11, 1, 190), "none");
}

static void takes_a_scan_for_the_fork_that_is_told_after_it(void **state)
{
    struct story *story = *state;
    static const struct scan_line lines[] = {{5, 1, "/child", 8}};
    const struct scanned_thread thread = {.tid = 11, .comm = "child"};
    map(story, 10, 1, 1, "/parent", 50);
    scan(story,
         (struct process_scan){.pid = 11,
                               .parent_pid = 10,
                               .start_time_ns = 90,
                               .threads = &thread,
                               .thread_count = 1,
                               .begin_ns = 150,
                               .end_ns = 160},
         lines, 1);
    fork_process(story, 11, 10, 100);
    assert_string_equal(path_at(story, 11, 5, 99), "nobody");
    assert_string_equal(path_at(story, 11, 5, 100), "/child");
    assert_string_equal(name_of(story, 11, 11, 170), "child");
    assert_int_equal(process_table_counts(story->table).thread_count, 1);
    process_table_exit(story->table, 11, 11, 200);
    assert_string_equal(path_at(story, 11, 5, 200), "nobody");
}

static void finds_a_new_process_by_its_start_time(void **state)
{
    struct story *story = *state;
    static const struct scan_line first[] = {{1, 1, "/first", 7}};
    static const struct scan_line second[] = {{1, 1, "/second", 8}};
    scan(story, (struct process_scan){.pid = 10, .start_time_ns = 5, .begin_ns = 100}, first, 1);
    scan(story, (struct process_scan){.pid = 10, .start_time_ns = 120, .begin_ns = 150}, second, 1);
    assert_string_equal(path_at(story, 10, 1, 119), "/first");
    assert_string_equal(path_at(story, 10, 1, 120), "/second");
    process_table_gone(story->table, 10, 200);
    assert_string_equal(path_at(story, 10, 1, 199), "/second");
    assert_string_equal(path_at(story, 10, 1, 200), "nobody");

    /* Start times are cut to clock ticks: what is known of the end stands. */
    fork_process(story, 20, 10, 100);
    map(story, 20, 1, 1, "/short", 110);
    process_table_exit(story->table, 20, 20, 200);
    scan(story, (struct process_scan){.pid = 20, .start_time_ns = 195, .begin_ns = 250}, second, 1);
    assert_string_equal(path_at(story, 20, 1, 199), "/short");
    assert_string_equal(path_at(story, 20, 1, 200), "/second");

    /* Of the older one only the end is known. */
    process_table_exit(story->table, 30, 30, 200);
    scan(story, (struct process_scan){.pid = 30, .start_time_ns = 190, .begin_ns = 210}, first, 1);
    assert_string_equal(path_at(story, 30, 1, 230), "nobody");
    scan(story, (struct process_scan){.pid = 30, .start_time_ns = 220, .begin_ns = 250}, second, 1);
    assert_string_equal(path_at(story, 30, 1, 219), "nobody");
    assert_string_equal(path_at(story, 30, 1, 220), "/second");
}

static void lets_a_late_exit_stand_before_the_end_of_a_walk(void **state)
{
    struct story *story = *state;
    fork_process(story, 11, 10, 100);
    fork_process(story, 12, 10, 100);
    fork_process(story, 13, 10, 250); /* told before, but it began later */
    map(story, 11, 1, 1, "/a", 110);
    process_table_walk_begin(story->table);
    process_table_walk_meet(story->table, 12);
    process_table_walk_meet(story->table, -1);
    process_table_walk_end(story->table, 200, 300);
    assert_null(living(story, 11, 300));
    assert_non_null(living(story, 12, 300));
    assert_non_null(living(story, 13, 300));
    size_t process_count = process_table_counts(story->table).process_count;
    process_table_exit(story->table, 11, 11, 220);
    assert_int_equal(process_table_counts(story->table).process_count, process_count);
    assert_string_equal(path_at(story, 11, 1, 219), "/a");
    assert_null(living(story, 11, 220));
    /* The next walk is another one. */
    process_table_walk_begin(story->table);
    process_table_walk_end(story->table, 400, 500);
    assert_null(living(story, 12, 500));
}

static void lets_newer_records_stand_before_late_ones(void **state)
{
    struct story *story = *state;
    fork_process(story, 11, 10, 100);
    map(story, 11, 4, 2, "/newer", 300);
    map(story, 11, 2, 6, "/late", 200);
    assert_string_equal(path_at(story, 11, 2, 200), "/late");
    assert_string_equal(path_at(story, 11, 7, 300), "/late");
    assert_string_equal(path_at(story, 11, 4, 300), "/newer");
    assert_int_equal(offset_at(story, 11, 7, 300), (0x100 + 5) * PAGE);
    exec_process(story, 11, "x", 250);
    assert_string_equal(path_at(story, 11, 4, 300), "/newer");
    assert_string_equal(path_at(story, 11, 2, 249), "/late");
    assert_string_equal(path_at(story, 11, 2, 300), "none");
    map(story, 11, 2, 1, "/older image", 240);
    assert_string_equal(path_at(story, 11, 2, 300), "none");

    exec_process(story, 12, "early", 410); /* its fork comes after */
    map(story, 12, 1, 1, "/early", 420);
    fork_process(story, 12, 11, 400);
    assert_string_equal(path_at(story, 12, 1, 399), "nobody");
    assert_string_equal(path_at(story, 12, 1, 420), "/early");
    assert_string_equal(name_of(story, 12, 12, 420), "early");

    fork_process(story, 13, 11, 500);
    process_table_exit(story->table, 13, 13, 520);
    process_table_fork(story->table, 13, 13, 14, 13, 510); /* it had a second thread */
    assert_non_null(living(story, 13, 530));
    process_table_exit(story->table, 13, 14, 540);
    assert_null(living(story, 13, 540));
}

static void ignores_what_has_no_pid(void **state)
{
    struct story *story = *state;
    fork_process(story, 0, 0, 10);
    fork_process(story, -1, 10, 10);
    process_table_fork(story->table, 10, 10, 0, 10, 10);
    process_table_comm(story->table, 0, 0, "swapper", true, 10);
    process_table_comm(story->table, 5, 0, "x", false, 10);
    process_table_exit(story->table, -1, -1, 10);
    map(story, 0, 1, 1, "/x", 10);
    process_table_gone(story->table, -1, 10);
    scan(story, (struct process_scan){.pid = 0, .begin_ns = 10}, NULL, 0);
    assert_int_equal(process_table_counts(story->table).process_count, 0);
    fork_process(story, 7, 0, 20); /* its parent is in another pid namespace */
    assert_non_null(living(story, 7, 20));
    assert_int_equal(process_table_counts(story->table).process_count, 1);
}

static void forgets_only_what_the_horizon_has_passed(void **state)
{
    struct story *story = *state;
    fork_process(story, 11, 10, 100);
    process_table_fork(story->table, 11, 11, 12, 11, 110);
    process_table_exit(story->table, 11, 12, 150);
    map(story, 11, 1, 1, "/a", 110);
    map(story, 11, 1, 1, "/b", 160);
    map(story, 11, 1, 1, "/b", 160); /* what held for no time is not kept */
    assert_int_equal(process_table_counts(story->table).mapping_count, 2);
    process_table_prune(story->table, 149);
    assert_string_equal(path_at(story, 11, 1, 149), "/a");
    assert_string_equal(name_of(story, 11, 12, 149), "");
    process_table_prune(story->table, 160);
    struct process_table_counts counts = process_table_counts(story->table);
    assert_int_equal(counts.mapping_count, 1);
    assert_int_equal(counts.thread_count, 1);
    assert_int_equal(counts.process_count, 2);
    process_table_exit(story->table, 11, 11, 200);
    process_table_prune(story->table, 199);
    assert_string_equal(path_at(story, 11, 1, 199), "/b");
    process_table_prune(story->table, 200);
    counts = process_table_counts(story->table);
    assert_int_equal(counts.mapping_count, 0);
    assert_int_equal(counts.thread_count, 0);
    assert_int_equal(counts.process_count, 1);
    assert_int_equal(counts.counters.table_refused, 0);
}

static void frees_a_shared_file_once_with_its_last_mapping(void **state)
{
    struct story *story = *state;
    map(story, 10, 1, 3, "/shared", 100);
    struct mapped_file *file =
        process_find_mapping(process_table_find(story->table, 10, 100), PAGE, 100)->file;
    file->trace_file = malloc(1);
    story->tagged_count = 1;
    fork_process(story, 11, 10, 110);
    map(story, 10, 2, 1, "/split", 120);
    assert_int_equal(file->reference_count, 4); /* left, right, what was between, the child's */
    process_table_exit(story->table, 11, 11, 130);
    exec_process(story, 10, "x", 130);
    process_table_prune(story->table, 129);
    assert_int_equal(story->tagged_count, 1);
    process_table_prune(story->table, 130);
    assert_int_equal(story->tagged_count, 0);
}

static void keeps_equal_paths_once_and_bounds_long_ones(void **state)
{
    struct story *story = *state;
    char path[4001];
    for (uint64_t i = 0; i < 1000; i++) {
        map(story, (int32_t)(1 + i % 10), 2 * i, 1, "/usr/lib/libc.so", 100);
    }
    assert_int_equal(process_table_counts(story->table).path_bytes, strlen("/usr/lib/libc.so"));
    for (int32_t pid = 1; pid <= 10; pid++) {
        process_table_gone(story->table, pid, 101);
    }
    process_table_prune(story->table, 101);
    assert_int_equal(process_table_counts(story->table).path_bytes, 0);

    for (uint64_t i = 0; i < PROCESS_MAPPINGS_MAX; i++) {
        memset(path, 'x', sizeof path);
        (void)snprintf(path + sizeof path - 20, 20, "%d", (int)i);
        path[0] = '/';
        map(story, 20, 2 * i, 1, path, 102);
    }
    struct process_table_counts counts = process_table_counts(story->table);
    assert_in_range(counts.path_bytes, PROCESS_MAPPINGS_MAX * MAPPING_WEIGHT_BYTES / 2,
                    PROCESS_MAPPINGS_MAX * MAPPING_WEIGHT_BYTES);
    assert_int_equal(counts.counters.table_refused, PROCESS_MAPPINGS_MAX - counts.mapping_count);
}

/* A process that maps and unmaps as fast as it can makes no sample slow. */
static void keeps_a_lookup_short_however_much_has_ended(void **state)
{
    struct story *story = *state;
    for (uint64_t i = 0; i < 60000; i++) {
        map(story, 1, 2 * i, 1, "/x", 100);
    }
    map(story, 1, 0, 200000, "/all", 200);
    assert_string_equal(path_at(story, 1, 1, 150), "none");
    /* The last ones are known still. */
    assert_string_equal(path_at(story, 1, UINT64_C(2) * 59999, 150), "/x");
    assert_in_range(process_table_counts(story->table).mapping_count, 1, PROCESS_HISTORY_MAX + 1);
}

/* In so many calls as a table needs that is as full as can be. */
static void prune_all(struct story *story, uint64_t horizon_ns)
{
    const size_t full = PROCESS_TABLE_THREADS_MAX + PROCESS_TABLE_MAPPINGS_MAX;
    for (size_t steps = 0; steps <= full; steps += PROCESS_PRUNE_STEPS) {
        process_table_prune(story->table, horizon_ns);
    }
}

static void counts_what_finds_no_place(void **state)
{
    struct story *story = *state;
    for (uint64_t i = 0; i < PROCESS_MAPPINGS_MAX; i++) {
        map(story, 1, 2 * (PROCESS_MAPPINGS_MAX - i), 1, "/x", 100);
    }
    assert_int_equal(process_table_counts(story->table).counters.table_refused, 0);
    map(story, 1, 1, 1, "/no place", 101);
    assert_string_equal(path_at(story, 1, 1, 101), "none");
    /* What is there now goes before what was there. */
    map(story, 1, 4, 1, "/instead", 101);
    assert_string_equal(path_at(story, 1, 4, 101), "/instead");
    assert_string_equal(path_at(story, 1, 4, 100), "none");
    assert_int_equal(process_table_counts(story->table).counters.table_refused, 2);
    assert_string_equal(path_at(story, 1, PROCESS_MAPPINGS_MAX, 101), "/x");

    /* Many large processes leave less and less to each other, and a few mappings to every one. */
    for (uint64_t i = 0; i < PROCESS_INHERIT_ROUND; i++) {
        map(story, 300, 2 * i, 1, "/x", 100);
    }
    own(story, 1, 0, 102);
    own(story, 300, 0, 102);
    for (int32_t pid = 2; pid < 102; pid++) {
        process_table_begin_round(story->table);
        fork_process(story, pid, 300, 102);
    }
    struct process_table_counts counts = process_table_counts(story->table);
    assert_in_range(counts.mapping_count, PROCESS_TABLE_MAPPINGS_MAX / 5,
                    PROCESS_TABLE_MAPPINGS_MAX / 4 + 102 * PROCESS_MAPPINGS_RESERVED);
    assert_true(counts.counters.table_refused > PROCESS_MAPPINGS_MAX);
    for (uint64_t i = 0; i < PROCESS_MAPPINGS_RESERVED; i++) {
        map(story, 200, 2 * i, 1, "/mine", 103);
        assert_string_equal(path_at(story, 200, 2 * i, 103), "/mine");
    }
    for (int32_t pid = 2; pid < 102; pid++) {
        process_table_gone(story->table, pid, 103);
    }
    process_table_gone(story->table, 200, 103);
    process_table_gone(story->table, 300, 103);
    prune_all(story, 103);
    assert_int_equal(process_table_counts(story->table).mapping_count, PROCESS_MAPPINGS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(tells_before_from_after_an_exec),
        STORY(a_note_is_of_one_process),
        STORY(knows_a_child_as_well_as_its_parent),
        STORY(a_child_begins_with_its_parents_identity),
        STORY(a_child_that_was_read_before_its_fork_was_told_keeps_its_identity),
        STORY(copies_mappings_as_they_were_at_the_fork),
        STORY(keeps_a_reused_pid_apart),
        STORY(keeps_what_an_address_was_before_its_reuse),
        STORY(lays_a_scan_beneath_records),
        STORY(lets_a_newer_scan_replace_an_older_one),
        STORY(drops_a_scan_that_records_have_overtaken),
        STORY(keeps_a_scan_that_is_newer_than_a_late_exec),
        STORY(takes_no_scan_of_the_parent_for_one_of_the_child),
        STORY(takes_a_scan_for_the_fork_that_is_told_after_it),
        STORY(finds_a_new_process_by_its_start_time),
        STORY(lets_a_late_exit_stand_before_the_end_of_a_walk),
        STORY(lets_newer_records_stand_before_late_ones),
        STORY(ignores_what_has_no_pid),
        STORY(forgets_only_what_the_horizon_has_passed),
        STORY(frees_a_shared_file_once_with_its_last_mapping),
        STORY(keeps_equal_paths_once_and_bounds_long_ones),
        STORY(keeps_a_lookup_short_however_much_has_ended),
        STORY(counts_what_finds_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
