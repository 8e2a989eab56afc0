/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the kernel says each CPU did with its time: /proc/stat's idle (with iowait) and steal
 * columns, to one USER_HZ tick (10 ms) each.
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
