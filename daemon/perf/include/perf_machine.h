/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the kernel says of itself in small files, as far as perf events go. */

#include "fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_ONLINE_PATH    "/sys/devices/system/cpu/online"
#define PERF_PRESENT_PATH   "/sys/devices/system/cpu/present"
#define PERF_STEPS_PATH     "/sys/devices/system/cpu/hotplug/states"
#define PERF_MAX_STACK_PATH "/proc/sys/kernel/perf_event_max_stack"
#define PERF_PARANOID_PATH  "/proc/sys/kernel/perf_event_paranoid"
#define PERF_CLOCKS_PATH    "/proc/self/timens_offsets"

/* The number that a file begins with, or `otherwise`. */
long perf_machine_number(const char *path, long otherwise);

/* The CPUs that are online (returned: free()), in rising order. Returns 0, or -errno with a fault.
 */
int perf_machine_online(uint32_t **ret_cpus, size_t *ret_count, struct fault *reterr);

/* The same of those that the machine has, online or not. */
int perf_machine_present(uint32_t **ret_cpus, size_t *ret_count, struct fault *reterr);

/*
 * A CPU comes online in numbered steps. perf_machine_active_step() returns the one from which on it
 * has tasks to run, of the text of PERF_STEPS_PATH; -1: it does not say. perf_machine_runs_tasks()
 * says whether a CPU may have come as far; true where nothing tells.
 */
long perf_machine_active_step(const char *steps);
bool perf_machine_runs_tasks(uint32_t cpu);

/*
 * How far CLOCK_BOOTTIME is from the kernel's own here, in ns: a time namespace has an offset, and
 * the times of perf's records have none. 0 where the kernel has no time namespaces.
 */
int64_t perf_machine_clock_offset_ns(void);

/* The same of the text of /proc/self/timens_offsets; 0 for a text that is none. */
int64_t perf_machine_parse_clock_offset(const char *text);

/*
 * Whether every task has a pid here. In a pid namespace of our own, records show tasks outside of
 * it as pid 0, which is the idle task's. False when it is unknown.
 */
bool perf_machine_sees_all_pids(void);
