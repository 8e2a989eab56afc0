/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Small stories told to the process table: which process and which mapping a sample of each time
 * finds.
 */
#include "process_notes.h"
#include "process_story.h"

/* A module's note of a process begins with zeros, also where another process had its place. */
STORY(a_note_is_of_one_process)
{
    struct process_notes *notes = process_notes_new(sizeof(uint64_t));
    assert_non_null(notes);
    PLAY(story, FORK(11, 10, 100), FORK(12, 10, 100));
    struct process *first = process_table_find(story->table, 11, 100);
    const struct process *second = process_table_find(story->table, 12, 100);
    const size_t place = first->place;
    *(uint64_t *)process_notes_of(notes, first) = 1;
    *(uint64_t *)process_notes_of(notes, second) = 2;
    assert_int_equal(*(uint64_t *)process_notes_of(notes, first), 1);
    PLAY(story, EXIT(11, 11, 200), PRUNE(300));
    assert_null(process_table_find(story->table, 11, 300));
    fork_process(story, 13, 10, 400);
    first = process_table_find(story->table, 13, 400);
    assert_int_equal(first->place, place);
    assert_int_equal(*(uint64_t *)process_notes_of(notes, first), 0);
    assert_int_equal(*(uint64_t *)process_notes_of(notes, second), 2);
    notes = process_notes_free(notes);
}

STORY(a_child_begins_with_its_parents_identity)
{
    PLAY(story, MAP(10, 1, 1, "/a", 100),
         SCAN(10, 110, 111, NO_LINES, .identity_read = true, .identity_matches = true),
         IDENTITY(10, 120, 111, true), FORK(11, 10, 200), IDENTITY(11, 200, 0, true),
         /* The program may be setuid, so it must be read again; until then the last word stands. */
         EXEC(10, "su", 300), IDENTITY(10, 300, 0, true),
         SCAN(10, 310, 311, NO_LINES, .identity_read = true), IDENTITY(10, 320, 311, false),
         FORK(12, 10, 330), IDENTITY(12, 330, 0, false), IDENTITY(11, 330, 0, true),
         /* A reading that says nothing of it changes nothing. */
         SCAN(10, 400, 401, NO_LINES), IDENTITY(10, 410, 311, false));
}

STORY(a_child_that_was_read_before_its_fork_was_told_keeps_its_identity)
{
    PLAY(story, MAP(10, 1, 1, "/a", 100),
         SCAN(11, 210, 211, NO_LINES, .parent_pid = 10, .identity_read = true,
              .identity_matches = true),
         FORK(11, 10, 200), IDENTITY(11, 250, 211, true));
    assert_int_equal(process_table_find(story->table, 11, 250)->parent_pid, 10);
}

static const struct mapping *mapping_of(struct story *story, int32_t pid, uint64_t page,
                                        uint64_t time_ns)
{
    return process_find_mapping(process_table_find(story->table, pid, time_ns), page * PAGE,
                                time_ns);
}

/* Each process has its modules looked up by itself. */
STORY(a_copied_mapping_has_no_module_yet)
{
    map(story, 10, 1, 2, "/old", 100);
    process_find_mapping(process_table_find(story->table, 10, 100), PAGE, 100)->module_id = 5;
    PLAY(story, MAP(10, 1, 1, "/new", 300), FORK(11, 10, 200));
    assert_int_equal(mapping_of(story, 11, 2, 200)->module_id, 0);
    assert_int_equal(mapping_of(story, 10, 2, 300)->module_id, 5);
}

STORY(counts_a_generation_for_what_changes)
{
    PLAY(story, MAP(10, 3, 2, "/record", 100),
         SCAN(10, 150, 160, LINES({1, 8, "/scanned", 7}, {20, 1, "", 0})));
    uint64_t generation = process_table_find(story->table, 10, 200)->generation;
    PLAY(story, SCAN(10, 250, 260, LINES({1, 8, "/scanned", 7}, {20, 1, "", 0})));
    assert_int_equal(process_table_find(story->table, 10, 200)->generation, generation);
    map(story, 10, 5, 1, "//anon", 300);
    assert_int_not_equal(process_table_find(story->table, 10, 300)->generation, generation);
    PLAY(story, PATH(10, 5, 299, "/scanned"), PATH(10, 5, 300, "[anon]"));
}

STORY(drops_a_scan_that_records_have_overtaken)
{
    PLAY(story, EXEC(10, "x", 155), FORK(11, 10, 155), FORK(12, 10, 120), EXIT(12, 12, 155),
         SCAN(10, 150, 160, LINES({1, 4, "/stale", 7})), PATH(10, 1, 158, "none"),
         SCAN(11, 150, 160, LINES({1, 4, "/stale", 7})), PATH(11, 1, 158, "none"),
         SCAN(12, 150, 160, LINES({1, 4, "/stale", 7})), PATH(12, 1, 158, "nobody"),
         /* A zombie: its start is as old as the process that ended. */
         SCAN(12, 170, 0, LINES({1, 4, "/stale", 7}), .start_time_ns = 119),
         PATH(12, 1, 200, "nobody"));
}

STORY(keeps_a_scan_that_is_newer_than_a_late_exec)
{
    PLAY(story, SCAN(10, 100, 101, LINES({1, 1, "/old", 7})),
         SCAN(10, 150, 160, LINES({5, 1, "/new", 8})), EXEC(10, "x", 140), PATH(10, 1, 139, "/old"),
         PATH(10, 1, 140, "none"), PATH(10, 5, 139, "none"), PATH(10, 5, 150, "/new"));
}

STORY(finds_a_new_process_by_its_start_time)
{
    PLAY(story, SCAN(10, 100, 0, LINES({1, 1, "/first", 7}), .start_time_ns = 5),
         SCAN(10, 150, 0, LINES({1, 1, "/second", 8}), .start_time_ns = 120),
         PATH(10, 1, 119, "/first"), PATH(10, 1, 120, "/second"));
    process_table_gone(story->table, 10, 200);
    PLAY(story, PATH(10, 1, 199, "/second"), PATH(10, 1, 200, "nobody"),
         /* Start times are cut to clock ticks: what is known of the end stands. */
         FORK(20, 10, 100), MAP(20, 1, 1, "/short", 110), EXIT(20, 20, 200),
         SCAN(20, 250, 0, LINES({1, 1, "/second", 8}), .start_time_ns = 195),
         PATH(20, 1, 199, "/short"), PATH(20, 1, 200, "/second"),
         /* Of the older one only the end is known. */
         EXIT(30, 30, 200), SCAN(30, 210, 0, LINES({1, 1, "/first", 7}), .start_time_ns = 190),
         PATH(30, 1, 230, "nobody"),
         SCAN(30, 250, 0, LINES({1, 1, "/second", 8}), .start_time_ns = 220),
         PATH(30, 1, 219, "nobody"), PATH(30, 1, 220, "/second"));
}

STORY(lets_a_late_exit_stand_before_the_end_of_a_walk)
{
    /* The last was told before the walk, but it began later. */
    PLAY(story, FORK(11, 10, 100), FORK(12, 10, 100), FORK(13, 10, 250), MAP(11, 1, 1, "/a", 110));
    process_table_walk_begin(story->table);
    process_table_walk_meet(story->table, 12);
    process_table_walk_meet(story->table, -1);
    process_table_walk_end(story->table, 200, 300);
    PLAY(story, PATH(11, 1, 300, "nobody"), PATH(12, 1, 300, "none"), PATH(13, 1, 300, "none"));
    size_t process_count = process_table_counts(story->table).process_count;
    process_table_exit(story->table, 11, 11, 220);
    assert_int_equal(process_table_counts(story->table).process_count, process_count);
    PLAY(story, PATH(11, 1, 219, "/a"), PATH(11, 1, 220, "nobody"));
    /* The next walk is another one. */
    process_table_walk_begin(story->table);
    process_table_walk_end(story->table, 400, 500);
    PLAY(story, PATH(12, 1, 500, "nobody"));
}

STORY(lets_newer_records_stand_before_late_ones)
{
    PLAY(story, FORK(11, 10, 100), MAP(11, 4, 2, "/newer", 300), MAP(11, 2, 6, "/late", 200),
         PATH(11, 2, 200, "/late"), PATH(11, 7, 300, "/late"), PATH(11, 4, 300, "/newer"),
         OFFSET(11, 7, 300, 0x100 + 5), EXEC(11, "x", 250), PATH(11, 4, 300, "/newer"),
         PATH(11, 2, 249, "/late"), PATH(11, 2, 300, "none"), MAP(11, 2, 1, "/older image", 240),
         PATH(11, 2, 300, "none"),
         /* A fork that comes after what its process did. */
         EXEC(12, "early", 410), MAP(12, 1, 1, "/early", 420), FORK(12, 11, 400),
         PATH(12, 1, 399, "nobody"), PATH(12, 1, 420, "/early"), NAME(12, 12, 420, "early"),
         /* What exited had a second thread. */
         FORK(13, 11, 500), EXIT(13, 13, 520), THREAD(13, 13, 14, 13, 510),
         PATH(13, 1, 530, "none"), EXIT(13, 14, 540), PATH(13, 1, 540, "nobody"));
}

STORY(ignores_what_has_no_pid)
{
    PLAY(story, FORK(0, 0, 10), FORK(-1, 10, 10), THREAD(10, 10, 0, 10, 10), EXEC(0, "swapper", 10),
         COMM(5, 0, "x", 10), EXIT(-1, -1, 10), MAP(0, 1, 1, "/x", 10), SCAN(0, 10, 0, NO_LINES));
    process_table_gone(story->table, -1, 10);
    assert_int_equal(process_table_counts(story->table).process_count, 0);
    PLAY(story, FORK(7, 0, 20), PATH(7, 1, 20, "none")); /* of a parent in another pid namespace */
    assert_int_equal(process_table_counts(story->table).process_count, 1);
}

static void expect_counts(struct story *story, size_t mapping_count, size_t thread_count,
                          size_t process_count)
{
    const struct process_table_counts counts = process_table_counts(story->table);
    assert_int_equal(counts.mapping_count, mapping_count);
    assert_int_equal(counts.thread_count, thread_count);
    assert_int_equal(counts.process_count, process_count);
    assert_int_equal(counts.counters.table_refused, 0);
}

STORY(forgets_only_what_the_horizon_has_passed)
{
    /* The second of two equal mappings: what held for no time is not kept. */
    PLAY(story, FORK(11, 10, 100), THREAD(11, 11, 12, 11, 110), EXIT(11, 12, 150),
         MAP(11, 1, 1, "/a", 110), MAP(11, 1, 1, "/b", 160), MAP(11, 1, 1, "/b", 160));
    expect_counts(story, 2, 2, 2);
    PLAY(story, PRUNE(149), PATH(11, 1, 149, "/a"), NAME(11, 12, 149, ""), PRUNE(160));
    expect_counts(story, 1, 1, 2);
    PLAY(story, EXIT(11, 11, 200), PRUNE(199), PATH(11, 1, 199, "/b"), PRUNE(200));
    expect_counts(story, 0, 0, 1);
}

static enum mapping_fate fate_of(struct story *story, int32_t pid, uint64_t page, uint64_t time_ns)
{
    struct process *process = process_table_find(story->table, pid, 100);
    return mapped_file_fate(process_find_mapping(process, page * PAGE, 100)->file, time_ns);
}

STORY(tells_until_when_a_mapping_stayed_as_far_as_records_were_applied)
{
    map(story, 1, 0, 4, "/a", 100);
    map(story, 1, 8, 1, "/b", 100);
    process_table_reach(story->table, 150);
    assert_int_equal(fate_of(story, 1, 0, 150), MAPPING_KEPT);
    assert_int_equal(fate_of(story, 1, 0, 151), MAPPING_AWAITED);
    map(story, 1, 3, 1, "/a", 160);
    map(story, 1, 0, 1, "/a", 170);
    process_table_reach(story->table, 200);
    assert_int_equal(fate_of(story, 1, 0, 159), MAPPING_KEPT);
    assert_int_equal(fate_of(story, 1, 0, 160), MAPPING_REPLACED);
    assert_int_equal(fate_of(story, 1, 8, 200), MAPPING_KEPT);
    exec_process(story, 1, "other", 210);
    assert_int_equal(fate_of(story, 1, 8, 209), MAPPING_AWAITED);
    assert_int_equal(fate_of(story, 1, 8, 210), MAPPING_REPLACED);
}

STORY(frees_a_shared_file_once_with_its_last_mapping)
{
    map(story, 10, 1, 3, "/shared", 100);
    struct mapped_file *file =
        process_find_mapping(process_table_find(story->table, 10, 100), PAGE, 100)->file;
    file->trace_file = malloc(1);
    story->tagged_count = 1;
    PLAY(story, FORK(11, 10, 110), MAP(10, 2, 1, "/split", 120));
    assert_int_equal(file->reference_count, 4); /* left, right, what was between, the child's */
    PLAY(story, EXIT(11, 11, 130), EXEC(10, "x", 130), PRUNE(129));
    assert_int_equal(story->tagged_count, 1);
    process_table_prune(story->table, 130);
    assert_int_equal(story->tagged_count, 0);
}

STORY(keeps_equal_paths_once_and_bounds_long_ones)
{
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
STORY(keeps_a_lookup_short_however_much_has_ended)
{
    for (uint64_t i = 0; i < 60000; i++) {
        map(story, 1, 2 * i, 1, "/x", 100);
    }
    map(story, 1, 0, 200000, "/all", 200);
    assert_string_equal(path_at(story, 1, 1, 150), "none");
    /* The last ones are known still. */
    assert_string_equal(path_at(story, 1, UINT64_C(2) * 59999, 150), "/x");
    assert_in_range(process_table_counts(story->table).mapping_count, 1, PROCESS_HISTORY_MAX + 1);
}

STORY(counts_what_finds_no_place)
{
    for (uint64_t i = 0; i < PROCESS_MAPPINGS_MAX; i++) {
        map(story, 1, 2 * (PROCESS_MAPPINGS_MAX - i), 1, "/x", 100);
    }
    assert_int_equal(process_table_counts(story->table).counters.table_refused, 0);
    PLAY(story, MAP(1, 1, 1, "/no place", 101), PATH(1, 1, 101, "none"),
         /* What is there now goes before what was there. */
         MAP(1, 4, 1, "/instead", 101), PATH(1, 4, 101, "/instead"), PATH(1, 4, 100, "none"),
         PATH(1, PROCESS_MAPPINGS_MAX, 101, "/x"));
    assert_int_equal(process_table_counts(story->table).counters.table_refused, 2);

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

static struct process_scan command_of(int32_t pid, const char *command, uint64_t begin_ns)
{
    return (struct process_scan){.pid = pid,
                                 .begin_ns = begin_ns,
                                 .end_ns = begin_ns + 1,
                                 .command = command,
                                 .command_bytes = strlen(command),
                                 .command_uid = 7};
}

static const char *known_command(struct story *story, int32_t pid, uint64_t time_ns, char ret[64])
{
    const struct process_command *command = process_table_find(story->table, pid, time_ns)->command;
    (void)snprintf(ret, 64, "%.*s", command == NULL ? 0 : (int)command->size_bytes,
                   command == NULL ? "" : command->bytes);
    return ret;
}

STORY(a_child_has_its_parents_command_line_until_it_executes_a_program)
{
    char text[64];
    PLAY(story, FORK(10, 9, 100), EXEC(10, "make", 110));
    struct process_scan scan = command_of(10, "make", 120);
    assert_ptr_equal(process_table_command(story->table, &scan),
                     process_table_find(story->table, 10, 120));
    PLAY(story, FORK(11, 10, 200));
    assert_string_equal(known_command(story, 11, 200, text), "make");
    PLAY(story, EXEC(11, "cc", 300));
    assert_string_equal(known_command(story, 11, 300, text), "");
    assert_string_equal(known_command(story, 10, 300, text), "make");
    scan = command_of(11, "cc", 310);
    assert_non_null(process_table_command(story->table, &scan));
    assert_string_equal(known_command(story, 11, 310, text), "cc");
    const uint64_t number = process_table_find(story->table, 11, 310)->command->number;
    assert_non_null(process_table_command(story->table, &scan)); /* says nothing new */
    assert_int_equal(process_table_find(story->table, 11, 310)->command->number, number);
}

/* It may be that of the program before, or of the process that had the pid. */
STORY(a_command_line_that_was_read_before_an_exec_or_fork_is_dropped)
{
    PLAY(story, FORK(10, 9, 100), EXEC(10, "make", 200));
    struct process_scan scan = command_of(10, "sh", 190);
    assert_null(process_table_command(story->table, &scan));
    scan = command_of(10, "sh", 90);
    assert_null(process_table_command(story->table, &scan));
    scan = command_of(10, "other", 300);
    scan.start_time_ns = 250; /* a later process, whose fork was lost */
    assert_null(process_table_command(story->table, &scan));
    scan = command_of(99, "unknown", 300);
    assert_null(process_table_command(story->table, &scan));
    PLAY(story, EXIT(10, 10, 400));
    scan = command_of(10, "late", 500);
    assert_null(process_table_command(story->table, &scan));
}

STORY(command_lines_of_an_account_leave_room_for_those_of_others)
{
    static char longest[PROCESS_COMMAND_MAX + 1];
    const uint64_t half = PROCESS_TABLE_COMMANDS_MAX / 2 / PROCESS_COMMAND_MAX;
    memset(longest, 'x', PROCESS_COMMAND_MAX);
    fork_process(story, 9, 1, 50);
    for (uint64_t i = 0; i < half + 10; i++) {
        const int32_t pid = 1000 + (int32_t)i;
        fork_process(story, pid, 9, 100);
        struct process_scan scan = command_of(pid, longest, 200);
        struct process *process = process_table_command(story->table, &scan);
        assert_non_null(process);
        assert_int_equal(process->command != NULL, i < half);
    }
    struct process_scan scan = command_of(8, "cc", 200);
    scan.account_known = true;
    scan.account = 5;
    process_table_scan(story->table, &scan);
    assert_non_null(process_table_find(story->table, 8, 200)->command);
    /* What has ended gives it back: one for the other account, one for its own. */
    PLAY(story, EXIT(1000, 1000, 300), EXIT(1001, 1001, 300), PRUNE(400));
    scan = command_of(1000 + (int32_t)half, longest, 500);
    assert_non_null(process_table_command(story->table, &scan)->command);
}
