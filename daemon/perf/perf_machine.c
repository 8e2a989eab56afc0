/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the small files of /proc and /sys that perf events depend on. For a file that is missing or
 * malformed, the result is an errno or the caller's default.
 */
#include "perf_machine.h"

#include "cleanup.h"
#include "clock.h"
#include "cpu_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What we read of sysfs and sysctl ends within a page. */
#define SMALL_FILE_BYTES ((size_t)4096)

/* PROC_PID_INIT_INO of the kernel. */
#define INITIAL_PID_NAMESPACE "pid:[4026531836]"

/* Reads a small text file. Returns 0 or -errno. */
static int read_small_file(const char *path, char text[SMALL_FILE_BYTES])
{
    cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    ssize_t size = read(fd, text, SMALL_FILE_BYTES);
    if (size < 0) {
        return -errno;
    }
    if ((size_t)size == SMALL_FILE_BYTES) {
        return -E2BIG;
    }
    text[size] = '\0';
    return 0;
}

long perf_machine_number(const char *path, long otherwise)
{
    char text[SMALL_FILE_BYTES];
    if (read_small_file(path, text) < 0) {
        return otherwise;
    }
    char *end = text;
    long number = strtol(text, &end, 10);
    return end == text ? otherwise : number;
}

static int read_cpus(const char *path, uint32_t **ret_cpus, size_t *ret_count, struct fault *reterr)
{
    char text[SMALL_FILE_BYTES];
    int r = read_small_file(path, text);
    if (r >= 0) {
        r = cpu_list_parse(text, ret_cpus, ret_count);
    }
    if (r < 0) {
        (void)fault_set(reterr, -r, "cannot read the CPUs from %s: %s", path, strerror(-r));
    }
    return r;
}

int perf_machine_online(uint32_t **ret_cpus, size_t *ret_count, struct fault *reterr)
{
    return read_cpus(PERF_ONLINE_PATH, ret_cpus, ret_count, reterr);
}

int perf_machine_present(uint32_t **ret_cpus, size_t *ret_count, struct fault *reterr)
{
    return read_cpus(PERF_PRESENT_PATH, ret_cpus, ret_count, reterr);
}

long perf_machine_active_step(const char *steps)
{
    static const char name[] = ": sched:active\n";
    const char *end = strstr(steps, name);
    const char *begin = end;
    while (begin != NULL && begin > steps && begin[-1] != '\n') {
        begin--;
    }
    char *number_end = NULL;
    long number = begin == NULL ? -1 : strtol(begin, &number_end, 10);
    return number_end == end ? number : -1;
}

bool perf_machine_runs_tasks(uint32_t cpu)
{
    char steps[SMALL_FILE_BYTES];
    char path[sizeof "/sys/devices/system/cpu/cpu4294967295/hotplug/state"];
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%" PRIu32 "/hotplug/state", cpu);
    if (read_small_file(PERF_STEPS_PATH, steps) < 0) {
        return true;
    }
    const long active = perf_machine_active_step(steps);
    const long step = perf_machine_number(path, -1);
    return active < 0 || step < 0 || step >= active;
}

bool perf_machine_sees_all_pids(void)
{
    char text[sizeof INITIAL_PID_NAMESPACE + 1];
    ssize_t size = readlink("/proc/self/ns/pid", text, sizeof text);
    return size == (ssize_t)strlen(INITIAL_PID_NAMESPACE) &&
           memcmp(text, INITIAL_PID_NAMESPACE, (size_t)size) == 0;
}

int64_t perf_machine_parse_clock_offset(const char *text)
{
    static const char name[] = "boottime";
    const char *line = strstr(text, name);
    if (line == NULL) {
        return 0;
    }
    char *end = NULL;
    long long seconds = strtoll(line + sizeof name - 1, &end, 10);
    long long rest_ns = strtoll(end, NULL, 10);
    int64_t offset_ns = 0;
    return __builtin_mul_overflow(seconds, (int64_t)NS_PER_S, &offset_ns) ||
                   __builtin_add_overflow(offset_ns, rest_ns, &offset_ns)
               ? INT64_MAX
               : offset_ns;
}

int64_t perf_machine_clock_offset_ns(void)
{
    char text[SMALL_FILE_BYTES];
    return read_small_file(PERF_CLOCKS_PATH, text) < 0 ? 0 : perf_machine_parse_clock_offset(text);
}
