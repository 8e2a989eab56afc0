/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client library against the real control socket over a fake session, which run in a thread of
 * their own. A test touches `fake` only while no call is under way.
 */
#include "cleanup.h"
#include "connection.h"
#include "control.h"
#include "fake_session.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
/* cmocka wants the four above */
#include "unit_test.h"

#define OWN_FD   100 /* below any limit that programs have */
#define OWN_FILE "/proc/self/fd/100"

static struct {
    pthread_t thread;
    int listen_fd;
    int end_fd; /* ends the daemon's loop */
    char path[64];
} server;

static int on_end(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    (void)fd;
    (void)revents;
    (void)userdata;
    return sd_event_exit(sd_event_source_get_event(source), 0);
}

static void *run_daemon(void *argument)
{
    sd_event *event = NULL;
    struct control *control = NULL;
    (void)argument;
    if (sd_event_new(&event) < 0 ||
        sd_event_add_io(event, NULL, server.end_fd, EPOLLIN, on_end, NULL) < 0) {
        abort();
    }
    static struct daemon_config config;
    daemon_config_init(&config, "daemon.json");
    struct control_params params = {.event = event, .config = &config};
    if (control_new(server.listen_fd, &params, &control) < 0 || sd_event_loop(event) < 0) {
        abort();
    }
    control = control_free(control);
    event = sd_event_unref(event);
    return NULL;
}

static void listen_at_path(void)
{
    (void)snprintf(server.path, sizeof server.path, "/tmp/test-libprofctl-%d.sock", (int)getpid());
    server.listen_fd = control_listen(server.path, NULL);
    assert_true(server.listen_fd >= 0);
}

static int start_daemon(void **state)
{
    (void)state;
    fake_reset();
    fake.stops_at_once = true;
    listen_at_path();
    server.end_fd = eventfd(0, EFD_CLOEXEC);
    return pthread_create(&server.thread, NULL, run_daemon, NULL);
}

static int end_daemon(void **state)
{
    (void)state;
    assert_int_equal(eventfd_write(server.end_fd, 1), 0);
    assert_int_equal(pthread_join(server.thread, NULL), 0);
    assert_int_equal(close(server.end_fd), 0);
    assert_int_equal(fake.live_count, 0);
    return unlink(server.path);
}

static struct profctl *dial(void)
{
    struct profctl *conn = NULL;
    struct profctl_fault fault = {0};
    int r = profctl_connect(server.path, &conn, &fault);
    assert_string_equal(fault.text, "");
    assert_int_equal(r, 0);
    return conn;
}

static int set_up(void **state)
{
    int r = start_daemon(state);
    *state = dial();
    return r;
}

static int tear_down(void **state)
{
    assert_null(profctl_disconnect(*state));
    return end_daemon(state);
}

#define STORY(name) TEST_OF(struct profctl *conn, name, set_up, tear_down)

/* A session that runs, and has these bytes to give. */
static void begin(struct profctl *conn, const char *bytes, size_t size)
{
    memcpy(fake.ready, bytes, size);
    fake.ready_bytes = size;
    fake.handed_out_bytes = 0;
    assert_int_equal(profctl_create(conn, NULL, false, NULL), 0);
    assert_int_equal(profctl_start(conn, NULL), 0);
}

/* What a buffer of so many bytes gets, and which acknowledgement went along. Not at the end. */
static const char *expect_read(struct profctl *conn, size_t capacity, int result, size_t size,
                               uint64_t ack)
{
    static char buffer[16];
    size_t got = SIZE_MAX;
    bool end = true;
    memset(buffer, 0, sizeof buffer);
    assert_int_equal(profctl_read(conn, buffer, capacity, &got, &end), result);
    assert_int_equal(got, size);
    assert_int_equal(fake.last_ack, ack);
    assert_true(result < 0 || !end);
    return buffer;
}

STORY(records_and_reads_all_of_it)
{
    static char buffer[sizeof fake.ready];
    struct profctl_fault fault = {0};
    size_t total = 0;
    bool end = false;
    for (size_t i = 0; i < sizeof fake.ready; i++) {
        fake.ready[i] = (char)(i % 251);
    }
    fake.ready_bytes = sizeof fake.ready;
    assert_int_equal(profctl_create(conn, "{\"frequency_hz\":100}", false, &fault), 0);
    assert_int_equal(fake.config.frequency_hz, 100);
    assert_int_equal(profctl_start(conn, &fault), 0);
    assert_int_equal(profctl_stop(conn, &fault), 0);
    while (!end) {
        size_t size = 0;
        assert_int_equal(profctl_read(conn, buffer + total, sizeof buffer - total, &size, &end), 0);
        total += size;
    }
    assert_int_equal(total, sizeof buffer);
    for (size_t i = 0; i < sizeof buffer; i++) {
        assert_int_equal(buffer[i], (char)(i % 251));
    }
    assert_int_equal(profctl_close(conn, &fault), 0);
}

STORY(keeps_what_does_not_fit)
{
    begin(conn, "0123456789", 10);
    for (unsigned i = 0; i < 2; i++) {
        (void)expect_read(conn, 9, -EINVAL, 10, 0);
        assert_string_equal(connection_notes(conn)->fault.text,
                            "the buffer has 9 bytes; 10 are needed");
    }
    assert_string_equal(expect_read(conn, 10, 0, 10, 0), "0123456789");
    (void)expect_read(conn, 10, 0, 0, 1);
    (void)expect_read(conn, 10, 0, 0, 0); /* once is enough */
}

STORY(forgets_a_session_that_it_has_closed)
{
    begin(conn, "0123456789", 10);
    (void)expect_read(conn, 9, -EINVAL, 10, 0);
    assert_int_equal(profctl_close(conn, NULL), 0);
    begin(conn, "012", 3);
    assert_string_equal(expect_read(conn, 9, 0, 3, 0), "012");
}

STORY(reports_the_status_as_json)
{
    cleanup_(freep) char *json = NULL;
    assert_int_equal(profctl_status(conn, &json), 0);
    assert_contains(json, "{\"daemon\":{\"version\":\"" CPU_PROFILERD_VERSION "\"");
    assert_contains(json, "\"session\":null}");
}

STORY(says_what_is_wrong_in_a_sentence)
{
    static const struct {
        const char *config;
        int result;
        const char *text;
    } cases[] = {
        {"{\"frequency_hz\":0}", -EINVAL,
         "frequency_hz: is out of range; an integer from 1 to 100000 is allowed"},
        {"[]", -EINVAL, "config: is not an object; an object is allowed"},
        {"{\"a\"", -EINVAL,
         "config: line 1, column 5: the text ends in the middle; one JSON text in UTF-8 is allowed"},
    };
    struct profctl_fault fault = {0};
    char *json = NULL;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(profctl_create(conn, cases[i].config, false, &fault), cases[i].result);
        assert_string_equal(fault.text, cases[i].text);
    }
    assert_int_equal(profctl_start(conn, &fault), -EBADFD);
    assert_int_equal(fault.code, EBADFD);
    assert_string_equal(fault.text, "this connection has no session; call Create or Attach first");
    fake.new_result = -EACCES;
    (void)fault_set(&fake.fault, EACCES, "the daemon lacks\nCAP_PERFMON");
    assert_int_equal(profctl_create(conn, NULL, false, &fault), -EACCES);
    assert_string_equal(fault.text, "the daemon lacks?CAP_PERFMON");
    fake.new_result = -EMFILE;
    assert_int_equal(profctl_create(conn, NULL, false, &fault), -EIO);
    assert_int_equal(profctl_status(conn, &json), 0); /* still usable */
    free(json);
}

TEST_WITH(says_whose_session_is_in_the_way, start_daemon, end_daemon)
{
    char text[256];
    struct profctl *owner = dial();
    struct profctl *other = dial();
    struct profctl_fault fault = {0};
    assert_int_equal(profctl_create(owner, NULL, false, &fault), 0);
    assert_int_equal(profctl_create(other, NULL, false, &fault), -EEXIST);
    (void)snprintf(text, sizeof text,
                   "another session exists, started 2 s ago by uid %u; wait for its end, or have "
                   "its owner end it",
                   geteuid());
    assert_string_equal(fault.text, text);
    (void)profctl_disconnect(owner);
    (void)profctl_disconnect(other);
}

STORY(refuses_a_config_that_no_message_holds)
{
    struct profctl_fault fault = {0};
    static char config[70000];
    memset(config, '1', sizeof config - 1);
    memcpy(config, "{\"a\":\"", strlen("{\"a\":\""));
    config[sizeof config - 3] = '"';
    config[sizeof config - 2] = '}';
    assert_int_equal(profctl_create(conn, config, false, &fault), -EINVAL);
    assert_string_equal(fault.text, "config: is too long; less than 65280 bytes are allowed");
}

TEST_WITH(gives_enotconn_once_the_daemon_is_gone, start_daemon, NULL)
{
    struct profctl *conn = dial();
    struct profctl_fault fault = {0};
    size_t size = 0;
    bool end = false;
    char byte = 0;
    assert_int_equal(profctl_create(conn, NULL, false, &fault), 0);
    assert_int_equal(end_daemon(state), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(profctl_start(conn, &fault), -ENOTCONN);
        assert_int_equal(profctl_read(conn, &byte, 1, &size, &end), -ENOTCONN);
    }
    assert_string_equal(fault.text, "the connection to the daemon is gone");
    (void)profctl_disconnect(conn);
}

TEST(says_why_it_cannot_connect)
{
    static const struct {
        const char *path;
        int result;
        const char *text;
    } cases[] = {
        {"/tmp/none/socket", -ENOENT, "there is no socket '/tmp/none/socket'"},
        {OWN_FILE, -ENOTSOCK, "'" OWN_FILE "' is no socket"},
    };
    struct profctl *conn = NULL;
    struct profctl_fault fault = {0};
    int own_fd = memfd_create("own", MFD_CLOEXEC);
    assert_int_equal(dup2(own_fd, OWN_FD), OWN_FD);
    (void)close(own_fd);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(profctl_connect(cases[i].path, &conn, &fault), cases[i].result);
        assert_string_equal(fault.text, cases[i].text);
    }
    (void)close(OWN_FD);
    assert_int_equal(setenv("CPU_PROFILERD_SOCKET", "/tmp/none/other", 1), 0);
    assert_int_equal(profctl_connect(NULL, &conn, &fault), -ENOENT);
    assert_contains(fault.text, "/tmp/none/other");
    assert_int_equal(unsetenv("CPU_PROFILERD_SOCKET"), 0);
}
