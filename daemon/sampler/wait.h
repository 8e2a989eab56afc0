/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A wait: the time from a switch away from a thread to the next switch to it. Times are of
 * CLOCK_BOOTTIME.
 */

#include <stdbool.h>
#include <stdint.h>

enum wait_kind {
    WAIT_BLOCKED,
    WAIT_PREEMPTED, /* it could have gone on */
    WAIT_KINDS,
};

struct cgroup;

/* Whose a wait is and where it began, as far as the sample of the switch said. */
struct wait_origin {
    unsigned wanted; /* sinks */
    uint32_t stack;  /* of wait_stacks; 0: none */
    const struct cgroup *cgroup;
};

struct wait {
    int32_t pid;
    int32_t tid;
    enum wait_kind kind;
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t others_ns; /* of the waits without a sample that it stands for */
    bool has_origin;
    struct wait_origin origin;
};

/* What a wait stands for, with itself. */
static inline uint64_t wait_weight_ns(const struct wait *wait)
{
    return wait->to_ns - wait->from_ns + wait->others_ns;
}
