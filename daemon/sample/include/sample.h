/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The value that flows from the collector to the trace: one tick of one CPU, or one
 * overflow of another event's counter. It owns nothing; its
 * stacks point into the record that the kernel wrote and are valid until the ring's tail moves.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a user stack can be trusted (docs/trace-format.md, "quality"). The values are in the
 * file. */
enum stack_quality {
    STACK_NONE = 0,       /* no user stack: a kernel thread, or a task that is gone */
    STACK_COMPLETE = 1,   /* reaches its root, on proof */
    STACK_SHORT_COPY = 2, /* the copied bytes end before the root */
    STACK_DEPTH = 3,      /* cut at the configured depth */
    STACK_NO_RULE = 4,    /* the last frame has no rule to find its caller */
    STACK_BAD_MEMORY = 5, /* the chain leads to where no stack can be */
    STACK_STITCHED = 6,   /* as STACK_SHORT_COPY, and brought to its root from earlier ones */
    STACK_UNPROVED = 7, /* reaches its root, but by a frame pointer that nothing proves to be one */
};

/* Whether it does not reach its root by itself. */
static inline bool stack_is_truncated(enum stack_quality quality)
{
    return quality != STACK_NONE && quality != STACK_COMPLETE && quality != STACK_UNPROVED;
}

/* Why a sample whose stack was to come later has no more than it has. The values are in the file.
 */
enum stack_closed {
    STACK_CLOSED_NORMALLY = 0,
    STACK_CLOSED_LOST = 1,    /* its stack never came */
    STACK_CLOSED_GONE = 2,    /* the task ended before */
    STACK_CLOSED_STOPPED = 3, /* the session was stopped before */
    STACK_CLOSED_EXEC = 4,    /* the task executed another program before */
    STACK_CLOSED_LIMIT = 5,   /* too many were waiting */
};

#define SAMPLE_EVENTS_MAX 10 /* of a session; the first is the clock, the last two are waits */

struct cgroup;

struct sample {
    uint64_t time_ns; /* CLOCK_BOOTTIME */
    uint64_t weight;  /* how many periods of its event it counts for: 1 as a rule */
    uint32_t event;   /* index of its event, below SAMPLE_EVENTS_MAX; 0: the clock */
    uint32_t cpu;
    int32_t pid; /* 0: outside this pid namespace, -1: exited */
    int32_t tid;
    bool kernel_mode;            /* the tick found the CPU in the kernel */
    const struct cgroup *cgroup; /* of the task (cgroup_table.h); NULL: not known */
    enum stack_quality quality;
    uint16_t cfi_frame_count;
    uint16_t fp_frame_count;
    const uint64_t *user_stack; /* leaf first */
    size_t user_count;
    const uint64_t *kernel_stack; /* leaf first; empty where kernel frames are not recorded */
    size_t kernel_count;
};

/* The kernel stack of a sample in the kernel is written even when it is empty, since that alone
 * says where the sample was. */
static inline bool sample_has_kernel_stack(const struct sample *sample)
{
    return sample->kernel_mode || sample->kernel_count > 0;
}

/* Words that its own record has in a file beyond what every sample has, and its user stack. */
static inline size_t sample_own_words(const struct sample *sample)
{
    return (sample_has_kernel_stack(sample) ? 1 + sample->kernel_count : 0) +
           (sample->weight != 1) + (sample->event != 0);
}
