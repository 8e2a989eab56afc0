/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Descriptors go over a socket with the bytes, and no more of them come than there is room for.
 */
#include "descriptors.h"
#include "unit_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define SENT_MAX ((size_t)8)

static int next_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    (void)close(fd);
    return fd;
}

/* One message with `count` descriptors, without descriptors_send(), which refuses too many. */
static void send_many(int socket_fd, size_t count)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(SENT_MAX * sizeof(int))];
    } control = {.bytes = {0}};
    char byte = 'x';
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control};
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (size_t i = 0; i < count; i++) {
        memcpy(CMSG_DATA(header) + i * sizeof(int), &socket_fd, sizeof(int));
    }
    assert_int_equal(sendmsg(socket_fd, &message, 0), 1);
}

TEST(as_many_come_as_there_is_room_for)
{
    int sockets[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    const int first = next_fd();
    for (size_t count = 1; count <= SENT_MAX; count++) {
        /* On the heap, just so long: one more is seen. */
        int *fds = malloc(DESCRIPTORS_MAX * sizeof *fds);
        size_t fd_count = 0;
        char byte = 0;
        assert_non_null(fds);
        send_many(sockets[0], count);
        assert_int_equal(descriptors_receive(sockets[1], &byte, 1, 0, fds, &fd_count), 1);
        assert_int_equal(fd_count, count < DESCRIPTORS_MAX ? count : DESCRIPTORS_MAX);
        for (size_t i = 0; i < fd_count; i++) {
            (void)close(fds[i]);
        }
        free(fds);
        assert_int_equal(next_fd(), first); /* none is left open */
    }
    (void)close(sockets[0]);
    (void)close(sockets[1]);
}

TEST(what_is_sent_is_what_comes)
{
    int sockets[2];
    int fds[DESCRIPTORS_MAX];
    size_t fd_count = 1;
    char text[8] = "";
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(descriptors_send(sockets[0], "some", 5, sockets, 2, 0), 5);
    assert_int_equal(descriptors_receive(sockets[1], text, sizeof text, 0, fds, &fd_count), 5);
    assert_string_equal(text, "some");
    assert_int_equal(fd_count, 2);
    (void)close(fds[0]);
    (void)close(fds[1]);
    assert_int_equal(descriptors_send(sockets[0], "x", 1, NULL, 0, 0), 1);
    assert_int_equal(descriptors_receive(sockets[1], text, sizeof text, 0, fds, &fd_count), 1);
    assert_int_equal(fd_count, 0);
    assert_int_equal(descriptors_send(sockets[0], "x", 1, fds, DESCRIPTORS_MAX + 1, 0), -EINVAL);
    (void)close(sockets[0]);
    assert_int_equal(descriptors_receive(sockets[1], text, sizeof text, 0, fds, &fd_count), 0);
    assert_int_equal(descriptors_send(sockets[1], "x", 1, NULL, 0, 0), -EPIPE);
    (void)close(sockets[1]);
}
