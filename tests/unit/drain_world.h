/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Two CPUs' rings, filled by hand as the kernel fills them, and what comes out of them. Processes
 * have pids that no machine gives out, so that /proc knows nothing of them.
 */
#include "ring_world.h"
#include "unit_test.h"

#include "arch_x86_64.h"
#include "fxt_reader.h"

#include <unistd.h>

#define PID        4100000
#define STACK_TOP  UINT64_C(0x7000000)
#define LEAF_PC    0x5014 /* in a function of fake_module_table()'s file, mapped at 0x5000 */
#define ROOT_PC    0x5105
#define READ_BYTES 65536

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

static inline int tear_down(void **state)
{
    (void)ring_world_free(*state);
    return 0;
}

static inline void put(struct ring_world *world, size_t cpu, size_t stream, uint32_t type,
                       uint16_t misc, const uint64_t *words, size_t word_count)
{
    assert_true(ring_world_put(world, cpu, stream, type, misc, words, word_count));
}

static inline void put_thread_sample(struct ring_world *world, uint32_t pid, uint32_t tid,
                                     uint64_t time_ns)
{
    uint64_t words[] = {1, pair(pid, tid), time_ns, 0, 2, PERF_CONTEXT_USER, 0x5010};
    put(world, 0, PERF_STREAM_CLOCK, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 7);
}

static inline void put_sample(struct ring_world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                              uint64_t pc)
{
    uint64_t words[] = {1, pair(pid, pid), time_ns, cpu, 2, PERF_CONTEXT_USER, pc};
    put(world, cpu, PERF_STREAM_CLOCK, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 7);
}

/* A sample at LEAF_PC with a copy of `stack_bytes`, of which `valid_bytes` are valid. */
static inline void put_copy(struct ring_world *world, uint16_t mode, size_t cpu, uint32_t pid,
                            uint64_t time_ns, size_t stack_bytes, size_t valid_bytes)
{
    static uint64_t words[8000];
    uint64_t head[] = {1, pair(pid, pid), time_ns, cpu, 2, PERF_CONTEXT_USER, LEAF_PC, 2};
    uint64_t *regs = words + sizeof head / sizeof head[0];
    uint64_t *stack = regs + ARCH_PERF_REGS_COUNT;
    size_t stack_words = stack_bytes / 8;
    memset(words, 0, sizeof words);
    memcpy(words, head, sizeof head);
    regs[arch_perf_word[ARCH_DWARF_SP]] = STACK_TOP;
    regs[ARCH_PERF_IP_WORD] = LEAF_PC;
    stack[0] = stack_bytes;
    stack[2] = ROOT_PC;
    stack[1 + stack_words] = valid_bytes;
    put(world, cpu, PERF_STREAM_CLOCK, PERF_RECORD_SAMPLE, mode, words,
        (size_t)(stack - words) + 2 + stack_words);
}

static inline void put_stack(struct ring_world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                             size_t stack_bytes)
{
    put_copy(world, PERF_RECORD_MISC_USER, cpu, pid, time_ns, stack_bytes, stack_bytes);
}

static inline void put_fork(struct ring_world *world, size_t cpu, uint32_t pid, uint32_t parent,
                            uint64_t time_ns)
{
    uint64_t words[] = {
        pair(pid, parent), pair(pid, parent), time_ns, pair(parent, parent), time_ns, cpu, 2};
    put(world, cpu, PERF_STREAM_SIDEBAND, PERF_RECORD_FORK, 0, words, 7);
}

static inline void put_exec(struct ring_world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                            const char *comm)
{
    uint64_t words[] = {pair(pid, pid), 0, 0, pair(pid, pid), time_ns, cpu, 2};
    (void)snprintf((char *)&words[1], 16, "%s", comm);
    put(world, cpu, PERF_STREAM_SIDEBAND, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, words, 7);
}

static inline void put_comm(struct ring_world *world, uint32_t pid, uint32_t tid, uint64_t time_ns,
                            const char *comm)
{
    uint64_t words[] = {pair(pid, tid), 0, 0, pair(pid, tid), time_ns, 0, 2};
    (void)snprintf((char *)&words[1], 16, "%s", comm);
    put(world, 0, PERF_STREAM_SIDEBAND, PERF_RECORD_COMM, 0, words, 7);
}

/* An executable mapping [start, start + 0x1000) of "/x.." (5 letters and NULs). */
static inline void put_mmap(struct ring_world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                            uint64_t start, const char *path)
{
    uint64_t words[] = {pair(pid, pid),
                        start,
                        0x1000,
                        0,
                        pair(8, 1),
                        77,
                        0,
                        pair(5, 0), /* PROT_READ | PROT_EXEC */
                        0,
                        pair(pid, pid),
                        time_ns,
                        cpu,
                        2};
    (void)snprintf((char *)&words[8], 8, "%s", path);
    put(world, cpu, PERF_STREAM_SIDEBAND, PERF_RECORD_MMAP2, 0, words, 13);
}

/* A partial gets its quality, which stands as '?' till then, from the completion behind it. */
static inline size_t add_sample(char *text, size_t used, const struct fxt_sample *sample)
{
    bool has_quality = (sample->fields & FXT_SAMPLE_QUALITY) != 0;
    char quality = (char)('0' + (sample->quality & 0xff));
    if ((sample->fields & FXT_SAMPLE_CONTINUATION_COMPLETION) != 0) {
        for (char *open = strchr(text, '?'); open != NULL; open = strchr(open, '?')) {
            *open = quality;
        }
        return used;
    }
    return used + (size_t)snprintf(text + used, READ_BYTES - used, "sample at %d, quality %c\n",
                                   (int)sample->boot_ts_ns, has_quality ? quality : '?');
}

/* Modules and samples that have come out since, in the file's order. Valid until the next call. */
static inline const char *read_all(struct ring_world *world)
{
    static char text[READ_BYTES];
    struct fxt_reader *reader = fxt_reader_new();
    struct trace_chunk chunk;
    size_t used = 0;
    text[0] = '\0';
    trace_poll(world->trace);
    trace_cursor_begin_segment(world->reader);
    trace_cursor_read(world->reader, TRACE_CHUNK_BYTES_MAX, &chunk);
    assert_true(trace_cursor_acknowledge(world->reader, chunk.sequence));
    for (size_t at = 0; at < chunk.size_bytes;) {
        struct fxt_record record;
        assert_int_equal(fxt_reader_next(reader, (const uint8_t *)chunk.bytes + at,
                                         chunk.size_bytes - at, &record),
                         1);
        char *out = text + used;
        size_t room = sizeof text - used;
        if (record.kind == FXT_RECORD_MODULE) {
            used += (size_t)snprintf(out, room, "%.*s at %d\n", (int)record.module.name_bytes,
                                     record.module.name, (int)record.module.time_ns);
        } else if (record.kind == FXT_RECORD_SAMPLE) {
            used = add_sample(text, used, &record.sample);
        }
        at += record.size_bytes;
    }
    (void)fxt_reader_free(reader);
    return text;
}

/* The program of the samples below: its file is inode 77. */
static inline void put_program(struct ring_world *world)
{
    put_exec(world, 0, PID, 100, "prog");
    put_mmap(world, 0, PID, 200, 0x5000, "/prog");
}

static inline uint64_t received(struct ring_world *world)
{
    trace_poll(world->trace);
    const struct books_cpu cpus[] = {drain_books(world->drain, 0, 0),
                                     drain_books(world->drain, 0, 1)};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(cpus[i].received, cpus[i].kept + cpus[i].filtered + cpus[i].dropped);
    }
    return cpus[0].received + cpus[1].received;
}

static inline uint64_t kept(struct ring_world *world)
{
    trace_poll(world->trace);
    const struct books_cpu cpus[] = {drain_books(world->drain, 0, 0),
                                     drain_books(world->drain, 0, 1)};
    return cpus[0].kept + cpus[1].kept;
}
