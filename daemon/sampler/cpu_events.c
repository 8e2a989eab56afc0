/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Receives the kernel's uevents of CPUs. A uevent is text: "online@/devices/system/cpu/cpu1", a
 * NUL, and variables, which are ignored. Uevents of CPUs are recognised by their path. Only the
 * kernel's group is joined; writing to it requires rights over the network namespace.
 */
#include "cpu_events.h"

#include "cleanup.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#define KERNEL_GROUP  1
#define MESSAGE_BYTES 8192
#define TAKEN_MAX     64 /* in one call; others wait for the next */

int cpu_events_open(void)
{
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
    cleanup_(closep) int fd =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        return -errno;
    }
    return take_fd(fd);
}

bool cpu_events_concern(const char *bytes, size_t size_bytes)
{
    static const char path[] = "@/devices/system/cpu/cpu";
    const char *end = memchr(bytes, '\0', size_bytes);
    size_t text_bytes = end == NULL ? size_bytes : (size_t)(end - bytes);
    return memmem(bytes, text_bytes, path, sizeof path - 1) != NULL;
}

bool cpu_events_take(int fd)
{
    char message[MESSAGE_BYTES];
    bool concerned = false;
    for (size_t i = 0; i < TAKEN_MAX; i++) {
        ssize_t size = recv(fd, message, sizeof message, MSG_DONTWAIT);
        if (size < 0) {
            return concerned || errno == ENOBUFS;
        }
        concerned = concerned || cpu_events_concern(message, (size_t)size);
    }
    return concerned;
}
