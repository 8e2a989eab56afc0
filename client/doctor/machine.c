/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gathers what the kernel says of itself in small files, and whether it has perf events for the
 * caller. What is asked of the kernel itself (perf_event_open(), the clock) is asked of this
 * machine's, whatever the root.
 */
#include "cleanup.h"
#include "files.h"
#include "gather.h"
#include "parse.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#define SYSCTL         "/proc/sys/kernel/"
#define LOCKDOWN_PATH  "/sys/kernel/security/lockdown"
#define SECURITY_PATH  "/sys/kernel/security"
#define CLOCK_PATH     "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define OFFSETS_PATH   "/proc/self/timens_offsets"
#define QUESTION_PATH  "/var/lib/dpkg/info/cpu-profilerd.config" /* is asked by dpkg-reconfigure */
#define MEMINFO_BYTES  ((size_t)4096)
#define OFFSETS_BYTES  ((size_t)256)
#define LOCKDOWN_BYTES ((size_t)128)

/* The mildest event that there is: the clock of the caller itself, in user mode. */
static int probe_perf(void)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    (void)close((int)fd);
    return 0;
}

/* Without the folder nothing can be said; without the file the kernel knows of no lockdown. */
static void gather_lockdown(const char *root, struct machine_facts *ret)
{
    char text[LOCKDOWN_BYTES];
    char whole[FILES_PATH_BYTES];
    ssize_t bytes = files_read(root, LOCKDOWN_PATH, text, sizeof text);
    if (bytes >= 0) {
        parse_lockdown(text, ret->lockdown, sizeof ret->lockdown);
        return;
    }
    (void)snprintf(whole, sizeof whole, "%s%s", root, SECURITY_PATH "/lsm");
    if (bytes != -ENOENT) {
        struct fact why = fact_unknown(LOCKDOWN_PATH, (int)-bytes);
        (void)snprintf(ret->lockdown_why, sizeof ret->lockdown_why, "%s", why.why);
    } else if (access(whole, F_OK) < 0) {
        (void)snprintf(ret->lockdown_why, sizeof ret->lockdown_why, "%s",
                       SECURITY_PATH " is not mounted");
    }
}

static struct fact gather_memory(const char *root)
{
    char text[MEMINFO_BYTES];
    int64_t kib = 0;
    ssize_t bytes = files_read(root, "/proc/meminfo", text, sizeof text);
    if (bytes < 0) {
        return fact_unknown("/proc/meminfo", (int)-bytes);
    }
    return parse_meminfo(text, "MemAvailable", &kib) ? fact_known(kib)
                                                     : fact_unknown("/proc/meminfo", EBADMSG);
}

static struct fact gather_clock_step(void)
{
    struct timespec step = {0};
    if (clock_getres(CLOCK_MONOTONIC, &step) < 0) {
        return fact_unknown("clock_getres()", errno);
    }
    return fact_known((int64_t)step.tv_sec * 1000000000 + step.tv_nsec);
}

void gather_machine(const char *root, struct machine_facts *ret)
{
    char offsets[OFFSETS_BYTES];
    char question[FILES_PATH_BYTES];
    (void)snprintf(question, sizeof question, "%s" QUESTION_PATH, root);
    *ret = (struct machine_facts){
        .has_package_switch = access(question, F_OK) == 0,
        .paranoid = files_number(root, SYSCTL "perf_event_paranoid"),
        .kptr_restrict = files_number(root, SYSCTL "kptr_restrict"),
        .mlock_kib = files_number(root, SYSCTL "perf_event_mlock_kb"),
        .max_sample_rate = files_number(root, SYSCTL "perf_event_max_sample_rate"),
        .cpu_time_max_percent = files_number(root, SYSCTL "perf_cpu_time_max_percent"),
        .available_kib = gather_memory(root),
        .clock_step_ns = gather_clock_step(),
        .probe_errno = probe_perf(),
    };
    gather_lockdown(root, ret);
    files_line(root, CLOCK_PATH, ret->clock_source, sizeof ret->clock_source);
    (void)files_read(root, OFFSETS_PATH, offsets, sizeof offsets);
    parse_time_offset(offsets, ret->time_offset, sizeof ret->time_offset);
}
