/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A memfd that can never change again: neither its bytes, nor its size, nor its seals. */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

#define SEALS_ALL (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Makes `fd` (borrowed) such a memfd. Returns 0, or -errno. */
static inline int seals_add(int fd)
{
    return fcntl(fd, F_ADD_SEALS, SEALS_ALL) < 0 ? -errno : 0;
}

/* Whether `fd` (borrowed) is such a memfd. */
static inline bool seals_are_whole(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & SEALS_ALL) == SEALS_ALL;
}
