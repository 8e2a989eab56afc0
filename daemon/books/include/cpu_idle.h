/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For how long each CPU has idled, by the kernel's own sums: where no switch record tells. Of
 * cpuidle (microseconds) where the machine has a driver for it, else of /proc/stat (10 ms).
 */

#include "cpu_time.h"

/* The name of the source for the books: "cpuidle" or "proc_stat". `root`: CPU_IDLE_ROOT. */
#define CPU_IDLE_ROOT "/sys/devices/system/cpu"
const char *cpu_idle_source(const char *root, uint32_t cpu);

/*
 * Sets idle_ns of each of `times`, whose `cpu` is set; a CPU that cannot be read keeps its value.
 * `source` is a name that cpu_idle_source() gave. Returns 0 or -errno.
 */
int cpu_idle_read(const char *root, const char *source, struct cpu_time *times, size_t count);
