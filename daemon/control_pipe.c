/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pipes that Reads hand out. A client that reads from a pipe into a page which does not come
 * (userfaultfd, FUSE) holds the pipe's lock meanwhile, so nothing here may touch a pipe once a
 * client can have it: it is filled and its write end closed before; the daemon's read end is closed
 * when it has been sent, and never used. That close waits for nothing: a reader holds the file that
 * it reads from, which is the same one, so it is not the last close. (Another file of the same pipe
 * can be had by opening it anew in /proc; its mode is 0600, so this takes the daemon's own user, or
 * root, who can stop the daemon anyway.)
 *
 * Bytes in a pipe are memory of the machine, so they are counted. An epoll keeps a file in its list
 * until the last descriptor of it is closed, wherever that is: the list is the pipes that somebody
 * holds. Asking it takes no pipe's lock.
 */
#include "cleanup.h"
#include "control_peer.h"
#include "sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

/* Every pipe without a writer reports EPOLLHUP, so that what is not told is gone. */
static void look_at_pipes(struct control *control)
{
    struct epoll_event events[CONTROL_PEERS_MAX];
    for (size_t i = 0; i < CONTROL_PEERS_MAX; i++) {
        control->pipes[i].held = false;
    }
    int count = epoll_wait(control->pipes_fd, events, CONTROL_PEERS_MAX, 0);
    for (int i = 0; i < count; i++) {
        struct handed_pipe *pipe = &control->pipes[events[i].data.u32];
        pipe->held = true;
        pipe->unread = (events[i].events & EPOLLIN) != 0;
    }
}

static int check_limits(const struct peer *peer, struct fault *reterr)
{
    const struct control *control = peer->control;
    size_t all_count = 0;
    size_t uid_count = 0;
    for (size_t i = 0; i < CONTROL_PEERS_MAX; i++) {
        const struct handed_pipe *pipe = &control->pipes[i];
        all_count += pipe->held;
        uid_count += pipe->held && pipe->uid == peer->cred.uid;
        if (pipe->held && pipe->unread && pipe->peer == peer) {
            return fault_set(reterr, EBUSY,
                             "the pipe of the last Read holds bytes yet; read them, or close it");
        }
    }
    if (uid_count >= CONTROL_PEERS_PER_UID_MAX) {
        return fault_set(reterr, EDQUOT, "uid %u holds %zu pipes of earlier Reads open; close them",
                         peer->cred.uid, uid_count);
    }
    if (all_count >= CONTROL_PEERS_MAX) {
        return fault_set(reterr, EDQUOT, "clients hold %zu pipes of earlier Reads open; close them",
                         all_count);
    }
    return 0;
}

int control_pipe_new(struct peer *peer, int ret_fds[2], size_t *ret_room_bytes,
                     struct fault *reterr)
{
    int fds[2];
    look_at_pipes(peer->control);
    int r = check_limits(peer, reterr);
    if (r < 0) {
        return r;
    }
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return -errno;
    }
    (void)fcntl(fds[1], F_SETPIPE_SZ, SAMPLER_READ_BYTES_MAX);
    int room_bytes = fcntl(fds[1], F_GETPIPE_SZ);
    if (room_bytes < 0) {
        r = -errno;
        (void)close_fd(fds[0]);
        (void)close_fd(fds[1]);
        return r;
    }
    ret_fds[0] = fds[0];
    ret_fds[1] = fds[1];
    *ret_room_bytes = (size_t)room_bytes;
    return 0;
}

int control_pipe_count(struct peer *peer, int read_fd)
{
    struct control *control = peer->control;
    uint32_t slot = 0;
    while (slot < CONTROL_PEERS_MAX && control->pipes[slot].held) {
        slot++;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = slot};
    if (slot == CONTROL_PEERS_MAX) {
        return -EDQUOT;
    }
    if (epoll_ctl(control->pipes_fd, EPOLL_CTL_ADD, read_fd, &event) != 0) {
        return -errno;
    }
    control->pipes[slot] =
        (struct handed_pipe){.peer = peer, .uid = peer->cred.uid, .held = true, .unread = true};
    return 0;
}

void control_pipe_forget(const struct peer *peer)
{
    for (size_t i = 0; i < CONTROL_PEERS_MAX; i++) {
        if (peer->control->pipes[i].peer == peer) {
            peer->control->pipes[i].peer = NULL;
        }
    }
}
