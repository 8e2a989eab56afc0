/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parses the `cpuN` lines of /proc/stat: user nice system idle iowait irq softirq steal guest
 * guest_nice. The kernel's own text, so a line that does not look like that is skipped, not
 * reported.
 */
#include "cpu_time.h"

#include "cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STAT_BYTES_MAX ((size_t)1 << 20)

static void parse_line(const char *line, uint64_t tick_ns, struct cpu_time *times, size_t count)
{
    uint32_t cpu = 0;
    uint64_t idle = 0;
    uint64_t iowait = 0;
    uint64_t steal = 0;
    if (sscanf(line, "cpu%" SCNu32 " %*u %*u %*u %" SCNu64 " %" SCNu64 " %*u %*u %" SCNu64, &cpu,
               &idle, &iowait, &steal) != 4) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (times[i].cpu == cpu) {
            times[i].idle_ns = (idle + iowait) * tick_ns;
            times[i].steal_ns = steal * tick_ns;
        }
    }
}

void cpu_time_parse(const char *text, uint64_t tick_ns, struct cpu_time *times, size_t count)
{
    for (const char *line = text; line != NULL && strncmp(line, "cpu", 3) == 0;) {
        if (line[3] != ' ') { /* not the line of all CPUs together */
            parse_line(line, tick_ns, times, count);
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
}

int cpu_time_read(struct cpu_time *times, size_t count)
{
    cleanup_(closep) int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    cleanup_(freep) char *text = malloc(STAT_BYTES_MAX);
    if (text == NULL) {
        return -ENOMEM;
    }
    size_t used = 0;
    while (used < STAT_BYTES_MAX - 1) {
        ssize_t got = read(fd, text + used, STAT_BYTES_MAX - 1 - used);
        if (got < 0) {
            return -errno;
        }
        if (got == 0) {
            break;
        }
        used += (size_t)got;
    }
    text[used] = '\0';
    cpu_time_parse(text, UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK), times, count);
    return 0;
}
