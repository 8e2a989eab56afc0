/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* What the scheduler has counted of a thread since it began: /proc/PID/task/TID/schedstat. */
struct thread_reading {
    int32_t pid;
    int32_t tid;        /* 0: the process has more threads than were read */
    uint64_t at_ns;     /* when it was read, CLOCK_BOOTTIME */
    uint64_t run_ns;    /* on a CPU; of the last tick's length a part may be missing */
    uint64_t delay_ns;  /* ready, and on none */
    uint64_t run_count; /* times that it got a CPU */
};
