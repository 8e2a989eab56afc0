/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads each CPU's idle time (with iowait) and steal time from /proc/stat, in units of a USER_HZ
 * tick (10 ms). Where the machine has a cpuidle driver, that has idle time in microseconds. The
 * books need it for times that no switch record covers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_time {
    uint32_t cpu;
    uint64_t idle_ns;
    uint64_t steal_ns;
};

/* The name of the idle source for the books: "cpuidle" or "proc_stat". `root`: CPU_IDLE_ROOT. */
#define CPU_IDLE_ROOT "/sys/devices/system/cpu"
const char *cpu_idle_source(const char *root, uint32_t cpu);

/*
 * Fills `times` (`count` of them, each with its `cpu` set), idle time by `idle_source`, a result of
 * cpu_idle_source(). A CPU that is offline, or cannot be read, keeps its values.
 */
void cpu_time_read(const char *root, const char *idle_source, struct cpu_time *times, size_t count);

/* The same from the text of /proc/stat, NUL-terminated; idle time only if it `has_idle`. Pure. */
void cpu_time_parse(const char *text, uint64_t tick_ns, struct cpu_time *times, size_t count,
                    bool has_idle);
