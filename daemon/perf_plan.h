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

/* More CPUs than any kernel is built for (CONFIG_NR_CPUS of x86 ends at 8192). */
#define PERF_PLAN_CPU_LIMIT 65536u

/*
 * Reads a CPU list as sysfs prints it ("0-3,8\n"), in rising order.
 * Returns 0 with the ids (returned: free()), or -EBADMSG when it is no such list or empty, -ENOMEM.
 */
int perf_plan_cpus(const char *text, uint32_t **ret_cpus, size_t *ret_count);

struct perf_plan_input {
    uint64_t period_ns;        /* not 0 */
    uint16_t max_stack_depth;  /* as configured: user frames */
    uint32_t stack_copy_bytes; /* of each sample; 0: neither a copy nor registers */
    uint32_t user_regs_count;  /* that come with a copy */
    bool kernel_stacks;
    uint32_t sysctl_max_stack; /* kernel.perf_event_max_stack */
    size_t cpu_count;          /* not 0 */
    uint64_t memory_bytes;     /* of the machine */
    uint64_t page_bytes;
};

struct perf_plan {
    uint16_t sample_max_stack; /* frames of both kinds: the kernel has one budget for them */
    uint64_t sample_ring_bytes;
    uint64_t sideband_ring_bytes;
    uint64_t switch_ring_bytes;
    uint64_t total_bytes; /* all rings of all CPUs, with their control pages */
};

/*
 * Returns 0, or -EINVAL with fault.member set: too deep for the sysctl, where the kernel's chains
 * are all there is; too large for the memory, with what would fit.
 */
int perf_plan_make(const struct perf_plan_input *input, struct perf_plan *ret,
                   struct fault *reterr);
