/* SPDX-License-Identifier: Apache-2.0 */

/*
 * regular_file_open() looks at what a path leads to, and then opens that. The first descriptor
 * grants nothing (O_PATH), so no driver and no reader of a FIFO notices it. The file behind it is
 * opened through /proc, so nothing can be exchanged in between.
 *
 * Files of the kernel's own filesystems count as regular, and are refused (kernel_filesystem.h): no
 * module and no debug file lies there.
 *
 * A filesystem that does not answer (a dead NFS) keeps the caller waiting, as in any program.
 */
#include "regular_file.h"

#include "cleanup.h"
#include "kernel_filesystem.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

int regular_file_open(const char *path)
{
    char again[sizeof "/proc/self/fd/" + 3 * sizeof(int)];
    struct stat status;
    struct statfs filesystem;
    cleanup_(closep) int held = open(path, O_PATH | O_CLOEXEC);
    if (held < 0 || fstat(held, &status) < 0 || fstatfs(held, &filesystem) < 0) {
        return -errno;
    }
    if (!S_ISREG(status.st_mode) || kernel_filesystem_is((uint64_t)filesystem.f_type)) {
        return -EBADF;
    }
    (void)snprintf(again, sizeof again, "/proc/self/fd/%d", held);
    int fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}
