/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What perf_source opens, decided before it opens anything: on which CPUs, with how deep chains and
 * how large rings. Pure.
 */

#include "fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_plan_input {
    uint64_t period_ns;        /* of the clock; not 0 */
    size_t further_count;      /* events that sample beside the clock on each CPU */
    uint16_t max_stack_depth;  /* as configured: user frames */
    uint32_t stack_copy_bytes; /* of each sample; 0: neither a copy nor registers */
    bool may_shrink_copy;      /* it is a default: smaller ones will do */
    bool may_drop_copy;        /* and so will none, which leaves frame pointers */
    bool may_shrink_time;      /* the rate is a default: rings may hold less than 50 ms */
    uint32_t user_regs_count;  /* that come with a copy */
    bool kernel_stacks;
    uint32_t sysctl_max_stack; /* kernel.perf_event_max_stack */
    size_t cpu_count;          /* that are sampled, not 0 */
    size_t sideband_count;     /* that have sideband, not fewer */
    uint64_t memory_bytes;     /* of the machine */
    uint64_t page_bytes;
};

/* The kernel wakes the reader of a further event's ring when another such part of it is full. */
#define PERF_PLAN_WAKEUP_PARTS 4

struct perf_plan {
    uint32_t stack_copy_bytes;  /* as wanted, or less where the input allows that */
    struct fault cut;           /* what is less than usual and why, for a person; code 0: nothing */
    uint16_t sample_max_stack;  /* frames of both kinds: the kernel has one budget for them */
    uint64_t sample_ring_bytes; /* of the clock */
    uint64_t further_ring_bytes; /* of each event beside it */
    uint64_t sideband_ring_bytes;
    uint64_t switch_ring_bytes;
    uint64_t total_bytes; /* all rings of all CPUs, with their control pages */
};

/*
 * A default copy shrinks until the rings fit; what is explicit is kept, or refused. Returns 0, or
 * -EINVAL with fault.member set: too deep for the sysctl, where the kernel's chains
 * are all there is; too large for the memory, with what would fit.
 */
int perf_plan_make(const struct perf_plan_input *input, struct perf_plan *ret,
                   struct fault *reterr);
