/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Two CPUs' rings, filled by hand as the kernel fills them, and what comes out of them. Processes
 * have pids that no machine gives out, so that /proc knows nothing of them.
 */
#include "ring_world.h"
#include "unit_test.h"

#include "arch_x86_64.h"
#include "loaded_recording.h"

#include <sys/mman.h>
#include <unistd.h>

#define PID       4100000
#define STACK_TOP UINT64_C(0x7000000)
#define LEAF_PC   0x5014 /* in a function of fake_module_table()'s file, mapped at 0x5000 */
#define ROOT_PC   0x5105

static inline int set_up_with(void **state, const struct session_targets *targets,
                              enum session_unwind unwind)
{
    *state = ring_world_new(&(struct ring_world_options){.unwind = unwind,
                                                         .targets = targets,
                                                         .cpu_count = 2,
                                                         .period_ns = 1000,
                                                         .max_stack_depth = 3,
                                                         .caches = true});
    return *state == NULL ? -1 : 0;
}

static inline int set_up(void **state)
{
    return set_up_with(state, NULL, SESSION_UNWIND_FP);
}

static inline int set_up_stacks(void **state)
{
    return set_up_with(state, NULL, SESSION_UNWIND_AUTO);
}

static inline int set_up_groups_with(void **state, enum session_unwind unwind)
{
    *state = ring_world_new(&(struct ring_world_options){.unwind = unwind,
                                                         .cpu_count = 2,
                                                         .period_ns = 1000,
                                                         .max_stack_depth = 3,
                                                         .caches = true,
                                                         .cgroups = true});
    return *state == NULL ? -1 : 0;
}

static inline int set_up_groups(void **state)
{
    return set_up_groups_with(state, SESSION_UNWIND_FP);
}

static inline int set_up_stacks_in_groups(void **state)
{
    return set_up_groups_with(state, SESSION_UNWIND_AUTO);
}

static inline int tear_down(void **state)
{
    (void)ring_world_free(*state);
    return 0;
}

#define DRAIN_STORY(name, set_up) TEST_OF(struct ring_world *world, name, set_up, tear_down)

static inline void put(struct ring_world *world, size_t cpu, size_t stream, uint32_t type,
                       uint16_t misc, const uint64_t *words, size_t word_count)
{
    assert_true(ring_world_put(world, cpu, stream, type, misc, words, word_count));
}

/* A record of these words. */
#define PUT(world, cpu, stream, type, misc, ...)                                                   \
    put(world, cpu, PERF_STREAM_##stream, PERF_RECORD_##type, misc, ROWS_OF(uint64_t, __VA_ARGS__))

static inline void put_thread_sample(struct ring_world *world, uint32_t pid, uint32_t tid,
                                     uint64_t time_ns)
{
    PUT(world, 0, CLOCK, SAMPLE, PERF_RECORD_MISC_USER, 1, pair(pid, tid), time_ns, 0, 2,
        PERF_CONTEXT_USER, LEAF_PC);
}

static inline void put_sample(struct ring_world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                              uint64_t pc)
{
    PUT(world, cpu, CLOCK, SAMPLE, PERF_RECORD_MISC_USER, 1, pair(pid, pid), time_ns, cpu, 2,
        PERF_CONTEXT_USER, pc);
}

/* A sample at LEAF_PC of a task in a control group, for worlds in which samples have one. */
static inline void put_sample_in(struct ring_world *world, size_t cpu, uint32_t pid,
                                 uint64_t time_ns, uint64_t group_id)
{
    PUT(world, cpu, CLOCK, SAMPLE, PERF_RECORD_MISC_USER, 1, pair(pid, pid), time_ns, cpu, 2,
        PERF_CONTEXT_USER, LEAF_PC, group_id);
}

/* A control group was made; its path has 15 letters at the most. */
static inline void put_group(struct ring_world *world, uint64_t time_ns, uint64_t id,
                             const char *path)
{
    uint64_t text[2] = {0};
    (void)snprintf((char *)text, sizeof text, "%s", path);
    PUT(world, 0, SIDEBAND, CGROUP, 0, id, text[0], text[1], pair(0, 0), time_ns, 0, 2);
}

/* A sample at LEAF_PC with a copy of `stack_bytes`, of which `valid_bytes` are valid; and, where
 * `group_id` is not NULL, of a control group. */
static inline void put_copy_in(struct ring_world *world, size_t stream, uint16_t mode, size_t cpu,
                               uint32_t pid, uint64_t time_ns, size_t stack_bytes,
                               size_t valid_bytes, const uint64_t *group_id)
{
    static uint64_t words[8000];
    uint64_t head[] = {1, pair(pid, pid), time_ns, cpu, 2, PERF_CONTEXT_USER, LEAF_PC, 2};
    uint64_t *regs = words + COUNT_OF(head);
    uint64_t *stack = regs + ARCH_PERF_REGS_COUNT;
    size_t stack_words = stack_bytes / 8;
    memset(words, 0, sizeof words);
    memcpy(words, head, sizeof head);
    regs[arch_perf_word[ARCH_DWARF_SP]] = STACK_TOP;
    regs[ARCH_PERF_IP_WORD] = LEAF_PC;
    stack[0] = stack_bytes;
    stack[2] = ROOT_PC;
    stack[1 + stack_words] = valid_bytes;
    stack[2 + stack_words] = group_id == NULL ? 0 : *group_id;
    put(world, cpu, stream, PERF_RECORD_SAMPLE, mode, words,
        (size_t)(stack - words) + 2 + stack_words + (group_id != NULL));
}

static inline void put_copy(struct ring_world *world, uint16_t mode, size_t cpu, uint32_t pid,
                            uint64_t time_ns, size_t stack_bytes, size_t valid_bytes)
{
    put_copy_in(world, PERF_STREAM_CLOCK, mode, cpu, pid, time_ns, stack_bytes, valid_bytes, NULL);
}

static inline void put_stack(struct ring_world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                             size_t stack_bytes)
{
    put_copy(world, PERF_RECORD_MISC_USER, cpu, pid, time_ns, stack_bytes, stack_bytes);
}

static inline void put_fork(struct ring_world *world, size_t cpu, uint32_t pid, uint32_t parent,
                            uint64_t time_ns)
{
    PUT(world, cpu, SIDEBAND, FORK, 0, pair(pid, parent), pair(pid, parent), time_ns,
        pair(parent, parent), time_ns, cpu, 2);
}

static inline void put_named(struct ring_world *world, size_t cpu, uint16_t misc, uint64_t task,
                             uint64_t time_ns, const char *comm)
{
    uint64_t name[2] = {0};
    (void)snprintf((char *)name, sizeof name, "%s", comm);
    PUT(world, cpu, SIDEBAND, COMM, misc, task, name[0], name[1], task, time_ns, cpu, 2);
}

static inline void put_exec(struct ring_world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                            const char *comm)
{
    put_named(world, cpu, PERF_RECORD_MISC_COMM_EXEC, pair(pid, pid), time_ns, comm);
}

static inline void put_comm(struct ring_world *world, uint32_t pid, uint32_t tid, uint64_t time_ns,
                            const char *comm)
{
    put_named(world, 0, 0, pair(pid, tid), time_ns, comm);
}

/* An executable mapping [start, start + 0x1000) of "/x.." (5 letters and NULs). */
static inline void put_mmap_of(struct ring_world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                               uint64_t start, const char *path, uint64_t inode)
{
    uint64_t name = 0;
    (void)snprintf((char *)&name, sizeof name, "%s", path);
    PUT(world, cpu, SIDEBAND, MMAP2, 0, pair(pid, pid), start, 0x1000, 0, pair(8, 1), inode, 0,
        pair(PROT_READ | PROT_EXEC, 0), name, pair(pid, pid), time_ns, cpu, 2);
}

/* Of inode 77. */
static inline void put_mmap(struct ring_world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                            uint64_t start, const char *path)
{
    put_mmap_of(world, cpu, pid, time_ns, start, path, 77);
}

/* That `count` records of a ring were lost. */
static inline void put_lost(struct ring_world *world, size_t cpu, size_t stream, uint64_t time_ns,
                            uint64_t count)
{
    put(world, cpu, stream, PERF_RECORD_LOST, 0,
        ROWS_OF(uint64_t, 1, count, pair(0, 0), time_ns, cpu, 1));
}

/* Drains what is left. The recording has these samples, in its order: "TIME QUALITY; ". */
static inline void expect_qualities(struct ring_world *world, const char *expected)
{
    struct loaded_recording loaded;
    char text[256] = "";
    drain_all(world->drain, UINT64_MAX);
    ring_world_load(world, &loaded);
    for (size_t i = 0, used = 0; i < loaded.sample_count && used < sizeof text; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%d %u; ",
                                 (int)loaded.samples[i].time_ns, loaded.samples[i].quality);
    }
    assert_string_equal(text, expected);
    loaded_recording_done(&loaded);
}

/* The program of the samples below: its file is inode 77. */
static inline void put_program(struct ring_world *world)
{
    put_exec(world, 0, PID, 100, "prog");
    put_mmap(world, 0, PID, 200, 0x5000, "/prog");
}

static inline struct counters counted(struct ring_world *world)
{
    return drain_counters(world->drain, 0);
}

/* The books of both CPUs together. */
static inline struct books_cpu totals(struct ring_world *world)
{
    trace_poll(world->trace);
    struct books_cpu sum = {0};
    for (size_t i = 0; i < 2; i++) {
        const struct books_cpu cpu = drain_books(world->drain, 0, i);
        assert_int_equal(cpu.received, cpu.kept + cpu.filtered + cpu.dropped);
        sum.received += cpu.received;
        sum.kept += cpu.kept;
    }
    return sum;
}

static inline uint64_t received(struct ring_world *world)
{
    return totals(world).received;
}

static inline uint64_t kept(struct ring_world *world)
{
    return totals(world).kept;
}
