/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clients that send descriptors. The ones sent here are TCP sockets whose last close waits for
 * LINGER_S, unless the test resets their connection: a main thread that closes one is late.
 */
#include "clock.h"
#include "control_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#define LINGER_S   20
#define PROMPT_S   5
#define PAIRS_MAX  10
#define WAIT_STEPS 500 /* of 10 ms */

/* A connection over TCP whose near end cannot be closed at once. */
struct tcp_pair {
    int near_fd;
    int far_fd;
};

static struct tcp_pair make_slow_pair(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t address_bytes = sizeof address;
    const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
    static const char filler[65536];
    struct tcp_pair pair;
    cleanup_(closep) int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listen_fd >= 0);
    assert_int_equal(bind(listen_fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listen_fd, 1), 0);
    assert_int_equal(getsockname(listen_fd, (struct sockaddr *)&address, &address_bytes), 0);
    pair.near_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(pair.near_fd, (struct sockaddr *)&address, sizeof address), 0);
    pair.far_fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(pair.far_fd >= 0);
    assert_int_equal(setsockopt(pair.near_fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    while (send(pair.near_fd, filler, sizeof filler, MSG_DONTWAIT) > 0) {
    }
    return pair;
}

/* Ends it, whoever has the near end: unread bytes make this a reset. */
static void reset_pair(struct tcp_pair *pair)
{
    assert_int_equal(close(pair->far_fd), 0);
}

/* Sends the bytes, and `sent_fd` (taken) with the first of them. */
static void say_with_fd(struct client *client, const char *bytes, size_t size, int sent_fd,
                        int flags)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    char copy[256];
    assert_true(size <= sizeof copy);
    memcpy(copy, bytes, size);
    struct iovec vector = {.iov_base = copy, .iov_len = size};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &sent_fd, sizeof(int));
    assert_int_equal(sendmsg(client->fd, &message, MSG_NOSIGNAL | flags), size);
    assert_int_equal(close(sent_fd), 0);
}

static uint64_t now_s(void)
{
    return clock_ns(CLOCK_MONOTONIC) / NS_PER_S;
}

/* Until what lingers has ended. */
static void wait_for_fd_count(unsigned count)
{
    for (unsigned i = 0; i < WAIT_STEPS && count_fds() != count; i++) {
        (void)poll(NULL, 0, 10);
        pump();
    }
    assert_int_equal(count_fds(), count);
}

#define START_CALL CALL("Start")

/* What a client does with a descriptor before it is found out. */
enum way {
    WITH_A_CALL,
    BEHIND_A_CALL,
    INSIDE_A_CALL,
    WITH_AN_URGENT_BYTE,
    UNREAD_AT_ITS_END,
};

static void send_fd_in_a_way(struct client *client, enum way way, int fd)
{
    static const char calls[] = START_CALL "\0" START_CALL;
    switch (way) {
    case WITH_A_CALL:
        say_with_fd(client, START_CALL, sizeof START_CALL, fd, 0);
        break;
    case BEHIND_A_CALL:
        assert_int_equal(send(client->fd, calls, sizeof calls, 0), sizeof calls);
        say_with_fd(client, "{", 1, fd, 0);
        break;
    case INSIDE_A_CALL:
        assert_int_equal(send(client->fd, START_CALL, 10, 0), 10);
        say_with_fd(client, &START_CALL[10], sizeof START_CALL - 10, fd, 0);
        break;
    case WITH_AN_URGENT_BYTE:
        say_with_fd(client, "{", 1, fd, MSG_OOB);
        assert_int_equal(send(client->fd, START_CALL, sizeof START_CALL, 0), sizeof START_CALL);
        break;
    case UNREAD_AT_ITS_END:
        assert_int_equal(send(client->fd, "", 1, 0), 1); /* breaks the framing */
        say_with_fd(client, START_CALL, sizeof START_CALL, fd, 0);
        break;
    }
}

#define OLD_KERNEL(name) TEST_WITH(name, harness_setup_old_kernel, harness_teardown)

OLD_KERNEL(cuts_off_a_peer_that_sends_a_descriptor)
{
    for (unsigned way = WITH_A_CALL; way <= UNREAD_AT_ITS_END; way++) {
        unsigned fd_count = count_fds();
        struct tcp_pair pair = make_slow_pair();
        struct client *client = dial();
        struct client *other = dial();
        uint64_t began_s = now_s();
        send_fd_in_a_way(client, way, pair.near_fd);
        const char *heard = hear(client);
        for (unsigned i = 0; heard != NULL && i < 2; i++) {
            assert_int_equal(way, BEHIND_A_CALL);
            assert_string_equal(heard, NO_SESSION);
            heard = hear(client);
        }
        assert_null(heard);
        ask(other, CALL("Start"), NO_SESSION);
        hang_up(other);
        hang_up(client);
        assert_true(now_s() - began_s < PROMPT_S);
        reset_pair(&pair);
        wait_for_fd_count(fd_count);
    }
}

/* It is gone, and what it leaves unread in the daemon's socket must not be closed there either. */
OLD_KERNEL(closes_a_connection_whose_client_has_left_a_descriptor)
{
    unsigned fd_count = count_fds();
    struct tcp_pair pair = make_slow_pair();
    struct client *client = dial();
    struct client *other = dial();
    uint64_t began_s = now_s();
    ask(client, CREATE, CREATED);
    ask(client, CALL("Start"), EMPTY);
    say(client, CALL("Stop")); /* which is not replied to yet, so nothing more is taken */
    say_with_fd(client, START_CALL, sizeof START_CALL, pair.near_fd, 0);
    hang_up(client);
    assert_int_equal(fake.live_count, 0);
    ask(other, CREATE, CREATED);
    hang_up(other);
    assert_true(now_s() - began_s < PROMPT_S);
    reset_pair(&pair);
    wait_for_fd_count(fd_count);
}

OLD_KERNEL(counts_a_connection_until_its_descriptors_are_closed)
{
    struct tcp_pair pairs[PAIRS_MAX];
    unsigned fd_count = count_fds();
    uint64_t began_s = now_s();
    /* Two more than a user may have: those are refused, with what they brought along. */
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        pairs[i] = make_slow_pair();
        struct client *client = knock_as_user();
        say_with_fd(client, "{", 1, pairs[i].near_fd, i % 2 == 0 ? 0 : MSG_OOB);
        assert_null(hear(client));
        hang_up(client);
        if (i >= 7) {
            struct client *refused = knock_as_user();
            assert_null(hear(refused));
            hang_up(refused);
        }
    }
    assert_true(now_s() - began_s < PROMPT_S);
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        reset_pair(&pairs[i]);
    }
    wait_for_fd_count(fd_count);
    /* Who closed them says so a moment later. */
    bool answered = false;
    for (began_s = now_s(); !answered && now_s() - began_s < PROMPT_S;) {
        struct client *client = knock_as_user();
        say(client, CALL("Start"));
        const char *heard = hear(client);
        answered = heard != NULL && strcmp(heard, NO_SESSION) == 0;
        hang_up(client);
    }
    assert_true(answered);
}

OLD_KERNEL(receives_no_descriptor)
{
    struct client *client = dial();
    int fds[2];
    char byte = 0;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    unsigned fd_count = count_fds();
    say_with_fd(client, START_CALL, sizeof START_CALL, fds[1], 0);
    assert_null(hear(client));
    hang_up(client);
    wait_for_fd_count(fd_count - 3); /* both ends of the connection, and fds[1] */
    assert_int_equal(read(fds[0], &byte, 1), 0);
    assert_int_equal(close(fds[0]), 0);
}

STORY(has_the_kernel_refuse_descriptors)
{
    struct client *client = dial();
    int passes = 1;
    socklen_t bytes = sizeof passes;
    if (getsockopt(client->fd, SOL_SOCKET, 83 /* SO_PASSRIGHTS */, &passes, &bytes) != 0) {
        hang_up(client);
        skip(); /* before Linux 6.16 */
    }
    struct client *early = knock(); /* not accepted yet */
    struct client *const clients[] = {client, early};
    for (size_t i = 0; i < 2; i++) {
        union {
            struct cmsghdr header;
            char bytes[CMSG_SPACE(sizeof(int))];
        } control = {.header = {.cmsg_level = SOL_SOCKET,
                                .cmsg_type = SCM_RIGHTS,
                                .cmsg_len = CMSG_LEN(sizeof(int))}};
        struct iovec vector = {.iov_base = &bytes, .iov_len = 1};
        struct msghdr message = {.msg_iov = &vector,
                                 .msg_iovlen = 1,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof control};
        assert_int_equal(sendmsg(clients[i]->fd, &message, MSG_NOSIGNAL), -1);
        assert_int_equal(errno, EPERM);
        ask(clients[i], START_CALL, NO_SESSION);
        hang_up(clients[i]);
    }
}
