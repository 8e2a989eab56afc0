/* SPDX-License-Identifier: Apache-2.0 */

/* Preloaded into the daemon: another task has its CPU for a while behind each switching of an
 * event. */
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <time.h>

#define HELD_UP_NS 20000000

typedef int ioctl_fn(int fd, unsigned long request, ...);

int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    ioctl_fn *real = (ioctl_fn *)dlsym(RTLD_NEXT, "ioctl");
    int r = real(fd, request, argument);
    if (request == PERF_EVENT_IOC_ENABLE || request == PERF_EVENT_IOC_DISABLE) {
        const struct timespec time = {.tv_nsec = HELD_UP_NS};
        (void)nanosleep(&time, NULL);
    }
    return r;
}
