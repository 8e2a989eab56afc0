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

/* Ends it at either end: unread bytes make this a reset. */
static void reset_pair(struct tcp_pair *pair)
{
    assert_int_equal(close(pair->far_fd), 0);
}

/* Sends the bytes, and `sent_fd` with the first of them. */
static ssize_t send_with_fd(struct client *client, const char *bytes, size_t size, int sent_fd,
                            int flags)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS,
                            .cmsg_len = CMSG_LEN(sizeof(int))}};
    char copy[256];
    assert_true(size <= sizeof copy);
    memcpy(copy, bytes, size);
    memcpy(CMSG_DATA(&control.header), &sent_fd, sizeof(int));
    struct iovec vector = {.iov_base = copy, .iov_len = size};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    return sendmsg(client->fd, &message, MSG_NOSIGNAL | flags);
}

/* Likewise; the descriptor is taken. */
static void say_with_fd(struct client *client, const char *bytes, size_t size, int sent_fd,
                        int flags)
{
    assert_int_equal(send_with_fd(client, bytes, size, sent_fd, flags), size);
    assert_int_equal(close(sent_fd), 0);
}

static uint64_t now_s(void)
{
    return clock_ns(CLOCK_MONOTONIC) / NS_PER_S;
}

/* Until what lingers has ended. */
static void wait_for_fd_count(size_t count)
{
    for (unsigned i = 0; i < WAIT_STEPS && count_descriptors() != count; i++) {
        (void)poll(NULL, 0, 10);
        pump();
    }
    assert_int_equal(count_descriptors(), count);
}

#define START_CALL CALL("Start")

/* What a client does with a descriptor before it is found out: it comes with the second part. */
static const struct way {
    const char *what;
    const char *parts[3];
    size_t sizes[3];
    int flags;
    unsigned answer_count;
} ways[] = {
    {"with a call", {"", START_CALL, ""}, {0, sizeof START_CALL, 0}, 0, 0},
    {"behind two calls",
     {START_CALL "\0" START_CALL, "{", ""},
     {2 * sizeof START_CALL, 1, 0},
     0,
     2},
    {"inside a call", {START_CALL, &START_CALL[10], ""}, {10, sizeof START_CALL - 10, 0}, 0, 0},
    {"with an urgent byte", {"", "{", START_CALL}, {0, 1, sizeof START_CALL}, MSG_OOB, 0},
    /* The first byte breaks the framing. */
    {"unread at its end", {"", START_CALL, ""}, {1, sizeof START_CALL, 0}, 0, 0},
};

#define OLD_KERNEL(name) TEST_WITH(name, harness_setup_old_kernel, harness_teardown)

OLD_KERNEL(cuts_off_a_peer_that_sends_a_descriptor)
{
    for (const struct way *way = ways; way < ways + COUNT_OF(ways); way++) {
        size_t fd_count = count_descriptors();
        struct tcp_pair pair = make_slow_pair();
        struct client *client = dial();
        struct client *other = dial();
        uint64_t began_s = now_s();
        print_message("%s\n", way->what);
        assert_int_equal(send(client->fd, way->parts[0], way->sizes[0], 0), way->sizes[0]);
        say_with_fd(client, way->parts[1], way->sizes[1], pair.near_fd, way->flags);
        assert_int_equal(send(client->fd, way->parts[2], way->sizes[2], 0), way->sizes[2]);
        const char *heard = hear(client);
        for (unsigned i = 0; heard != NULL && i < way->answer_count; i++) {
            assert_string_equal(heard, NO_SESSION);
            heard = hear(client);
        }
        assert_null(heard);
        hang_up(served(other));
        hang_up(client);
        assert_true(now_s() - began_s < PROMPT_S);
        reset_pair(&pair);
        wait_for_fd_count(fd_count);
    }
}

/* It is gone, and what it leaves unread in the daemon's socket must not be closed there either. */
OLD_KERNEL(closes_a_connection_whose_client_has_left_a_descriptor)
{
    size_t fd_count = count_descriptors();
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
    size_t fd_count = count_descriptors();
    uint64_t began_s = now_s();
    /* Two more than a user may have: those are refused, with what they brought along. */
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        pairs[i] = make_slow_pair();
        struct client *client = knock_as_user();
        say_with_fd(client, "{", 1, pairs[i].near_fd, i % 2 == 0 ? 0 : MSG_OOB);
        expect_closed(client);
        if (i >= 7) {
            struct client *refused = knock_as_user();
            expect_closed(refused);
        }
    }
    assert_true(now_s() - began_s < PROMPT_S);
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        reset_pair(&pairs[i]);
    }
    wait_for_fd_count(fd_count);
    /* The thread that closed them says so a moment later. */
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
    size_t fd_count = count_descriptors();
    say_with_fd(client, START_CALL, sizeof START_CALL, fds[1], 0);
    expect_closed(client);
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
        assert_int_equal(send_with_fd(clients[i], "x", 1, STDIN_FILENO, 0), -1);
        assert_int_equal(errno, EPERM);
        hang_up(served(clients[i]));
    }
}
