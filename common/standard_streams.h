/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <fcntl.h>
#include <unistd.h>

/*
 * Takes those of the descriptors 0 to 2 that are closed, so that no file that is opened later has
 * the number of a standard stream. Reading and writing them fails as before (EBADF), and programs
 * that are executed find them closed. Called first in main().
 */
static inline void standard_streams_take(void)
{
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO) {
        fd = open("/", O_PATH | O_CLOEXEC);
    }
    if (fd > STDERR_FILENO) {
        (void)close(fd);
    }
}
