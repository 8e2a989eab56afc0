/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Descriptors that go over a Unix socket with the bytes of a message (SCM_RIGHTS). */

#include <stddef.h>
#include <sys/types.h>

#define DESCRIPTORS_MAX 3 /* of a message */

/* One sendmsg() of bytes with `fd_count` descriptors (borrowed; 0: none), never with SIGPIPE.
 * Returns how many bytes went, the descriptors with the first of them, or -errno. */
ssize_t descriptors_send(int socket_fd, const void *bytes, size_t size_bytes, const int *fds,
                         size_t fd_count, int flags);

/*
 * One recvmsg() of bytes and at most DESCRIPTORS_MAX descriptors (returned: close). The kernel
 * closes what a message brings beyond these. Returns how many bytes came, 0 at the end, with
 * `*ret_fd_count`; or -errno.
 */
ssize_t descriptors_receive(int socket_fd, void *bytes, size_t size_bytes, int flags,
                            int ret_fds[DESCRIPTORS_MAX], size_t *ret_fd_count);
