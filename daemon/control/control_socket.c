/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads from connections without receiving descriptors, which clients may send all the same. The
 * thread that takes a message out of the socket releases its descriptors. A release can take as
 * long as the sender likes: a TCP socket lingers, a pipe waits for a reader that is in a page
 * fault. So the main thread peeks first:
 *   - It takes only bytes without a descriptor beside them. The first descriptor that it sees ends
 *     the connection.
 *   - A connection that ends is shut down first, so that nothing more arrives, and emptied as far
 * as that is safe. If a descriptor is left, a thread of its own closes the socket. Until then the
 *     connection counts as one of its account's.
 */
#include "account.h"
#include "cleanup.h"
#include "clock.h"
#include "control_peer.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define DISCARD_BYTES      ((size_t)16384)
#define END_LIMIT_S        1
#define DISCARD_ROUNDS_MAX 4096 /* of one message at least: more than a socket's queue holds */

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

void socket_refuse_descriptors(int listen_fd)
{
    const int off = 0;
    (void)setsockopt(listen_fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off);
}

/*
 * What a listener that was passed in may have switched on would set MSG_CTRUNC without a
 * descriptor; and a descriptor with an urgent byte is seen only where that byte stands in line.
 */
int socket_prepare(int fd)
{
    const int off = 0;
    const int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &off, sizeof off) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_PASSSEC, &off, sizeof off) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on) != 0) {
        return -errno;
    }
    return 0;
}

ssize_t socket_receive(int fd, void *buffer, size_t room_bytes)
{
    struct iovec bytes = {.iov_base = buffer, .iov_len = room_bytes};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    ssize_t peeked = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);
    if (peeked <= 0) {
        return peeked < 0 ? -errno : 0;
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
        return -EBADMSG;
    }
    ssize_t received = recv(fd, buffer, (size_t)peeked, MSG_DONTWAIT);
    return received < 0 ? -errno : received;
}

/* Returns whether nothing is left in a socket that has been shut down. */
static bool discard_input(int fd)
{
    char buffer[DISCARD_BYTES];
    ssize_t received = 1;
    for (unsigned i = 0; received > 0 && i < DISCARD_ROUNDS_MAX; i++) {
        received = socket_receive(fd, buffer, sizeof buffer);
    }
    return received == 0;
}

static void *close_socket(void *userdata)
{
    (void)close((int)(intptr_t)userdata);
    return NULL;
}

/* Without a thread for it the socket waits; the next count tries again. */
static void start_closing(struct lingering *slot)
{
    slot->started =
        pthread_create(&slot->thread, NULL, close_socket, (void *)(intptr_t)slot->fd) == 0;
}

size_t control_lingering_count(struct control *control, const uint32_t *account)
{
    size_t count = 0;
    for (size_t i = 0; i < CONTROL_LINGERING_MAX; i++) {
        struct lingering *slot = &control->lingering[i];
        if (slot->used && !slot->started) {
            start_closing(slot);
        }
        if (slot->used && slot->started && pthread_tryjoin_np(slot->thread, NULL) == 0) {
            slot->used = false;
        }
        count += slot->used && (account == NULL || *account == account_of(slot->uid));
    }
    return count;
}

void socket_close(struct control *control, int fd, uid_t uid)
{
    (void)shutdown(fd, SHUT_RDWR);
    if (discard_input(fd)) {
        (void)close_fd(fd);
        return;
    }
    for (size_t i = 0; i < CONTROL_LINGERING_MAX; i++) {
        if (!control->lingering[i].used) {
            control->lingering[i] = (struct lingering){.used = true, .fd = fd, .uid = uid};
            start_closing(&control->lingering[i]);
            return;
        }
    }
}

void control_end_lingering(struct control *control)
{
    const struct timespec limit =
        clock_timespec(clock_ns(CLOCK_MONOTONIC) + END_LIMIT_S * NS_PER_S);
    for (size_t i = 0; i < CONTROL_LINGERING_MAX; i++) {
        struct lingering *slot = &control->lingering[i];
        if (slot->used && slot->started &&
            pthread_clockjoin_np(slot->thread, NULL, CLOCK_MONOTONIC, &limit) == 0) {
            slot->used = false;
        }
    }
}
