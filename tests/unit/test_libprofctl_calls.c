/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client library against a server that expects exact calls and answers each as its script says:
 * what goes over the wire for a detached session, what is acknowledged when, and what no reply can
 * do.
 */
#include "cleanup.h"
#include "connection.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
/* cmocka wants the four above */
#include "unit_test.h"

#define METHOD(name)      "{\"method\":\"io.cpuprofilerd.Sampler." name "\",\"parameters\":{"
#define REPLY(parameters) "{\"parameters\":{" parameters "}}"
#define ERROR(name, rest)                                                                          \
    "{\"error\":\"io.cpuprofilerd.Sampler." name "\",\"parameters\":{" rest "}}"
#define CHUNK(size, n, end)                                                                        \
    REPLY("\"fd\":0,\"size_bytes\":" size ",\"sequence\":" n ",\"end\":" end)
#define NO_CHUNK(end) REPLY("\"fd\":-1,\"size_bytes\":0,\"sequence\":0,\"end\":" end)
#define TURNS_MAX     8

struct turn {
    const char *call;  /* what the server expects; NULL: the script is over; "": it says the reply
                        * without a call, and ends the connection */
    const char *reply; /* and what it says */
    const char *piped; /* in a pipe beside it; NULL: no descriptor */
};

static struct {
    struct turn turns[TURNS_MAX];
    char path[64];
    int listen_fd;
    pthread_t thread;
    char trouble[1024]; /* what was not as expected */
} server;

/* Receives one message. Returns whether there was one. */
static bool receive_call(int fd, char *into, size_t capacity_bytes)
{
    size_t used_bytes = 0;
    while (used_bytes < capacity_bytes && recv(fd, into + used_bytes, 1, 0) == 1) {
        if (into[used_bytes++] == '\0') {
            return true;
        }
    }
    return false;
}

static void send_reply(int fd, const struct turn *turn)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    char text[512];
    int fds[2] = {-1, -1};
    (void)snprintf(text, sizeof text, "%s", turn->reply);
    struct iovec bytes = {.iov_base = text, .iov_len = strlen(text) + 1};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (turn->piped != NULL) {
        if (pipe(fds) != 0 ||
            write(fds[1], turn->piped, strlen(turn->piped)) != (ssize_t)strlen(turn->piped)) {
            abort();
        }
        (void)close(fds[1]);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fds[0], sizeof(int));
    }
    (void)sendmsg(fd, &message, MSG_NOSIGNAL);
    (void)close_fd(fds[0]);
}

static void *run_server(void *argument)
{
    char call[1024];
    (void)argument;
    cleanup_(closep) int fd = accept(server.listen_fd, NULL, NULL);
    for (const struct turn *turn = server.turns; turn->call != NULL; turn++) {
        if (turn->call[0] == '\0') {
            send_reply(fd, turn);
            return NULL;
        }
        if (!receive_call(fd, call, sizeof call)) {
            (void)snprintf(server.trouble, sizeof server.trouble, "no call: %.400s", turn->call);
            return NULL;
        }
        if (strcmp(call, turn->call) != 0) {
            (void)snprintf(server.trouble, sizeof server.trouble, "%.400s instead of %.400s", call,
                           turn->call);
        }
        send_reply(fd, turn);
    }
    if (receive_call(fd, call, sizeof call)) {
        (void)snprintf(server.trouble, sizeof server.trouble, "one call too many: %.400s", call);
    }
    return NULL;
}

/* Begins the script, and connects to it. */
static struct profctl *begin(const struct turn *turns, size_t count)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct profctl *conn = NULL;
    assert_in_range(count, 1, TURNS_MAX - 1);
    memset(&server, 0, sizeof server);
    memcpy(server.turns, turns, count * sizeof *turns);
    (void)snprintf(server.path, sizeof server.path, "/tmp/test-calls-%d.sock", (int)getpid());
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", server.path);
    server.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.listen_fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server.listen_fd, 1), 0);
    assert_int_equal(pthread_create(&server.thread, NULL, run_server, NULL), 0);
    assert_int_equal(profctl_connect(server.path, &conn, NULL), 0);
    return conn;
}

#define BEGIN(...) begin(ROWS_OF(struct turn, __VA_ARGS__))

/* Ends the connection; every call must have been the one expected. */
static void end(struct profctl *conn)
{
    assert_null(profctl_disconnect(conn));
    assert_int_equal(pthread_join(server.thread, NULL), 0);
    assert_int_equal(close(server.listen_fd), 0);
    assert_int_equal(unlink(server.path), 0);
    assert_string_equal(server.trouble, "");
}

/* What comes into a buffer: `result`, and, if the call has not failed otherwise, these bytes. */
static void expect_read(struct profctl *conn, size_t capacity, int result, const char *bytes,
                        bool is_end)
{
    char buffer[16] = "";
    size_t size = 0;
    bool end = !is_end;
    assert_int_equal(profctl_read(conn, buffer, capacity, &size, &end), result);
    if (bytes != NULL) {
        assert_int_equal(size, strlen(bytes));
        assert_string_equal(result < 0 ? bytes : buffer, bytes);
        assert_int_equal(end, result < 0 ? !is_end : is_end);
    }
}

TEST(begins_a_detached_session)
{
    struct profctl *conn =
        BEGIN({METHOD("Create") "\"detach\":true,\"config\":{\"frequency_hz\":5}}}",
               REPLY("\"session\":\"ab12\",\"holds_s\":77"), NULL},
              {METHOD("Start") "}}", REPLY(""), NULL},
              {METHOD("Stop") "}}", REPLY("\"stopped_by\":\"max_duration\""), NULL},
              {METHOD("Close") "}}", REPLY(""), NULL});
    const struct connection_notes *notes = connection_notes(conn);
    assert_int_equal(profctl_create(conn, "{\"frequency_hz\":5}", true, NULL), 0);
    assert_string_equal(notes->session, "ab12");
    assert_int_equal(notes->holds_s, 77);
    assert_int_equal(profctl_start(conn, NULL), 0);
    assert_int_equal(profctl_stop(conn, NULL), 0);
    assert_string_equal(notes->stopped_by, "max_duration");
    assert_int_equal(profctl_close(conn, NULL), 0);
    assert_string_equal(notes->session, "");
    end(conn);
}

TEST(attaches_to_the_session_that_it_is_told)
{
    struct profctl *conn =
        BEGIN({METHOD("Attach") "}}",
               ERROR("BadState", "\"state\":\"none\",\"text\":\"there is none\""), NULL},
              {METHOD("Attach") "\"session\":\"ab12\"}}",
               ERROR("PermissionDenied", "\"text\":\"no\""), NULL},
              {METHOD("Attach") "\"session\":\"ab12\"}}",
               ERROR("InvalidArgs", "\"member\":\"session\",\"text\":\"is none\""), NULL},
              {METHOD("Attach") "}}", REPLY("\"session\":\"ab12\",\"state\":\"stopped\""), NULL});
    struct profctl_fault fault = {0};
    assert_int_equal(profctl_attach(conn, NULL, &fault), -EBADFD);
    assert_string_equal(fault.text, "there is none");
    assert_int_equal(profctl_attach(conn, "ab12", &fault), -EACCES);
    assert_int_equal(profctl_attach(conn, "ab12", &fault), -EINVAL);
    assert_string_equal(fault.text, "session: is none");
    assert_string_equal(connection_notes(conn)->session, "");
    assert_int_equal(profctl_attach(conn, NULL, NULL), 0);
    assert_string_equal(connection_notes(conn)->session, "ab12");
    assert_string_equal(connection_notes(conn)->state, "stopped");
    end(conn);
}

TEST(confirms_with_the_next_read_and_not_before)
{
    struct profctl *conn = BEGIN({METHOD("Read") "}}", CHUNK("3", "8", "false"), "abc"},
                                 {METHOD("Status") "}}", REPLY("\"status\":{}"), NULL},
                                 {METHOD("Read") "\"ack\":8}}", CHUNK("2", "9", "true"), "de"},
                                 {METHOD("Read") "\"ack\":9}}", NO_CHUNK("true"), NULL},
                                 {METHOD("Read") "}}", NO_CHUNK("true"), NULL});
    cleanup_(freep) char *json = NULL;
    expect_read(conn, 4, 0, "abc", false);
    assert_int_equal(connection_notes(conn)->sequence, 8);
    assert_int_equal(profctl_status(conn, &json), 0);
    expect_read(conn, 4, 0, "de", true);
    expect_read(conn, 4, 0, "", true);
    expect_read(conn, 4, 0, "", true);
    end(conn);
}

TEST(hands_out_a_stream_and_confirms_it_too)
{
    struct profctl *conn = BEGIN({METHOD("Read") "}}", CHUNK("3", "8", "false"), "abc"},
                                 {METHOD("Read") "\"ack\":8}}", NO_CHUNK("false"), NULL});
    char buffer[4] = "";
    size_t size = 0;
    int fd = -1;
    bool is_end = true;
    /* What did not fit is still there, also for the other way to read. */
    expect_read(conn, 2, -EINVAL, "abc", false);
    assert_int_equal(profctl_read_fd(conn, &fd, &size, &is_end), 0);
    assert_int_equal(size, 3);
    assert_int_equal(read(fd, buffer, sizeof buffer), 3);
    assert_string_equal(buffer, "abc");
    assert_int_equal(close(fd), 0);
    assert_int_equal(profctl_read_fd(conn, &fd, &size, &is_end), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(size, 0);
    end(conn);
}

TEST(confirms_nothing_that_came_only_in_part)
{
    struct profctl *conn = BEGIN({METHOD("Read") "}}", CHUNK("3", "8", "false"), "ab"},
                                 {METHOD("Read") "}}", CHUNK("3", "8", "false"), "abc"},
                                 {METHOD("Read") "\"ack\":8}}", NO_CHUNK("false"), NULL});
    expect_read(conn, 4, -EIO, NULL, false);
    assert_int_equal(connection_notes(conn)->fault.code, EIO);
    expect_read(conn, 4, 0, "abc", false);
    assert_int_equal(connection_notes(conn)->fault.code, 0);
    expect_read(conn, 4, 0, "", false);
    end(conn);
}

TEST(confirms_what_another_connection_has_read)
{
    struct profctl *conn =
        BEGIN({METHOD("Attach") "}}", REPLY("\"session\":\"ab12\",\"state\":\"running\""), NULL},
              {METHOD("Read") "\"ack\":41}}", CHUNK("3", "42", "false"), "abc"});
    assert_int_equal(profctl_attach(conn, NULL, NULL), 0);
    connection_acknowledge(conn, 41);
    expect_read(conn, 0, -EINVAL, "abc", false);
    end(conn);
}

TEST(says_why_the_daemon_ended_a_connection)
{
    struct profctl *conn =
        BEGIN({"", ERROR("Failed", "\"text\":\"it was idle; connect anew\""), NULL});
    struct profctl_fault fault = {0};
    assert_int_equal(pthread_join(server.thread, NULL), 0); /* its end is closed */
    assert_int_equal(profctl_start(conn, &fault), -EIO);
    assert_string_equal(fault.text, "it was idle; connect anew");
    assert_int_equal(profctl_start(conn, &fault), -ENOTCONN);
    assert_null(profctl_disconnect(conn));
    assert_int_equal(close(server.listen_fd), 0);
    assert_int_equal(unlink(server.path), 0);
}

#define READ_REPLY(fd, size, n)                                                                    \
    "{\"parameters\":{\"fd\":" fd ",\"size_bytes\":" size ",\"sequence\":" n ",\"end\":false}}"

TEST(trusts_no_reply)
{
    static const struct {
        const char *reply;
        int result;
    } cases[] = {
        {"", -EPROTO},
        {"no JSON", -EPROTO},
        {"[]", -EPROTO},
        {"{}", -EPROTO},
        {READ_REPLY("0", "-1", "1"), -EPROTO},
        {READ_REPLY("0", "1048577", "1"), -EPROTO},
        {READ_REPLY("-1", "3", "1"), -EPROTO},
        {READ_REPLY("0", "3", "-2"), -EPROTO},
        {READ_REPLY("0", "4", "1"), -EIO},
        {READ_REPLY("0", "3", "1"), 0},
        {"{\"error\":\"org.varlink.service.MethodNotFound\",\"parameters\":{}}", -EPROTO},
        {"{\"error\":\"io.cpuprofilerd.Sampler.Unheard\"}", -EPROTO},
        {"{\"error\":\"io.cpuprofilerd.Sampler.BadState\"}", -EBADFD},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct profctl *conn = BEGIN({METHOD("Read") "}}", cases[i].reply, "abc"});
        print_message("%s\n", cases[i].reply);
        expect_read(conn, 16, cases[i].result, NULL, false);
        end(conn);
    }
}
