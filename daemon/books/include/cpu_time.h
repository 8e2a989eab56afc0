/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads each CPU's idle time (with iowait) and steal time from /proc/stat, in units of a USER_HZ
 * tick (10 ms). Where the machine has a cpuidle driver, that has idle time in microseconds. The
 * books need it for times that no switch record covers.
 */

#include <stddef.h>
#include <stdint.h>

struct cpu_time {
    uint32_t cpu;
    uint64_t idle_ns;
    uint64_t steal_ns;
};

/*
 * Fills `times` (`count` of them, each with its `cpu` set). A CPU that is offline keeps its values.
 * Returns 0, or -errno when /proc/stat cannot be read.
 */
int cpu_time_read(struct cpu_time *times, size_t count);

/* The same from the text of /proc/stat, NUL-terminated. Pure. */
void cpu_time_parse(const char *text, uint64_t tick_ns, struct cpu_time *times, size_t count);

/* The name of the idle source for the books: "cpuidle" or "proc_stat". `root`: CPU_IDLE_ROOT. */
#define CPU_IDLE_ROOT "/sys/devices/system/cpu"
const char *cpu_idle_source(const char *root, uint32_t cpu);

/*
 * Sets idle_ns of each of `times`, whose `cpu` is set. A CPU that cannot be read keeps its value.
 * `source` is a result of cpu_idle_source(). Returns 0 or -errno.
 */
int cpu_idle_read(const char *root, const char *source, struct cpu_time *times, size_t count);
