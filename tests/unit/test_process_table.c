/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Small stories told to the process table, and what a sample of each time must then find.
 */
#include "process_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE ((uint64_t)0x1000)

struct story {
    struct process_table *table;
    size_t tagged_count; /* files that carry a mark of the test and are not freed yet */
};

static void on_file_free(struct mapped_file *file, void *userdata)
{
    struct story *story = userdata;
    assert_int_equal(file->reference_count, 0);
    if (file->trace_file != NULL) {
        free(file->trace_file);
        file->trace_file = NULL;
        story->tagged_count--;
    }
}

static int set_up(void **state)
{
    struct story *story = calloc(1, sizeof *story);
    assert_non_null(story);
    story->table = process_table_new(on_file_free, story);
    assert_non_null(story->table);
    *state = story;
    return 0;
}

static int tear_down(void **state)
{
    struct story *story = *state;
    story->table = process_table_free(story->table);
    assert_int_equal(story->tagged_count, 0);
    free(story);
    return 0;
}

static void map(struct story *story, int32_t pid, uint64_t first_page, uint64_t page_count,
                const char *path, uint64_t time_ns)
{
    const struct mapping_description description = {
        .start = first_page * PAGE,
        .end = (first_page + page_count) * PAGE,
        .file_offset = 0x100 * PAGE,
        .path = path,
    };
    process_table_mmap(story->table, pid, &description, time_ns);
}

static void fork_process(struct story *story, int32_t pid, int32_t parent_pid, uint64_t time_ns)
{
    process_table_fork(story->table, pid, parent_pid, pid, parent_pid, time_ns);
}

static void exec_process(struct story *story, int32_t pid, const char *comm, uint64_t time_ns)
{
    process_table_comm(story->table, pid, pid, comm, true, time_ns);
}

/* The path at a page, "none" without a mapping, "nobody" without a process. */
static const char *path_at(struct story *story, int32_t pid, uint64_t page, uint64_t time_ns)
{
    struct process *process = process_table_find(story->table, pid, time_ns);
    if (process == NULL) {
        return "nobody";
    }
    const struct mapping *mapping = process_find_mapping(process, page * PAGE + 7, time_ns);
    if (mapping == NULL) {
        return "none";
    }
    /* Whatever was trimmed: offsets follow from where the file was mapped at first. */
    assert_true(mapping->start <= page * PAGE && page * PAGE < mapping->end);
    assert_true(mapping->from_ns <= time_ns && time_ns < mapping->to_ns);
    return mapping->file->path;
}

static uint64_t offset_at(struct story *story, int32_t pid, uint64_t page, uint64_t time_ns)
{
    struct process *process = process_table_find(story->table, pid, time_ns);
    assert_non_null(process);
    const struct mapping *mapping = process_find_mapping(process, page * PAGE, time_ns);
    assert_non_null(mapping);
    return mapping->file_offset + (page * PAGE - mapping->start);
}

/* The newest name of a thread, "nobody" without a thread. */
static const char *name_of(struct story *story, int32_t pid, int32_t tid, uint64_t time_ns)
{
    struct process *process = process_table_find(story->table, pid, time_ns);
    const struct thread *thread =
        process == NULL ? NULL : process_find_thread(process, tid, time_ns);
    if (thread == NULL) {
        return "nobody";
    }
    return thread->name_count == 0 ? "" : thread->names[(thread->name_count - 1) % NAMES_KEPT].text;
}

struct scan_line {
    uint64_t first_page;
    uint64_t page_count;
    const char *path;
    uint64_t inode;
};

static void scan(struct story *story, struct process_scan reading, const struct scan_line *lines,
                 size_t line_count)
{
    struct mapping_description mappings[8] = {0};
    assert_true(line_count <= 8);
    for (size_t i = 0; i < line_count; i++) {
        mappings[i] = (struct mapping_description){
            .start = lines[i].first_page * PAGE,
            .end = (lines[i].first_page + lines[i].page_count) * PAGE,
            .file_offset = lines[i].first_page * PAGE,
            .path = lines[i].path,
            .device_major = 8,
            .inode = lines[i].inode,
        };
    }
    reading.mappings = mappings;
    reading.mapping_count = line_count;
    process_table_scan(story->table, &reading);
}

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
    assert_string_equal(path_at(story, 10, 6, 5), "/b");
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
    assert_string_equal(path_at(story, 10, 5, 140), "/new");
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
    for (unsigned i = 0; i < 5; i++) {
        char name[COMM_BYTES];
        (void)snprintf(name, sizeof name, "n%u", i);
        process_table_comm(story->table, 10, 12, name, false, 300 + i);
    }
    assert_int_equal(thread->name_count, 7);
    assert_string_equal(thread->names[6 % NAMES_KEPT].text, "n4");
    process_table_comm(story->table, 10, 12, "late", false, 250);
    assert_int_equal(thread->name_count, 7);
    assert_string_equal(name_of(story, 10, 12, 400), "n4");
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
    assert_non_null(process_table_find(story->table, 50, 110));
    process_table_exit(story->table, 50, 50, 120);
    assert_null(process_table_find(story->table, 50, 120));
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
    process_table_exit(story->table, 11, 11, 300);
    assert_null(process_table_find(story->table, 11, 300));
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
    assert_null(process_table_find(story->table, 11, 200));
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
    assert_non_null(process_table_find(story->table, 13, 530));
    process_table_exit(story->table, 13, 14, 540);
    assert_null(process_table_find(story->table, 13, 540));
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
    assert_non_null(process_table_find(story->table, 7, 20));
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
    assert_int_equal(counts.refused_count, 0);
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

static void counts_what_finds_no_place(void **state)
{
    struct story *story = *state;
    for (uint64_t i = 0; i < PROCESS_MAPPINGS_MAX; i++) {
        map(story, 1, 2 * (PROCESS_MAPPINGS_MAX - i), 1, "/x", 100);
    }
    assert_int_equal(process_table_counts(story->table).refused_count, 0);
    map(story, 1, 1, 1, "/no place", 101);
    assert_string_equal(path_at(story, 1, 1, 101), "none");
    /* What is there now goes before what was there. */
    map(story, 1, 4, 1, "/instead", 101);
    assert_string_equal(path_at(story, 1, 4, 101), "/instead");
    assert_string_equal(path_at(story, 1, 4, 100), "none");
    assert_int_equal(process_table_counts(story->table).refused_count, 2);
    assert_string_equal(path_at(story, 1, PROCESS_MAPPINGS_MAX, 101), "/x");

    int32_t pid = 2;
    while (process_table_counts(story->table).mapping_count < PROCESS_TABLE_MAPPINGS_MAX) {
        fork_process(story, pid, 1, 102);
        pid++;
    }
    uint64_t refused_count = process_table_counts(story->table).refused_count;
    map(story, pid, 1, 1, "/no place", 103);
    assert_int_equal(process_table_counts(story->table).refused_count, refused_count + 1);

    for (int32_t tid = 2; tid < (int32_t)PROCESS_TABLE_THREADS_MAX + 2; tid++) {
        process_table_fork(story->table, 1, 1, tid, 1, 104);
    }
    assert_int_equal(process_table_counts(story->table).thread_count, PROCESS_TABLE_THREADS_MAX);
    process_table_gone(story->table, 1, 105);
    process_table_prune(story->table, 105);

    for (int32_t i = 1; i < (int32_t)PROCESS_TABLE_PROCESSES_MAX + 100; i++) {
        process_table_comm(story->table, 100000 + i, 100000 + i, "x", false, 110);
    }
    assert_int_equal(process_table_counts(story->table).process_count, PROCESS_TABLE_PROCESSES_MAX);
    assert_null(process_table_find(story->table, 99 + 100000 + PROCESS_TABLE_PROCESSES_MAX, 110));
    for (int32_t i = 1; i < (int32_t)PROCESS_TABLE_PROCESSES_MAX + 100; i++) {
        process_table_gone(story->table, i, 120);
        process_table_gone(story->table, 100000 + i, 120);
    }
    process_table_prune(story->table, 120);
    assert_int_equal(process_table_counts(story->table).process_count, 0);
    assert_int_equal(process_table_counts(story->table).mapping_count, 0);
    assert_int_equal(process_table_counts(story->table).thread_count, 0);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(tells_before_from_after_an_exec),
        STORY(knows_a_child_as_well_as_its_parent),
        STORY(copies_mappings_as_they_were_at_the_fork),
        STORY(keeps_a_reused_pid_apart),
        STORY(keeps_what_an_address_was_before_its_reuse),
        STORY(lays_a_scan_beneath_records),
        STORY(lets_a_newer_scan_replace_an_older_one),
        STORY(drops_a_scan_that_records_have_overtaken),
        STORY(keeps_a_scan_that_is_newer_than_a_late_exec),
        STORY(takes_a_scan_for_the_fork_that_is_told_after_it),
        STORY(finds_a_new_process_by_its_start_time),
        STORY(follows_the_names_of_threads),
        STORY(ends_a_process_with_its_last_thread),
        STORY(ends_the_other_threads_at_an_exec),
        STORY(leaves_a_zombie_leader_out_of_a_scan),
        STORY(knows_the_kernels_own_threads),
        STORY(lets_newer_records_stand_before_late_ones),
        STORY(ignores_what_has_no_pid),
        STORY(forgets_only_what_the_horizon_has_passed),
        STORY(frees_a_shared_file_once_with_its_last_mapping),
        STORY(counts_what_finds_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
