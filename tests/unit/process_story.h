/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the tests of the process table tell it a story and ask what a sample of some time finds.
 */
#include "process_table.h"
#include "unit_test.h"

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

enum step_kind {
    STEP_FORK,
    STEP_COMM,
    STEP_EXIT,
    STEP_PRUNE,
    STEP_MAP,
    STEP_SCAN,
    STEP_PATH,
    STEP_OFFSET,
    STEP_NAME,
    STEP_IDENTITY,
};

/* A step of a story: something that is told, or what is to be found then. */
struct step {
    enum step_kind kind;
    int32_t pid, tid;
    uint64_t time_ns;
    int32_t parent_pid, parent_tid;
    uint64_t page, page_count;
    uint64_t number; /* that is expected */
    bool flag;       /* likewise; of a name, that it comes with an exec */
    const char *text;
    struct process_scan scan;
    const struct scan_line *lines;
    size_t line_count;
};

#define STEP(...) ((struct step){__VA_ARGS__})
#define THREAD(pid_, parent_pid_, tid_, parent_tid_, at)                                           \
    STEP(STEP_FORK, pid_, tid_, at, .parent_pid = (parent_pid_), .parent_tid = (parent_tid_))
#define FORK(pid, parent_pid, at) THREAD(pid, parent_pid, pid, parent_pid, at)
#define EXEC(pid, comm, at)       STEP(STEP_COMM, pid, pid, at, .text = (comm), .flag = true)
#define COMM(pid, tid, comm, at)  STEP(STEP_COMM, pid, tid, at, .text = (comm))
#define EXIT(pid, tid, at)        STEP(STEP_EXIT, pid, tid, at, .text = NULL)
#define PRUNE(at)                 STEP(STEP_PRUNE, 0, 0, at, .text = NULL)
#define MAP(pid, first, count, path, at)                                                           \
    STEP(STEP_MAP, pid, pid, at, .page = (first), .page_count = (count), .text = (path))
/* `...`: further members of struct process_scan. */
#define SCAN(pid_, begin, end, lines_, ...)                                                        \
    STEP(STEP_SCAN, pid_, pid_, end, lines_,                                                       \
         .scan = {.pid = (pid_), .begin_ns = (begin), .end_ns = (end), ##__VA_ARGS__})
#define LINES(...)                                                                                 \
    .lines = (const struct scan_line[]){__VA_ARGS__},                                              \
    .line_count = sizeof(const struct scan_line[]){__VA_ARGS__} / sizeof(struct scan_line)
#define NO_LINES                   .line_count = 0
#define PATH(pid, page_, at, path) STEP(STEP_PATH, pid, pid, at, .page = (page_), .text = (path))
#define OFFSET(pid, page_, at, pages)                                                              \
    STEP(STEP_OFFSET, pid, pid, at, .page = (page_), .number = (pages))
#define NAME(pid, tid, at, name) STEP(STEP_NAME, pid, tid, at, .text = (name))
/* Whether the filter's verdict on uid and cgroups is known, since when, and what it is. */
#define IDENTITY(pid, at, read_ns, matches)                                                        \
    STEP(STEP_IDENTITY, pid, pid, at, .number = (read_ns), .flag = (matches))

static inline void expect_text(size_t number, const char *found, const char *expected)
{
    if (strcmp(found, expected) != 0) {
        fail_msg("step %zu: '%s', and not '%s'", number, found, expected);
    }
}

static inline void expect(struct story *story, size_t number, const struct step *step)
{
    const struct process *process = process_table_find(story->table, step->pid, step->time_ns);
    assert_non_null(process);
    const uint64_t found = step->kind == STEP_IDENTITY
                               ? process->identity_ns
                               : offset_at(story, step->pid, step->page, step->time_ns) / PAGE;
    const bool matches = step->kind == STEP_IDENTITY && process->identity_matches;
    if (found != step->number || matches != step->flag) {
        fail_msg("step %zu: %d, %d", number, (int)found, matches);
    }
}

static inline void take(struct story *story, size_t number, const struct step *step)
{
    const uint64_t time_ns = step->time_ns;
    switch (step->kind) {
    case STEP_FORK:
        process_table_fork(story->table, step->pid, step->parent_pid, step->tid, step->parent_tid,
                           time_ns);
        break;
    case STEP_COMM:
        process_table_comm(story->table, step->pid, step->tid, step->text, step->flag, time_ns);
        break;
    case STEP_EXIT:
        process_table_exit(story->table, step->pid, step->tid, time_ns);
        break;
    case STEP_PRUNE:
        process_table_prune(story->table, time_ns);
        break;
    case STEP_MAP:
        map(story, step->pid, step->page, step->page_count, step->text, time_ns);
        break;
    case STEP_SCAN:
        scan(story, step->scan, step->lines, step->line_count);
        break;
    case STEP_PATH:
        expect_text(number, path_at(story, step->pid, step->page, time_ns), step->text);
        break;
    case STEP_NAME:
        expect_text(number, name_of(story, step->pid, step->tid, time_ns), step->text);
        break;
    case STEP_OFFSET:
    case STEP_IDENTITY:
        expect(story, number, step);
        break;
    }
}

/* Tells, and looks at, one step after the other; the first is number 1. */
static inline void play(struct story *story, const struct step *steps, size_t step_count)
{
    for (size_t i = 0; i < step_count; i++) {
        take(story, i + 1, &steps[i]);
    }
}

#define PLAY(story, ...)                                                                           \
    play(story, (const struct step[]){__VA_ARGS__},                                                \
         sizeof(const struct step[]){__VA_ARGS__} / sizeof(struct step))

/* In so many calls as a table needs that is as full as can be. */
static inline void prune_all(struct story *story, uint64_t horizon_ns)
{
    const size_t full = PROCESS_TABLE_THREADS_MAX + PROCESS_TABLE_MAPPINGS_MAX;
    for (size_t steps = 0; steps <= full; steps += PROCESS_PRUNE_STEPS) {
        process_table_prune(story->table, horizon_ns);
    }
}

#define STORY(name) TEST_OF(struct story *story, name, set_up, tear_down)
