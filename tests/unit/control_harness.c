/* SPDX-License-Identifier: Apache-2.0 */

/* See control_harness.h. Nothing waits for longer than HEAR_ROUNDS_MAX x 10 ms. */
#include "control_harness.h"

#include "clock.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define HEAR_ROUNDS_MAX 500

struct harness harness;

static uint64_t skipped_ns; /* by pump_for_ms() */

/* In place of the C library's, also for libsystemd. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    int r = (int)syscall(SYS_clock_gettime, clock, ret);
    const uint64_t now_ns = (uint64_t)ret->tv_sec * NS_PER_S + (uint64_t)ret->tv_nsec +
                            (clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ? skipped_ns : 0);
    *ret = clock_timespec(now_ns);
    return r;
}

int harness_setup(void **state)
{
    (void)state;
    struct fault fault = {0};
    fake_reset();
    harness.fd_count = count_descriptors();
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        harness.clients[i] = (struct client){.fd = -1, .got_fd = -1};
    }
    (void)snprintf(harness.path, sizeof harness.path, "/tmp/test-control-%d.sock", (int)getpid());
    int fd = control_listen(harness.path, &fault);
    assert_string_equal(fault.text, "");
    assert_true(fd >= 0);
    assert_true(sd_event_new(&harness.event) >= 0);
    daemon_config_init(&harness.config, "daemon.json");
    struct control_params params = {
        .event = harness.event,
        .config = &harness.config,
        .features = {.build_id = true, .format_lost = true, .cgroup = true},
        .leases = {.created_ms = LEASE_CREATED_MS,
                   .stopped_ms = LEASE_STOPPED_MS,
                   .unread_ms = LEASE_UNREAD_MS}};
    assert_int_equal(control_new(fd, &params, &harness.control), 0);
    harness.listen_fd = fd;
    return 0;
}

int harness_setup_old_kernel(void **state)
{
    const int on = 1;
    int r = harness_setup(state);
    (void)setsockopt(harness.listen_fd, SOL_SOCKET, 83 /* SO_PASSRIGHTS */, &on, sizeof on);
    return r;
}

int harness_setup_client(void **state)
{
    int r = harness_setup(state);
    *state = dial();
    return r;
}

int harness_teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        hang_up(&harness.clients[i]);
    }
    harness.control = control_free(harness.control);
    harness.event = sd_event_unref(harness.event);
    control_unlisten(harness.path);
    assert_int_not_equal(access(harness.path, F_OK), 0);
    assert_int_equal(fake.live_count, 0);
    assert_int_equal(count_descriptors(), harness.fd_count);
    return 0;
}

void pump(void)
{
    while (sd_event_run(harness.event, 0) > 0) {
    }
}

struct client *knock(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct client *client = harness.clients;
    while (client->fd >= 0) {
        client++;
        assert_true(client < harness.clients + CLIENTS_MAX);
    }
    *client = (struct client){.got_fd = -1};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", harness.path);
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(client->fd >= 0);
    assert_int_equal(connect(client->fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(fcntl(client->fd, F_SETFL, O_NONBLOCK), 0);
    return client;
}

struct client *knock_as(uid_t uid)
{
    assert_int_equal(chmod(harness.path, 0666), 0);
    /* Of this thread: the C library would interrupt the others, which may be closing something. */
    assert_int_equal(syscall(SYS_setresuid, -1, uid, -1), 0);
    struct client *client = knock();
    assert_int_equal(syscall(SYS_setresuid, -1, 0, -1), 0);
    return client;
}

struct client *knock_as_user(void)
{
    return geteuid() == 0 ? knock_as(USER_UID) : knock();
}

static struct client *accepted(struct client *client)
{
    pump();
    return client;
}

struct client *dial(void)
{
    return accepted(knock());
}

struct client *dial_as(uid_t uid)
{
    return accepted(knock_as(uid));
}

struct client *dial_as_user(void)
{
    return accepted(knock_as_user());
}

struct client *served(struct client *client)
{
    ask(client, CALL("Start"), NO_SESSION);
    return client;
}

struct client *dial_and_create(const char *create)
{
    struct client *client = dial();
    ask(client, create, CREATED);
    return client;
}

struct client *dial_and_start(const char *create)
{
    struct client *client = dial_and_create(create);
    ask(client, CALL("Start"), EMPTY);
    return client;
}

void hang_up(struct client *client)
{
    client->fd = close_fd(client->fd);
    client->got_fd = close_fd(client->got_fd);
    varlink_input_done(&client->input);
    pump();
}

/* Sends all of it; a peer that has closed is noticed when its reply is wanted. */
void say_bytes(struct client *client, const void *bytes, size_t size)
{
    const char *at = bytes;
    for (unsigned round = 0; size > 0; round++) {
        ssize_t sent = send(client->fd, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) {
            return;
        }
        assert_true(round < HEAR_ROUNDS_MAX);
        at += sent < 0 ? 0 : sent;
        size -= sent < 0 ? 0 : (size_t)sent;
        pump();
    }
}

void say(struct client *client, const char *text)
{
    say_bytes(client, text, strlen(text) + 1);
}

static void receive(struct client *client)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } control;
    char *space = NULL;
    size_t room = 0;
    assert_int_equal(varlink_input_space(&client->input, &space, &room), 0);
    struct iovec bytes = {.iov_base = space, .iov_len = room};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(client->fd, &message, MSG_CMSG_CLOEXEC);
    client->ended = got == 0 || (got < 0 && errno != EAGAIN);
    if (got <= 0) {
        return;
    }
    varlink_input_filled(&client->input, (size_t)got);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL) {
        assert_int_equal(header->cmsg_len, CMSG_LEN(sizeof(int)));
        client->got_fd = close_fd(client->got_fd);
        memcpy(&client->got_fd, CMSG_DATA(header), sizeof(int));
    }
}

const char *hear(struct client *client)
{
    for (unsigned round = 0; round < HEAR_ROUNDS_MAX; round++) {
        const char *text = NULL;
        size_t bytes = 0;
        if (varlink_input_next(&client->input, &text, &bytes) == 1) {
            return text;
        }
        if (client->ended) {
            return NULL;
        }
        (void)sd_event_run(harness.event, round == 0 ? 0 : 10000);
        pump();
        receive(client);
    }
    fail_msg("no reply");
    return NULL;
}

void hear_nothing(struct client *client)
{
    const char *text = NULL;
    size_t bytes = 0;
    pump();
    receive(client);
    assert_int_equal(varlink_input_next(&client->input, &text, &bytes), 0);
    assert_false(client->ended);
}

void pump_for_ms(unsigned milliseconds)
{
    skipped_ns += milliseconds * NS_PER_MS;
    pump();
}

const char *answer(struct client *client, const char *text)
{
    say(client, text);
    const char *heard = hear(client);
    return heard == NULL ? "(closed)" : heard;
}

const char *spell(const char *format, ...)
{
    static char text[512];
    va_list arguments;
    va_start(arguments, format);
    assert_in_range(vsnprintf(text, sizeof text, format, arguments), 1, sizeof text - 1);
    va_end(arguments);
    return text;
}

void expect_reply(struct client *client, const char *reply)
{
    const char *heard = hear(client);
    assert_string_equal(heard == NULL ? "(closed)" : heard, reply);
}

void expect_closed(struct client *client)
{
    assert_null(hear(client));
    hang_up(client);
}

void ask(struct client *client, const char *text, const char *reply)
{
    say(client, text);
    expect_reply(client, reply);
}
