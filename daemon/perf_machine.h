/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the kernel says of itself in small files, as far as perf events go. */

#include "fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_ONLINE_PATH    "/sys/devices/system/cpu/online"
#define PERF_PRESENT_PATH   "/sys/devices/system/cpu/present"
#define PERF_MAX_STACK_PATH "/proc/sys/kernel/perf_event_max_stack"
#define PERF_PARANOID_PATH  "/proc/sys/kernel/perf_event_paranoid"

/* The number that a file begins with, or `otherwise`. */
long perf_machine_number(const char *path, long otherwise);

/* The CPUs that are online (returned: free()), in rising order. Returns 0, or -errno with a fault.
 */
int perf_machine_online(uint32_t **ret_cpus, size_t *ret_count, struct fault *reterr);

/* The same of those that the machine has, online or not. */
int perf_machine_present(uint32_t **ret_cpus, size_t *ret_count, struct fault *reterr);

/*
 * Whether every task has a pid here. In a pid namespace of our own, records show tasks outside of
 * it as pid 0, which is the idle task's. False when nobody can tell.
 */
bool perf_machine_sees_all_pids(void);
