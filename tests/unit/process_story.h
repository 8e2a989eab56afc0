/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the tests of the process table tell it a story and ask what a sample of some time finds.
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

static inline void on_file_free(struct mapped_file *file, void *userdata)
{
    struct story *story = userdata;
    assert_int_equal(file->reference_count, 0);
    if (file->trace_file != NULL) {
        free(file->trace_file);
        file->trace_file = NULL;
        story->tagged_count--;
    }
}

static inline int set_up(void **state)
{
    struct story *story = calloc(1, sizeof *story);
    assert_non_null(story);
    story->table = process_table_new(on_file_free, story);
    assert_non_null(story->table);
    *state = story;
    return 0;
}

static inline int tear_down(void **state)
{
    struct story *story = *state;
    story->table = process_table_free(story->table);
    assert_int_equal(story->tagged_count, 0);
    free(story);
    return 0;
}

static inline void map(struct story *story, int32_t pid, uint64_t first_page, uint64_t page_count,
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

static inline void fork_process(struct story *story, int32_t pid, int32_t parent_pid,
                                uint64_t time_ns)
{
    process_table_fork(story->table, pid, parent_pid, pid, parent_pid, time_ns);
}

static inline void exec_process(struct story *story, int32_t pid, const char *comm,
                                uint64_t time_ns)
{
    process_table_comm(story->table, pid, pid, comm, true, time_ns);
}

/* What /proc says of whose a process is. */
static inline void own(struct story *story, int32_t pid, uint32_t account, uint64_t time_ns)
{
    const struct process_scan scan = {
        .pid = pid,
        .mappings_missing = true,
        .begin_ns = time_ns,
        .end_ns = time_ns,
        .account_known = true,
        .account = account,
    };
    process_table_scan(story->table, &scan);
}

/* The process that lived then, or NULL. */
static inline struct process *living(struct story *story, int32_t pid, uint64_t time_ns)
{
    struct process *process = process_table_find(story->table, pid, time_ns);
    return process != NULL && time_ns < process->to_ns ? process : NULL;
}

/* The path at a page, "none" without a mapping, "nobody" when no process lived then. */
static inline const char *path_at(struct story *story, int32_t pid, uint64_t page, uint64_t time_ns)
{
    struct process *process = living(story, pid, time_ns);
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

static inline uint64_t offset_at(struct story *story, int32_t pid, uint64_t page, uint64_t time_ns)
{
    struct process *process = living(story, pid, time_ns);
    assert_non_null(process);
    const struct mapping *mapping = process_find_mapping(process, page * PAGE, time_ns);
    assert_non_null(mapping);
    return mapping->file_offset + (page * PAGE - mapping->start);
}

/* The name of a thread, "" without one, "nobody" when no such thread lived then. */
static inline const char *name_of(struct story *story, int32_t pid, int32_t tid, uint64_t time_ns)
{
    struct process *process = living(story, pid, time_ns);
    struct thread *thread = process == NULL ? NULL : process_find_thread(process, tid, time_ns);
    if (thread == NULL || thread->to_ns <= time_ns) {
        return "nobody";
    }
    const struct name *name = process_thread_name(thread, time_ns);
    return name == NULL ? "" : name->text;
}

struct scan_line {
    uint64_t first_page;
    uint64_t page_count;
    const char *path;
    uint64_t inode;
};

static inline void scan(struct story *story, struct process_scan reading,
                        const struct scan_line *lines, size_t line_count)
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

#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
