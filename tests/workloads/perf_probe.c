/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asks the kernel for what cpu-profilerd needs first: a cpu-clock event on a CPU, for all
 * processes. Exit 0 when it may; else 1, and one sentence that says what is missing.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_cpu_clock(void)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = 10000000,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
        .disabled = 1,
    };
    return (int)syscall(SYS_perf_event_open, &attr, -1, sched_getcpu(), -1, PERF_FLAG_FD_CLOEXEC);
}

static int paranoid_level(void)
{
    int level = -100;
    FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
    if (file != NULL) {
        if (fscanf(file, "%d", &level) != 1) { /* NOLINT(cert-err34-c): the kernel's own number */
            level = -100;
        }
        (void)fclose(file);
    }
    return level;
}

int main(void)
{
    int event = open_cpu_clock();
    int error = errno;
    if (event >= 0) {
        (void)close(event);
        return 0;
    }
    printf("perf_event_open for all processes: %s; ", strerror(error));
    switch (error) {
    case EACCES:
        printf("kernel.perf_event_paranoid is %d; run as root, or give CAP_PERFMON and set it to "
               "2 or less\n",
               paranoid_level());
        break;
    case EPERM:
        printf("a seccomp filter or a security module refuses it (in a container: allow the system "
               "call perf_event_open and CAP_PERFMON)\n");
        break;
    case ENOSYS:
        printf("this kernel has no perf events, or a seccomp filter hides them\n");
        break;
    default:
        printf("the kernel offers no cpu-clock event here\n");
        break;
    }
    return 1;
}
