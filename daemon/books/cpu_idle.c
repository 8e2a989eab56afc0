/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cpuidle counts the time of each idle state in cpuN/cpuidle/stateM/time. States are numbered from
 * 0 without a gap, and a CPU that goes offline keeps its files.
 */
#include "cpu_idle.h"

#include "cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATES_MAX 32 /* the kernel's own limit is 10 */

static const char cpuidle[] = "cpuidle";
static const char proc_stat[] = "proc_stat";

static bool read_state_us(const char *root, uint32_t cpu, unsigned state, uint64_t *ret)
{
    char path[256];
    char text[32] = "";
    (void)snprintf(path, sizeof path, "%s/cpu%" PRIu32 "/cpuidle/state%u/time", root, cpu, state);
    cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) {
        return false;
    }
    *ret = strtoull(text, NULL, 10);
    return true;
}

const char *cpu_idle_source(const char *root, uint32_t cpu)
{
    uint64_t ignored = 0;
    return read_state_us(root, cpu, 0, &ignored) ? cpuidle : proc_stat;
}

int cpu_idle_read(const char *root, const char *source, struct cpu_time *times, size_t count)
{
    if (strcmp(source, cpuidle) != 0) {
        return cpu_time_read(times, count);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t sum_us = 0;
        uint64_t state_us = 0;
        unsigned state = 0;
        while (state < STATES_MAX && read_state_us(root, times[i].cpu, state, &state_us)) {
            sum_us += state_us;
            state++;
        }
        times[i].idle_ns = state == 0 ? times[i].idle_ns : sum_us * 1000;
    }
    return 0;
}
