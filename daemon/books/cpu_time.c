/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parses the `cpuN` lines of /proc/stat: user nice system idle iowait irq softirq steal guest
 * guest_nice. The kernel's own text, so a line that does not look like that is skipped, not
 * reported.
 */
#include "cpu_time.h"

#include "cleanup.h"
#include "clock.h"

#include <fcntl.h>
#include <string.h>

#define STAT_BYTES_MAX ((size_t)1 << 20)

/* Columns of a line, after the CPU's number. */
enum {
    COLUMN_IDLE = 3,
    COLUMN_IOWAIT = 4,
    COLUMN_STEAL = 7,
    COLUMN_COUNT,
};

static void parse_line(const char *line, uint64_t tick_ns, struct cpu_time *times, size_t count)
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
            times[i].idle_ns = (columns[COLUMN_IDLE] + columns[COLUMN_IOWAIT]) * tick_ns;
            times[i].steal_ns = columns[COLUMN_STEAL] * tick_ns;
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
    cpu_time_parse(text, NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK), times, count);
    return 0;
}
