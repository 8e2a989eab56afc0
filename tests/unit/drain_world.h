/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Two CPUs' rings, filled by hand as the kernel fills them, and what drains them. The module cache
 * is a stand-in that answers when it is told to; processes have pids that no machine gives out, so
 * that /proc knows nothing of them.
 */
#include "drain.h"

#include "arch_x86_64.h"
#include "fake_module_cache.h"
#include "fxt_reader.h"
#include "trace_reader.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define RING_BYTES   65536
#define BUFFER_BYTES ((size_t)1 << 20)
#define PID          4100000
#define SAMPLE_TYPE                                                                                \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |               \
     PERF_SAMPLE_CALLCHAIN)

#define STACK_SAMPLE_TYPE (SAMPLE_TYPE | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
#define STACK_TOP         UINT64_C(0x7000000)
#define LEAF_PC           0x5014 /* in a function of fake_module_table()'s file, mapped at 0x5000 */
#define ROOT_PC           0x5105

struct world {
    struct module_cache cache;
    struct code_map *code; /* NULL with frame pointers alone */
    struct perf_event_mmap_page pages[2][2];
    uint64_t rings[2][2][RING_BYTES / 8];
    uint8_t bounce[PERF_RING_BOUNCE_BYTES];
    struct perf_cpu cpus[2];
    struct perf_source source;
    struct trace_buffer *buffer;
    struct trace *trace;
    struct trace_reader *reader;
    struct process_table *processes;
    struct proc_scan *scan;
    struct filter *filter;
    struct drain *drain;
    char text[65536];
};

static inline void on_file_gone(struct mapped_file *file, void *userdata)
{
    struct world *world = userdata;
    trace_file_gone(file, world->trace);
    code_map_file_gone(file);
}

static inline int set_up_with(void **state, const struct session_targets *targets,
                              enum session_unwind unwind)
{
    static const uint32_t cpu_ids[] = {0, 1};
    struct world *world = calloc(1, sizeof *world);
    struct filter_config filter = {.targets = targets, .kernel_threads = true};
    for (size_t i = 0; i < 2; i++) {
        world->cpus[i].cpu = (uint32_t)i;
        perf_ring_init(&world->cpus[i].sample_ring, &world->pages[i][0],
                       (const uint8_t *)world->rings[i][0], RING_BYTES, world->bounce);
        perf_ring_init(&world->cpus[i].sideband_ring, &world->pages[i][1],
                       (const uint8_t *)world->rings[i][1], RING_BYTES, world->bounce);
    }
    world->source = (struct perf_source){
        .layout = unwind == SESSION_UNWIND_FP
                      ? perf_record_layout_make(SAMPLE_TYPE, 0)
                      : perf_record_layout_make(STACK_SAMPLE_TYPE, ARCH_PERF_REGS_MASK),
        .config = {.period_ns = 1000},
        .cpus = world->cpus,
        .cpu_count = 2,
        .sideband_count = 2,
        .sample_max_stack = 127};
    world->code = unwind == SESSION_UNWIND_FP ? NULL : code_map_new(&world->cache);
    world->buffer = trace_buffer_new(2, BUFFER_BYTES, BUFFER_BYTES);
    struct trace_config trace = {.buffer = world->buffer,
                                 .cpus = cpu_ids,
                                 .cpu_count = 2,
                                 .session_json = "{}",
                                 .max_stack_depth = 3};
    if (trace_reader_new(world->buffer, &world->reader) < 0 ||
        trace_new(&trace, &world->trace) < 0) {
        return -1;
    }
    world->processes = process_table_new(on_file_gone, world);
    world->scan = proc_scan_new();
    world->filter = filter_new(&filter);
    proc_scan_judge_by(world->scan, world->filter);
    struct drain_config config = {
        .source = &world->source,
        .processes = world->processes,
        .scan = world->scan,
        .filter = world->filter,
        .trace = world->trace,
        .code = world->code,
        .unwind = unwind,
        .max_stack_depth = 3,
    };
    world->drain = drain_new(&config);
    *state = world;
    return world->drain == NULL ? -1 : 0;
}

static inline int tear_down(void **state)
{
    struct world *world = *state;
    (void)drain_free(world->drain);
    (void)process_table_free(world->processes);
    (void)code_map_free(world->code);
    assert_int_equal(world->cache.held_count, 0);
    fake_module_table_free();
    (void)proc_scan_free(world->scan);
    (void)filter_free(world->filter);
    (void)trace_free(world->trace);
    (void)trace_reader_free(world->reader);
    (void)trace_buffer_free(world->buffer);
    free(world);
    return 0;
}

/* Appends a record as the kernel would: `words` follow the header. */
static inline void put(struct world *world, size_t cpu, size_t ring, uint32_t type, uint16_t misc,
                       const uint64_t *words, size_t word_count)
{
    struct perf_event_mmap_page *page = &world->pages[cpu][ring];
    uint64_t *data = world->rings[cpu][ring];
    struct perf_event_header header = {
        .type = type, .misc = misc, .size = (uint16_t)(8 + 8 * word_count)};
    memcpy(&data[page->data_head % RING_BYTES / 8], &header, sizeof header);
    for (size_t i = 0; i < word_count; i++) {
        data[(page->data_head / 8 + 1 + i) % (RING_BYTES / 8)] = words[i];
    }
    page->data_head += header.size;
}

static inline uint64_t pair(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

static inline void put_thread_sample(struct world *world, uint32_t pid, uint32_t tid,
                                     uint64_t time_ns)
{
    uint64_t words[] = {1, pair(pid, tid), time_ns, 0, 2, PERF_CONTEXT_USER, 0x5010};
    put(world, 0, 0, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 7);
}

static inline void put_sample(struct world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                              uint64_t pc)
{
    uint64_t words[] = {1, pair(pid, pid), time_ns, cpu, 2, PERF_CONTEXT_USER, pc};
    put(world, cpu, 0, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 7);
}

/* A sample at LEAF_PC with a copy of `stack_bytes`, of which `valid_bytes` are valid. */
static inline void put_copy(struct world *world, uint16_t mode, size_t cpu, uint32_t pid,
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
    put(world, cpu, 0, PERF_RECORD_SAMPLE, mode, words, (size_t)(stack - words) + 2 + stack_words);
}

static inline void put_stack(struct world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                             size_t stack_bytes)
{
    put_copy(world, PERF_RECORD_MISC_USER, cpu, pid, time_ns, stack_bytes, stack_bytes);
}

static inline void put_fork(struct world *world, size_t cpu, uint32_t pid, uint32_t parent,
                            uint64_t time_ns)
{
    uint64_t words[] = {
        pair(pid, parent), pair(pid, parent), time_ns, pair(parent, parent), time_ns, cpu, 2};
    put(world, cpu, 1, PERF_RECORD_FORK, 0, words, 7);
}

static inline void put_exec(struct world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
                            const char *comm)
{
    uint64_t words[] = {pair(pid, pid), 0, 0, pair(pid, pid), time_ns, cpu, 2};
    (void)snprintf((char *)&words[1], 16, "%s", comm);
    put(world, cpu, 1, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, words, 7);
}

static inline void put_comm(struct world *world, uint32_t pid, uint32_t tid, uint64_t time_ns,
                            const char *comm)
{
    uint64_t words[] = {pair(pid, tid), 0, 0, pair(pid, tid), time_ns, 0, 2};
    (void)snprintf((char *)&words[1], 16, "%s", comm);
    put(world, 0, 1, PERF_RECORD_COMM, 0, words, 7);
}

/* An executable mapping [start, start + 0x1000) of "/x.." (5 letters and NULs). */
static inline void put_mmap(struct world *world, size_t cpu, uint32_t pid, uint64_t time_ns,
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
    put(world, cpu, 1, PERF_RECORD_MMAP2, 0, words, 13);
}

/* A partial gets its quality, which stands as '?' till then, from the completion behind it. */
static inline size_t add_sample(struct world *world, size_t used, const struct fxt_sample *sample)
{
    bool has_quality = (sample->fields & FXT_SAMPLE_QUALITY) != 0;
    char quality = (char)('0' + (sample->quality & 0xff));
    if ((sample->fields & FXT_SAMPLE_CONTINUATION_COMPLETION) != 0) {
        for (char *open = strchr(world->text, '?'); open != NULL; open = strchr(open, '?')) {
            *open = quality;
        }
        return used;
    }
    return used + (size_t)snprintf(world->text + used, sizeof world->text - used,
                                   "sample at %d, quality %c\n", (int)sample->boot_ts_ns,
                                   has_quality ? quality : '?');
}

/* Modules and samples that have come out since, in the file's order. */
static inline const char *read_all(struct world *world)
{
    struct fxt_reader *reader = fxt_reader_new();
    struct trace_chunk chunk;
    size_t used = 0;
    world->text[0] = '\0';
    trace_poll(world->trace);
    trace_reader_begin_segment(world->reader);
    trace_reader_read(world->reader, BUFFER_BYTES, &chunk);
    assert_true(trace_reader_acknowledge(world->reader, chunk.sequence));
    for (size_t at = 0; at < chunk.size_bytes;) {
        struct fxt_record record;
        assert_int_equal(fxt_reader_next(reader, (const uint8_t *)chunk.bytes + at,
                                         chunk.size_bytes - at, &record),
                         1);
        char *out = world->text + used;
        size_t room = sizeof world->text - used;
        if (record.kind == FXT_RECORD_MODULE) {
            used += (size_t)snprintf(out, room, "%.*s at %d\n", (int)record.module.name_bytes,
                                     record.module.name, (int)record.module.time_ns);
        } else if (record.kind == FXT_RECORD_SAMPLE) {
            used = add_sample(world, used, &record.sample);
        }
        at += record.size_bytes;
    }
    (void)fxt_reader_free(reader);
    return world->text;
}

/* The program of the samples below: its file is inode 77. */
static inline void put_program(struct world *world)
{
    put_exec(world, 0, PID, 100, "prog");
    put_mmap(world, 0, PID, 200, 0x5000, "/prog");
}

static inline uint64_t received(struct world *world)
{
    trace_poll(world->trace);
    const struct drain_cpu_counts *cpus = drain_cpu_counts(world->drain);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(cpus[i].received, cpus[i].kept + cpus[i].filtered + cpus[i].dropped);
    }
    return cpus[0].received + cpus[1].received;
}

static inline uint64_t kept(struct world *world)
{
    trace_poll(world->trace);
    const struct drain_cpu_counts *cpus = drain_cpu_counts(world->drain);
    return cpus[0].kept + cpus[1].kept;
}
