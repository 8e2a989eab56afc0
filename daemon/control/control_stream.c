/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The streams that replies to Read carry: each is one end of an AF_UNIX socket pair, filled before
 * a client gets it, with no writer any more. Three things must hold, whatever a client does with
 * its end:
 *
 * The bytes are the daemon's memory, so they must leave the stream only as copies. splice() moves
 * pages of a pipe into sockets and other pipes, where they stay charged to the daemon. Bytes in the
 * linear part of a socket's buffer are copied, into memory of the caller. So each message is
 * shorter than a page, which the kernel keeps linear. The memory that clients hold is then in
 * streams that are still open, and the daemon knows both. An epoll keeps a file in its list until
 * its last descriptor is closed, in any process. TIOCOUTQ on the daemon's end is the memory of the
 * bytes that were not received yet. Neither takes a lock that a reader can hold.
 *
 * The daemon must not wait for a client. A client that receives into a page that is never provided
 * (userfaultfd, FUSE) holds the stream's lock. Only receiving, peeking and splicing take that lock,
 * and the daemon does none of them. The daemon closes its copy of the client's end after sending
 * it. That can be the last close, of a socket that holds only bytes, so it does not wait. No
 * descriptor can be in the socket, since both directions are shut down before. No file system of a
 * client can hang on it, since a socket with a name cannot be bound to a path any more; the random
 * name is for that. A socket cannot be opened anew through /proc.
 *
 * The daemon's own end stays open while any process holds the other one.
 */
#include "account.h"
#include "cleanup.h"
#include "control_peer.h"
#include "log.h"
#include "sampler.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/un.h>

/* With what the kernel puts behind it (320 bytes, some more in kernels that debug) below a page. */
#define MESSAGE_BYTES ((size_t)3072)

/* A session's longest record and the beginning of a segment must fit (see trace_cursor.h). */
#define LEAST_ROOM_BYTES ((size_t)65536)

#define NAME_RANDOM_BYTES 16

/* Memory that unread bytes take in the kernel, everything included. */
static size_t held_bytes(const struct handed_stream *stream)
{
    int bytes = 0;
    return stream->held && ioctl(stream->fill_fd, TIOCOUTQ, &bytes) == 0 && bytes > 0
               ? (size_t)bytes
               : 0;
}

/* Every stream reports EPOLLHUP, since it has no writer: what is not reported is closed. */
static void look_at_streams(struct control *control)
{
    struct epoll_event events[CONTROL_STREAMS_MAX];
    int count = epoll_wait(control->streams_fd, events, CONTROL_STREAMS_MAX, 0);
    if (count < 0) {
        return; /* what was held counts as held */
    }
    for (size_t i = 0; i < CONTROL_STREAMS_MAX; i++) {
        control->streams[i].held = false;
    }
    for (int i = 0; i < count; i++) {
        control->streams[events[i].data.u32].held = true;
    }
    for (size_t i = 0; i < CONTROL_STREAMS_MAX; i++) {
        struct handed_stream *stream = &control->streams[i];
        if (!stream->held && stream->used) {
            stream->fill_fd = close_fd(stream->fill_fd);
            stream->used = false;
        }
    }
}

/* Streams that are held, and the memory of what is unread in them. */
struct holding {
    size_t count;
    size_t bytes;
};

static void add_to_holding(struct holding *holding, const struct handed_stream *stream)
{
    holding->count++;
    holding->bytes += held_bytes(stream);
}

static int check_shares(const struct peer *peer, const struct holding *own,
                        const struct holding *users, struct fault *reterr)
{
    const size_t more_bytes = peer->control->stream_cost_bytes;
    if (own->count >= CONTROL_STREAMS_PER_ACCOUNT_MAX ||
        own->bytes + more_bytes > CONTROL_STREAM_BYTES_PER_ACCOUNT_MAX) {
        return fault_set(reterr, EDQUOT,
                         "uid %u holds %zu streams of earlier Reads open, with %zu KiB unread; "
                         "read and close them",
                         peer->cred.uid, own->count, own->bytes / 1024);
    }
    bool has_share = users->count < CONTROL_STREAMS_SHARED &&
                     users->bytes + more_bytes <= CONTROL_STREAM_BYTES_SHARED;
    bool is_root = peer->cred.uid == 0;
    bool is_first =
        own->count == 0 && users->count < CONTROL_STREAMS_MAX - CONTROL_STREAMS_PER_ACCOUNT_MAX;
    if (!has_share && !is_root && !is_first) {
        return fault_set(reterr, EDQUOT,
                         "clients hold %zu streams of earlier Reads open, with %zu KiB unread; "
                         "close yours, or wait for others",
                         users->count, users->bytes / 1024);
    }
    return 0;
}

int control_stream_check(struct peer *peer, struct fault *reterr)
{
    struct control *control = peer->control;
    struct holding own = {0};
    struct holding users = {0}; /* root's apart */
    look_at_streams(control);
    for (size_t i = 0; i < CONTROL_STREAMS_MAX; i++) {
        const struct handed_stream *stream = &control->streams[i];
        if (!stream->used) {
            continue;
        }
        if (stream->peer == peer && held_bytes(stream) > 0) {
            return fault_set(reterr, EBUSY,
                             "the stream of the last Read holds bytes yet; read them, or close it");
        }
        if (account_of(stream->uid) == account_of(peer->cred.uid)) {
            add_to_holding(&own, stream);
        }
        if (stream->uid != 0) {
            add_to_holding(&users, stream);
        }
    }
    return check_shares(peer, &own, &users, reterr);
}

/* Gives the socket a name that cannot be guessed. Returns 0 or -errno. */
static int name_socket(int fd)
{
    static const char prefix[] = "cpu-profilerd-stream-";
    struct sockaddr_un address = {.sun_family = AF_UNIX}; /* the path begins with a NUL: abstract */
    char *name = address.sun_path + 1;
    memcpy(name, prefix, sizeof prefix - 1);
    if (getrandom(name + sizeof prefix - 1, NAME_RANDOM_BYTES, GRND_NONBLOCK) !=
        NAME_RANDOM_BYTES) {
        return -EIO;
    }
    const size_t bytes =
        offsetof(struct sockaddr_un, sun_path) + 1 + sizeof prefix - 1 + NAME_RANDOM_BYTES;
    return bind(fd, (const struct sockaddr *)&address, (socklen_t)bytes) == 0 ? 0 : -errno;
}

/* [0] is to be filled, [1] to be handed out; returned. Returns 0 or -errno. */
static int open_pair(int ret_fds[2])
{
    const int wanted_bytes = SAMPLER_READ_BYTES_MAX; /* of which the kernel grants twice as many */
    int fds[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
        return -errno;
    }
    (void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &wanted_bytes, sizeof wanted_bytes);
    int r = name_socket(fds[1]);
    if (r < 0) {
        (void)close_fd(fds[0]);
        (void)close_fd(fds[1]);
        return r;
    }
    ret_fds[0] = fds[0];
    ret_fds[1] = fds[1];
    return 0;
}

/* Sends what the socket takes of `size_bytes`. Returns how many bytes went, or -errno. */
static ssize_t fill(int fd, const char *bytes, size_t size_bytes)
{
    size_t sent_bytes = 0;
    while (sent_bytes < size_bytes) {
        size_t left_bytes = size_bytes - sent_bytes;
        ssize_t sent =
            send(fd, bytes + sent_bytes, left_bytes < MESSAGE_BYTES ? left_bytes : MESSAGE_BYTES,
                 MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) {
            return -errno;
        }
        if (sent < 0) {
            break;
        }
        sent_bytes += (size_t)sent;
    }
    return (ssize_t)sent_bytes;
}

/* Finds out how many bytes a stream holds, and what memory they take. */
static int measure_room(struct control *control)
{
    int fds[2] = {-1, -1};
    int cost_bytes = 0;
    cleanup_(freep) char *bytes = calloc(1, SAMPLER_READ_BYTES_MAX);
    int r = bytes == NULL ? -ENOMEM : open_pair(fds);
    if (r < 0) {
        return r;
    }
    cleanup_(closep) int fill_fd = fds[0];
    cleanup_(closep) int read_fd = fds[1];
    ssize_t room_bytes = fill(fill_fd, bytes, SAMPLER_READ_BYTES_MAX);
    if (room_bytes < 0 || ioctl(fill_fd, TIOCOUTQ, &cost_bytes) != 0) {
        return room_bytes < 0 ? (int)room_bytes : -errno;
    }
    if ((size_t)room_bytes < LEAST_ROOM_BYTES) {
        return log_error(-ENOBUFS,
                         "a socket takes %zd bytes, and Read needs %zu; raise the sysctls "
                         "net.core.wmem_max and net.core.wmem_default to 212992",
                         room_bytes, LEAST_ROOM_BYTES);
    }
    control->stream_room_bytes = (size_t)room_bytes;
    control->stream_cost_bytes = (size_t)cost_bytes;
    return 0;
}

int control_stream_init(struct control *control)
{
    control->streams_fd = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < CONTROL_STREAMS_MAX; i++) {
        control->streams[i].fill_fd = -1;
    }
    return control->streams_fd < 0 ? -errno : measure_room(control);
}

void control_stream_done(struct control *control)
{
    for (size_t i = 0; i < CONTROL_STREAMS_MAX; i++) {
        control->streams[i].fill_fd = close_fd(control->streams[i].fill_fd);
    }
    control->streams_fd = close_fd(control->streams_fd);
}

/* Counts a stream as handed out to the peer; `fill_fd` is taken on success. */
static int count_stream(struct peer *peer, int fill_fd, int read_fd)
{
    struct control *control = peer->control;
    uint32_t slot = 0;
    while (slot < CONTROL_STREAMS_MAX && control->streams[slot].used) {
        slot++;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = slot};
    if (slot == CONTROL_STREAMS_MAX) {
        return -EDQUOT;
    }
    if (epoll_ctl(control->streams_fd, EPOLL_CTL_ADD, read_fd, &event) != 0) {
        return -errno;
    }
    control->streams[slot] = (struct handed_stream){
        .peer = peer, .uid = peer->cred.uid, .fill_fd = fill_fd, .used = true, .held = true};
    return 0;
}

int control_stream_new(struct peer *peer, const void *bytes, size_t size_bytes, int *ret_fd,
                       struct fault *reterr)
{
    int fds[2] = {-1, -1};
    int r = open_pair(fds);
    if (r < 0) {
        return r;
    }
    cleanup_(closep) int fill_fd = fds[0];
    cleanup_(closep) int read_fd = fds[1];
    ssize_t sent = fill(fill_fd, bytes, size_bytes);
    if (sent < 0) {
        return (int)sent;
    }
    if ((size_t)sent < size_bytes) {
        return fault_set(reterr, ENOBUFS,
                         "a socket takes %zd bytes now and took %zu when the daemon started; "
                         "raise the sysctl net.core.wmem_max to what it was",
                         sent, peer->control->stream_room_bytes);
    }
    if (shutdown(fill_fd, SHUT_RDWR) != 0) {
        return -errno;
    }
    r = count_stream(peer, fill_fd, read_fd);
    if (r < 0) {
        return r;
    }
    (void)take_fd(fill_fd);
    *ret_fd = take_fd(read_fd);
    return 0;
}

void control_stream_forget(const struct peer *peer)
{
    for (size_t i = 0; i < CONTROL_STREAMS_MAX; i++) {
        if (peer->control->streams[i].peer == peer) {
            peer->control->streams[i].peer = NULL;
        }
    }
}

void control_stream_tick(struct control *control)
{
    look_at_streams(control);
}
