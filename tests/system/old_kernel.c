/* SPDX-License-Identifier: Apache-2.0 */

/* Preloaded into the daemon: the kernel knows no control groups of samples, as before Linux 5.7. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENTS 6

typedef long syscall_fn(long number, ...);

long syscall(long number, ...)
{
    long arguments[ARGUMENTS];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < ARGUMENTS; i++) {
        arguments[i] = va_arg(list, long);
    }
    va_end(list);
    const struct perf_event_attr *attr = (const struct perf_event_attr *)arguments[0];
    if (number == SYS_perf_event_open && attr->cgroup != 0) {
        errno = EINVAL;
        return -1;
    }
    syscall_fn *real = (syscall_fn *)dlsym(RTLD_NEXT, "syscall");
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                arguments[5]);
}
