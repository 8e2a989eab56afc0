/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sockets in a folder like /tmp may be anybody's, whatever their name, so the kernel is asked which
 * process listens. A link is not followed: in a container it may lead to a socket outside.
 */
#include "naming_socket.h"

#include "cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

int naming_socket_connect(const struct naming_process *process, int folder, const char *name)
{
    struct stat status;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t peer_bytes = sizeof peer;
    cleanup_(closep) int found = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (found < 0 || fstat(found, &status) < 0) {
        return -errno;
    }
    if (!S_ISSOCK(status.st_mode)) {
        return -ENOTSOCK;
    }
    if (status.st_uid != process->uid) {
        return -EPERM;
    }
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", found);
    cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) < 0) {
        return -errno;
    }
    return peer.pid != process->pid || peer.uid != process->uid ? -EPERM : take_fd(fd);
}

ssize_t naming_socket_exchange(int fd, const void *request, size_t request_bytes, void *into,
                               size_t capacity_bytes)
{
    size_t bytes = 0;
    ssize_t got = send(fd, request, request_bytes, MSG_NOSIGNAL);
    if (got < 0) {
        return -errno;
    }
    if ((size_t)got < request_bytes) {
        return -EIO; /* of some dozens of bytes: it is no such server */
    }
    while (bytes < capacity_bytes &&
           (got = recv(fd, (char *)into + bytes, capacity_bytes - bytes, 0)) > 0) {
        bytes += (size_t)got;
    }
    return got < 0 ? -errno : (ssize_t)bytes;
}
