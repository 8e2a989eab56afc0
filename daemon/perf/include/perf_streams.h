/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is asked of a source of events, what the kernel can do of it, and the streams that a CPU has
 * then: its events with their rings, each in its place. Types alone, and how to find a stream.
 */

#include "event_code.h"
#include "perf_record.h"
#include "perf_ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_EVENTS_MAX 7 /* beside the clock */
_Static_assert(PERF_FOLLOWERS_MAX == PERF_EVENTS_MAX, "all others may follow one event");
#define PERF_EVENT_NAME_BYTES 64

/* An event that samples beside the clock, or is counted with one that samples. */
struct perf_event_choice {
    char name[PERF_EVENT_NAME_BYTES]; /* for faults */
    struct event_code code;           /* with the numbers of its device */
    bool is_follower;                 /* it does not sample: samples of its leader have its count */
    uint32_t leader;                  /* its leader's index, below its own; 0: the clock */
    uint64_t period;                  /* counts from a sample to the next; 0: by the rate */
    uint32_t frequency_hz;
    uint32_t stack_copy_bytes; /* at most; the source's config has what the rings allow */
};

struct perf_source_config {
    const uint32_t
        *cpus; /* borrowed; those to sample, in rising order; NULL: all that the machine has */
    size_t cpu_count;
    uint64_t period_ns;                     /* of the clock */
    const struct perf_event_choice *events; /* borrowed; beside the clock; the followers of an
                                             * event stand together */
    size_t event_count;                     /* at most PERF_EVENTS_MAX */
    uint32_t wait_cost_percent; /* that samples of switches may cost of a CPU; their holder's */
    bool has_waits; /* each switch away from a task is sampled, and the records of switches
                     * say which threads begin and end, too */
    uint32_t wait_copy_bytes;   /* at most, of these samples */
    uint32_t event_rate_max_hz; /* samples a second of all of them on a CPU; 0: any. Its holder's */
    uint16_t
        max_stack_depth; /* frames; without copied stacks at most kernel.perf_event_max_stack */
    uint32_t stack_copy_bytes; /* of each user stack, beside its registers (ARCH_PERF_REGS_MASK); a
                                * multiple of 8 up to 65,000; 0: neither */
    bool may_shrink_copy;      /* as in struct perf_plan_input, with the next two */
    bool may_drop_copy;
    bool may_shrink_time;
    bool kernel_stacks; /* widens the kernel's one budget for both kinds of frames, so that a user
                         * chain can come out longer than max_stack_depth */
};

/* What this kernel can do, probed from new to old when the source is opened. */
struct perf_features {
    bool build_id;            /* MMAP2 with build-id, 5.12 */
    bool format_lost;         /* PERF_FORMAT_LOST, 6.0 */
    bool deferred_callchains; /* 6.19 */
    bool ksymbol;             /* code that the kernel is given while it is watched, 5.1 */
    bool cgroup;              /* the control group of each sample, 5.7 with CONFIG_CGROUP_PERF */
};

struct perf_count {
    uint64_t value; /* ns of the clock */
    uint64_t time_enabled_ns;
    uint64_t time_running_ns;
    uint64_t lost_count; /* cumulative; 0 where the kernel has no PERF_FORMAT_LOST */
};

/* What takes the records of a stream out of its ring. */
enum perf_consumer {
    PERF_CONSUMER_NONE,     /* there is no stream */
    PERF_CONSUMER_SAMPLES,  /* what a CPU was at when an event's counter overflowed */
    PERF_CONSUMER_SIDEBAND, /* what processes do */
    PERF_CONSUMER_SWITCHES, /* which task a CPU went over to */
    PERF_CONSUMER_WAITS,    /* where a task was when its CPU went over to another */
    PERF_CONSUMER_LEADER,   /* there is no ring: samples of the event's leader have its count */
};

/* The places of the streams that every source has, in the arrays of its CPUs. */
enum perf_stream_kind {
    PERF_STREAM_CLOCK, /* the first of those that sample: its event has index 0 */
    PERF_STREAM_SIDEBAND,
    PERF_STREAM_SWITCHES,
    PERF_STREAM_WAITS, /* where the config has them */
    PERF_STREAMS,      /* then the events beside the clock, from index 1 on */
};
#define PERF_STREAMS_MAX (PERF_STREAMS + PERF_EVENTS_MAX)

/* An event of one CPU, and its ring. */
struct perf_stream {
    enum perf_consumer consumer;
    int fd;                   /* -1: the CPU has no such event, and its ring is empty */
    uint32_t event;           /* of a stream of samples: the index of its event */
    bool is_rated;            /* its samples say what was counted: perf_source.rated_layout */
    uint64_t counted;         /* as its last sample said, or of a follower its leader's, which the
                               * collector sets */
    struct perf_count before; /* of the events that the CPU had in its place before */
    struct perf_ring ring;
    void *map; /* behind the ring; owned by perf_source */
    size_t map_bytes;
};

struct perf_cpu {
    uint32_t cpu;
    bool absent; /* it went offline since its events were opened, or never had any */
    struct perf_stream streams[PERF_STREAMS_MAX];
    uint64_t started_ns; /* when sampling had been enabled last, CLOCK_BOOTTIME */
    uint64_t stopped_ns; /* and disabled */
};

/* The next stream of a consumer after `stream` (NULL: the first); NULL: there is none. */
static inline struct perf_stream *perf_cpu_next(struct perf_cpu *cpu, enum perf_consumer consumer,
                                                const struct perf_stream *stream)
{
    size_t i = stream == NULL ? 0 : (size_t)(stream - cpu->streams) + 1;
    while (i < PERF_STREAMS_MAX && cpu->streams[i].consumer != consumer) {
        i++;
    }
    return i < PERF_STREAMS_MAX ? &cpu->streams[i] : NULL;
}

/* The place of an event's stream; 0: the clock. */
static inline size_t perf_event_place(uint32_t event)
{
    return event == 0 ? PERF_STREAM_CLOCK : PERF_STREAMS + event - 1;
}

/* The followers of an event. */
struct perf_group {
    uint32_t first_follower; /* the index of the first; the others are behind it */
    uint32_t follower_count; /* 0: it has none */
};
