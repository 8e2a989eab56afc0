/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sends and receives one message with descriptors. The buffer's size is given as CMSG_LEN(): the
 * larger CMSG_SPACE() rounds up to words, and the kernel would fill that room with one descriptor
 * more than there is a place for.
 */
#include "descriptors.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
};

ssize_t descriptors_send(int socket_fd, const void *bytes, size_t size_bytes, const int *fds,
                         size_t fd_count, int flags)
{
    union control control = {.bytes = {0}};
    /* sendmsg() writes nothing through it. */
    struct iovec data = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size_bytes};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (fd_count > DESCRIPTORS_MAX) {
        return -EINVAL;
    }
    if (fd_count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof *fds);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fd_count * sizeof *fds);
        memcpy(CMSG_DATA(header), fds, fd_count * sizeof *fds);
    }
    ssize_t sent = sendmsg(socket_fd, &message, MSG_NOSIGNAL | flags);
    return sent < 0 ? -errno : sent;
}

ssize_t descriptors_receive(int socket_fd, void *bytes, size_t size_bytes, int flags,
                            int ret_fds[DESCRIPTORS_MAX], size_t *ret_fd_count)
{
    union control control;
    struct iovec data = {.iov_base = bytes, .iov_len = size_bytes};
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = CMSG_LEN(DESCRIPTORS_MAX * sizeof *ret_fds),
    };
    ssize_t got = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC | flags);
    if (got < 0) {
        return -errno;
    }
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *ret_fd_count = 0;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        memcpy(ret_fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
        *ret_fd_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof *ret_fds;
    }
    return got;
}
