/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the kernel says each CPU did with its time: /proc/stat's idle (with iowait) and steal
 * columns, to one USER_HZ tick (10 ms) each. For how long it idled, cpuidle says in microseconds
 * where the machine has a driver for it; the books ask for that where no switch record tells.
 */

#include <stddef.h>
#include <stdint.h>

struct cpu_time {
    uint32_t cpu;
    uint64_t idle_ns;
    uint64_t steal_ns;
};

/*
 * Fills `times` (count of them, each with its `cpu` set); a CPU that is not there keeps its values.
 * Returns 0, or -errno when /proc/stat cannot be read.
 */
int cpu_time_read(struct cpu_time *times, size_t count);

/* The same from the text of /proc/stat, NUL-terminated. Pure. */
void cpu_time_parse(const char *text, uint64_t tick_ns, struct cpu_time *times, size_t count);

/* The name of the source for the books: "cpuidle" or "proc_stat". `root`: CPU_IDLE_ROOT. */
#define CPU_IDLE_ROOT "/sys/devices/system/cpu"
const char *cpu_idle_source(const char *root, uint32_t cpu);

/*
 * Sets idle_ns of each of `times`, whose `cpu` is set; a CPU that cannot be read keeps its value.
 * `source` is a name that cpu_idle_source() gave. Returns 0 or -errno.
 */
int cpu_idle_read(const char *root, const char *source, struct cpu_time *times, size_t count);
