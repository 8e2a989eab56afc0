/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One exchange with a socket of a process. It may block for ever: it is a child's (naming_ask.h),
 * which has its time and no more.
 */

#include "naming_process.h"

/*
 * Connects to the socket of that name in a folder (borrowed), if the process itself listens there
 * and no other. Returns a descriptor: close(); or -errno, -EPERM where another process listens
 * or another user has made the socket, -ENOTSOCK for a link or another file.
 */
int naming_socket_connect(const struct naming_process *process, int folder, const char *name);

/* Sends the request, and reads until `capacity_bytes` or the end. Returns the bytes read, or
 * -errno. */
ssize_t naming_socket_exchange(int fd, const void *request, size_t request_bytes, void *into,
                               size_t capacity_bytes);
