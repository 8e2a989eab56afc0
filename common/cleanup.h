/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The vocabulary of ownership. Three words stand in the headers of this project:
 *   borrowed  the callee uses it for the time of the call
 *   taken     the callee owns it once it has succeeded
 *   returned  the caller owns it and releases it with the function that the comment names
 *
 * A variable that owns something says so where it is declared, and is initialised on that line:
 *   cleanup_(closep) int fd = -1;
 *   cleanup_(freep) char *text = NULL;
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define cleanup_(function) __attribute__((cleanup(function)))

/* Moves the pointer out of `variable`, which becomes NULL. */
#define take_ptr(variable)                                                                         \
    ({                                                                                             \
        __typeof__(variable) taken_ptr_ = (variable);                                              \
        (variable) = NULL;                                                                         \
        taken_ptr_;                                                                                \
    })

/* Moves the descriptor out of `variable`, which becomes -1. */
#define take_fd(variable)                                                                          \
    ({                                                                                             \
        int taken_fd_ = (variable);                                                                \
        (variable) = -1;                                                                           \
        taken_fd_;                                                                                 \
    })

/* Closes `fd` unless it is negative, keeps errno, and gives -1, so that `fd = close_fd(fd)` reads
 * well. */
static inline int close_fd(int fd)
{
    if (fd >= 0) {
        int saved_errno = errno;
        (void)close(fd);
        errno = saved_errno;
    }
    return -1;
}

static inline void closep(int *fd)
{
    *fd = close_fd(*fd);
}

static inline void freep(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

/* Of a file that was read: what fails then is of no interest. */
static inline void fclosep(FILE **file)
{
    if (*file != NULL) {
        (void)fclose(*file);
    }
}
