/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parses the `cpuN` lines of /proc/stat: user nice system idle iowait irq softirq steal guest
 * guest_nice. The text is the kernel's own, so a line of another form is skipped, not reported.
 * cpuidle has the time of each idle state in cpuN/cpuidle/stateM/time. States have numbers from 0
 * without a gap, and a CPU that goes offline keeps its files.
 */
#include "cpu_time.h"

#include "cleanup.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAT_BYTES_MAX ((size_t)1 << 20)
#define STATES_MAX     32 /* the kernel's own limit is 10 */

static const char cpuidle[] = "cpuidle";
static const char proc_stat[] = "proc_stat";

/* Columns of a line, after the CPU's number. */
enum {
    COLUMN_IDLE = 3,
    COLUMN_IOWAIT = 4,
    COLUMN_STEAL = 7,
    COLUMN_COUNT,
};

static void parse_line(const char *line, uint64_t tick_ns, struct cpu_time *times, size_t count,
                       bool has_idle)
{
    uint64_t columns[COLUMN_COUNT];
    char *end = NULL;
    uint64_t cpu = strtoull(line + 3, &end, 10);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (*end != ' ') {
            return;
        }
        columns[i] = strtoull(end, &end, 10);
    }
    for (size_t i = 0; i < count; i++) {
        if (times[i].cpu == cpu) {
            if (has_idle) {
                times[i].idle_ns = (columns[COLUMN_IDLE] + columns[COLUMN_IOWAIT]) * tick_ns;
            }
            times[i].steal_ns = columns[COLUMN_STEAL] * tick_ns;
        }
    }
}

void cpu_time_parse(const char *text, uint64_t tick_ns, struct cpu_time *times, size_t count,
                    bool has_idle)
{
    for (const char *line = text; line != NULL && strncmp(line, "cpu", 3) == 0;) {
        if (line[3] != ' ') { /* not the line of all CPUs together */
            parse_line(line, tick_ns, times, count, has_idle);
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
}

/* Where it cannot be read, the times are those that they were. */
static void read_stat(struct cpu_time *times, size_t count, bool has_idle)
{
    size_t used = 0;
    ssize_t got = 0;
    cleanup_(freep) char *text = malloc(STAT_BYTES_MAX);
    cleanup_(closep) int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    while (text != NULL && fd >= 0 && used < STAT_BYTES_MAX - 1 &&
           (got = read(fd, text + used, STAT_BYTES_MAX - 1 - used)) > 0) {
        used += (size_t)got;
    }
    if (used > 0 && got >= 0) {
        text[used] = '\0';
        cpu_time_parse(text, NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK), times, count, has_idle);
    }
}

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

static void read_idle(const char *root, struct cpu_time *time)
{
    uint64_t sum_us = 0;
    uint64_t state_us = 0;
    unsigned state = 0;
    while (state < STATES_MAX && read_state_us(root, time->cpu, state, &state_us)) {
        sum_us += state_us;
        state++;
    }
    time->idle_ns = state == 0 ? time->idle_ns : sum_us * 1000;
}

void cpu_time_read(const char *root, const char *idle_source, struct cpu_time *times, size_t count)
{
    bool is_cpuidle = strcmp(idle_source, cpuidle) == 0;
    for (size_t i = 0; i < count && is_cpuidle; i++) {
        read_idle(root, &times[i]);
    }
    read_stat(times, count, !is_cpuidle);
}
