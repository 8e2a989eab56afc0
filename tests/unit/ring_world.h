/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A collector's round without a kernel: rings in ordinary memory that a test fills, the real drain
 * with the real process table and trace behind them, and the recording that comes out. The module
 * cache and /proc are stand-ins that answer when they are told to; /proc knows no process at first.
 */

#include "drain.h"
#include "fake_module_cache.h"
#include "fake_proc_pool.h"
#include "loaded_recording.h"
#include "sideband_feed.h"
#include "trace_cursor.h"

#include "perf_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_CPU_COUNT ((size_t)3) /* at most */
#ifdef CPU_PROFILERD_SMALL_TABLES
#define RING_BYTES ((size_t)1 << 16)
#else
#define RING_BYTES ((size_t)1 << 18)
#endif
/* The place of a second event that samples, of index 1. */
#define RING_STREAM_FURTHER PERF_STREAMS
#define RING_SAMPLE_TYPE                                                                           \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |               \
     PERF_SAMPLE_CALLCHAIN)

struct ring_world_options {
    enum session_unwind unwind;            /* but with SESSION_UNWIND_FP samples have stacks */
    const struct session_targets *targets; /* borrowed; NULL: everything */
    const struct session_targets *second_targets; /* of a second sink; NULL: there is none */
    size_t cpu_count;                             /* 0: RING_CPU_COUNT */
    uint64_t period_ns;                           /* 0: a millisecond */
    uint64_t started_ns;                          /* when sampling began on each CPU */
    uint16_t max_stack_depth;                     /* 0: 127 */
    bool caches;                                  /* modules are asked for: `cache` is to answer */
    bool switches;                                /* there are switch records */
    bool waits;                                   /* the drain makes waits of them */
    bool deferring;                               /* user chains come in records of their own */
    bool cgroups;                                 /* samples have their control group */
};

struct ring_world {
    struct perf_event_mmap_page pages[RING_CPU_COUNT][PERF_STREAMS_MAX];
    uint64_t data[RING_CPU_COUNT][PERF_STREAMS_MAX][RING_BYTES / 8];
    uint8_t bounces[RING_CPU_COUNT][PERF_STREAMS_MAX][PERF_RING_BOUNCE_BYTES];
    struct perf_cpu cpus[RING_CPU_COUNT];
    struct perf_source source;
    struct module_cache cache;
    struct address_cache *addresses;
    struct code_map *code; /* NULL with frame pointers alone */
    struct trace_buffer *buffer;
    struct trace *trace;
    struct trace_cursor *reader;
    struct process_table *processes;
    struct filter *filter;
    struct ring_world_second {
        struct address_cache *addresses;
        struct trace_buffer *buffer;
        struct trace *trace;
        struct filter *filter;
    } second;
    struct cpu_books *books;
    struct drain *drain; /* started */
    uint8_t *file;       /* ring_world_file() */
};

/* Returned: ring_world_free(). NULL when there is no memory. The rings are empty, a little before
 * the end of their memory, so that what comes next wraps. The layout of the records is that of
 * RING_SAMPLE_TYPE, with registers, stacks and control groups where there are any. */
struct ring_world *ring_world_new(const struct ring_world_options *options);
/* Nothing may hold a ticket of the cache by then. */
struct ring_world *ring_world_free(struct ring_world *world);

/* Two ids in one word of a record. */
static inline uint64_t pair(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

/* Appends a record as the kernel does: `words` follow the header. False: there is no room, and the
 * kernel would count it as lost. */
bool ring_world_put(struct ring_world *world, size_t cpu, size_t stream, uint32_t type,
                    uint16_t misc, const uint64_t *words, size_t word_count);

/* Ends the recording. Everything in it, as one file; the world owns it. At most once. */
const uint8_t *ring_world_file(struct ring_world *world, size_t *ret_size_bytes);

/* The same as a reader sees it: loaded_recording_done(). */
static inline void ring_world_load(struct ring_world *world, struct loaded_recording *ret)
{
    size_t size_bytes = 0;
    const uint8_t *file = ring_world_file(world, &size_bytes);
    loaded_recording_init(ret, file, size_bytes);
}
