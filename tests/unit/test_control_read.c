/* SPDX-License-Identifier: Apache-2.0 */

/* Read: what comes in a stream, and that no client can use one against the daemon. */
#include "control_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

/* Reads `size` bytes and the end of file from the descriptor that came last. */
static void assert_stream(struct client *client, const char *wanted, size_t size)
{
    static char bytes[sizeof fake.ready + 1];
    size_t got = 0;
    ssize_t r = 1;
    assert_true(client->got_fd >= 0);
    while (r > 0) {
        r = read(client->got_fd, bytes + got, sizeof bytes - got);
        assert_true(r >= 0);
        got += (size_t)r;
    }
    assert_int_equal(got, size);
    assert_memory_equal(bytes, wanted, size);
    client->got_fd = close_fd(client->got_fd);
}

STORY(hands_out_bytes_until_they_are_acknowledged)
{
    fake.stops_at_once = true;
    fake.ready_bytes = 5;
    memcpy(fake.ready, "first", 5);
    struct client *client = dial_and_create(CREATE);
    ask(client, CALL("Read"), NO_CHUNK("false"));
    ask(client, CALL("Start"), EMPTY);
    ask(client, CALL("Read"), CHUNK("5", "1", "false"));
    assert_stream(client, "first", 5);
    memcpy(fake.ready + 5, "second", 6);
    fake.ready_bytes += 6;
    ask(client, CALL("Read"), CHUNK("5", "1", "false"));
    assert_stream(client, "first", 5);
    ask(client, READ("1"), CHUNK("6", "2", "false"));
    assert_stream(client, "second", 6);
    ask(client, READ("3"),
        ERROR("InvalidArgs",
              "{\"member\":\"ack\",\"text\":\"was never handed out; 0 is allowed\"}"));
    ask(client, CALL("Stop"), STOPPED("client"));
    ask(client, CALL("Read"), CHUNK("6", "2", "true"));
    assert_stream(client, "second", 6);
    ask(client, READ("2"), NO_CHUNK("true"));
    assert_int_equal(client->got_fd, -1);
}

CLIENT(fills_streams_as_far_as_the_kernel_lets_it)
{
    for (size_t i = 0; i < sizeof fake.ready; i++) {
        fake.ready[i] = (char)(i * 7 / 5);
    }
    fake.ready_bytes = sizeof fake.ready;
    ask(client, CREATE, CREATED);
    ask(client, CALL("Start"), EMPTY);
    say(client, CALL("Read"));
    assert_non_null(hear(client));
    assert_in_range(fake.last_capacity_bytes, 65536, 1048576);
    assert_stream(client, fake.ready, fake.handed_out_bytes);
}

#define HOLDS_BYTES                                                                                \
    BAD_STATE("running", "the stream of the last Read holds bytes yet; read them, or close it")

/* A client with a running session that has `size` bytes to give. */
static struct client *dial_with(const char *bytes, size_t size)
{
    memcpy(fake.ready, bytes, size);
    fake.ready_bytes = size;
    return dial_and_start(CREATE);
}

STORY(has_one_read_open_at_a_time)
{
    static const char calls[] = CALL("Read") "\0" CALL("Read");
    struct client *client = dial_with("bytes", 5);
    char bytes[8];
    size_t fd_count = count_descriptors();
    say_bytes(client, calls, sizeof calls);
    expect_reply(client, CHUNK("5", "1", "false"));
    expect_reply(client, HOLDS_BYTES);
    ask(client, READ("1"), HOLDS_BYTES);
    assert_int_equal(fake.ready_bytes, 5); /* so nothing was acknowledged either */
    assert_int_equal(read(client->got_fd, bytes, 2), 2);
    ask(client, CALL("Read"), HOLDS_BYTES);

    /* Once it is empty, closed or not, or closed, full or not, the next one may come. */
    assert_int_equal(read(client->got_fd, bytes, sizeof bytes), 3);
    ask(client, CALL("Read"), CHUNK("5", "1", "false"));
    int kept_fd = fcntl(client->got_fd, F_DUPFD_CLOEXEC, 0);
    client->got_fd = close_fd(client->got_fd);
    ask(client, CALL("Read"), HOLDS_BYTES);
    assert_int_equal(close(kept_fd), 0);
    for (unsigned i = 0; i < 10; i++) {
        ask(client, CALL("Read"), CHUNK("5", "1", "false"));
        client->got_fd = close_fd(client->got_fd);
    }
    control_tick(harness.control);
    assert_int_equal(count_descriptors(), fd_count);
}

/* What it is not told has arrived must not be made anew without an end. */
STORY(gives_the_same_bytes_sixteen_times)
{
    struct client *client = dial_with("bytes", 5);
    for (unsigned i = 0; i < 16; i++) {
        ask(client, CALL("Read"), CHUNK("5", "1", "false"));
        client->got_fd = close_fd(client->got_fd);
    }
    ask(client, CALL("Read"),
        ERROR("Failed", "{\"text\":\"this connection was given these bytes 16 times; call Read "
                        "with \\\"ack\\\": 1 for what follows them\"}"));
    memcpy(fake.ready + 5, "second", 6);
    fake.ready_bytes += 6;
    ask(client, READ("1"), CHUNK("6", "2", "false"));
    assert_stream(client, "second", 6);
}

/* They hand out nothing, so the session is as unread as without them. */
STORY(refused_reads_do_not_keep_a_session)
{
    struct client *client = dial_with("bytes", 5);
    for (unsigned i = 0; i < 16; i++) {
        ask(client, CALL("Read"), CHUNK("5", "1", "false"));
        client->got_fd = close_fd(client->got_fd);
    }
    pump_for_ms(LEASE_UNREAD_MS * 9 / 10);
    assert_non_null(strstr(answer(client, CALL("Read")), "was given these bytes 16 times"));
    assert_int_equal(session_state(fake.last), SESSION_RUNNING);
    pump_for_ms(LEASE_UNREAD_MS * 2 / 10);
    assert_int_equal(session_state(fake.last), SESSION_STOPPING);
    assert_string_equal(fake.stopped_by, "max_unread");
}

/* Empties the first chunk, and keeps its stream open. Returns the descriptor. */
static int take_empty_stream(struct client *client)
{
    char bytes[8];
    ask(client, CALL("Read"), CHUNK("5", "1", "false"));
    assert_int_equal(read(client->got_fd, bytes, sizeof bytes), 5);
    return take_fd(client->got_fd);
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(close(fds[i]), 0);
    }
}

#define HOLDS_TOO_MUCH(user, count, kib)                                                           \
    ERROR("Failed", "{\"text\":\"" user " " count " streams of earlier Reads open, with " kib      \
                    " KiB unread; read and close them\"}")

/* Empty ones are a little memory, too. */
STORY(lets_a_user_hold_eight_streams)
{
    struct client *client = dial_with("bytes", 5);
    int fds[8];
    const char *too_much = spell(HOLDS_TOO_MUCH("uid %u holds", "8", "0"), geteuid());
    for (size_t i = 0; i < 8; i++) {
        fds[i] = take_empty_stream(client);
    }
    ask(client, CALL("Read"), too_much);
    assert_int_equal(close(fds[5]), 0);
    ask(client, CALL("Read"), CHUNK("5", "1", "false"));
    ask(client, CALL("Read"), HOLDS_BYTES);
    char bytes[8];
    assert_int_equal(read(client->got_fd, bytes, sizeof bytes), 5);
    fds[5] = take_fd(client->got_fd);
    hang_up(client);

    /* A stream outlives its connection and its session, and counts as long. */
    client = dial_with("bytes", 5);
    ask(client, CALL("Read"), too_much);
    assert_int_equal(close(fds[0]), 0);
    ask(client, CALL("Read"), CHUNK("5", "1", "false"));
    close_all(fds + 1, 7);
}

/* Memory that the kernel takes for bytes which were not received. */
STORY(lets_a_user_hold_four_mebibytes)
{
    size_t held_bytes = 0;
    int fds[8];
    size_t count = 0;
    bool refused = false;
    while (!refused) {
        struct client *client = dial_with("", 0);
        memset(fake.ready, 'x', sizeof fake.ready);
        fake.ready_bytes = sizeof fake.ready;
        say(client, CALL("Read"));
        const char *heard = hear(client);
        assert_non_null(heard);
        refused = strstr(heard, "streams of earlier Reads open") != NULL;
        if (!refused) {
            int bytes = 0;
            assert_int_equal(ioctl(client->got_fd, SIOCINQ, &bytes), 0);
            held_bytes += (size_t)bytes;
            assert_true(count < 8);
            fds[count++] = take_fd(client->got_fd);
        }
        hang_up(client);
    }
    assert_in_range(held_bytes, sizeof fake.ready, (size_t)4 << 20);
    close_all(fds, count);
}

/* What all users hold is bounded, but one stream is left for each that has none. */
STORY(lets_all_users_hold_thirty_two_streams)
{
    int fds[33];
    int root_fds[8];
    struct client *client;
    if (geteuid() != 0) {
        skip();
    }
    for (size_t i = 0; i < 34; i++) {
        client = dial_as(i < 32 ? (uid_t)(60000 + i / 8) : 60010);
        fake.ready_bytes = 5;
        ask(client, CREATE, CREATED);
        ask(client, CALL("Start"), EMPTY);
        if (i < 33) {
            fds[i] = take_empty_stream(client);
        } else {
            ask(client, CALL("Read"),
                ERROR("Failed", "{\"text\":\"clients hold 33 streams of earlier Reads open, with 0 "
                                "KiB unread; close yours, or wait for others\"}"));
        }
        hang_up(client);
    }
    client = dial_with("bytes", 5);
    for (size_t i = 0; i < 8; i++) {
        root_fds[i] = take_empty_stream(client);
    }
    ask(client, CALL("Read"), HOLDS_TOO_MUCH("uid 0 holds", "8", "0"));
    hang_up(client);
    close_all(fds, 33);
    close_all(root_fds, 8);
}

/* Neither bytes nor descriptors come back, and no path is tied to it that the daemon would let go
 * of. */
STORY(takes_nothing_through_a_stream)
{
    struct client *client = dial_with("bytes", 5);
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/tmp/test-control-stream"};
    ask(client, CALL("Read"), CHUNK("5", "1", "false"));
    assert_int_equal(send(client->got_fd, "x", 1, MSG_NOSIGNAL), -1);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(bind(client->got_fd, (struct sockaddr *)&address, sizeof address), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(access(address.sun_path, F_OK), -1);
    assert_stream(client, "bytes", 5);
}

/* A page that comes when the test says so: a thread that touches it stands still until then. */
struct page {
    char *bytes;
    size_t size_bytes;
    int fault_fd;
};

static bool make_page(struct page *page)
{
    struct uffdio_api api = {.api = UFFD_API};
    page->size_bytes = (size_t)sysconf(_SC_PAGESIZE);
    page->fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (page->fault_fd < 0) {
        return false; /* takes root, or the sysctl vm.unprivileged_userfaultfd */
    }
    page->bytes =
        mmap(NULL, page->size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page->bytes, MAP_FAILED);
    assert_int_equal(ioctl(page->fault_fd, UFFDIO_API, &api), 0);
    struct uffdio_register range = {
        .range = {.start = (uintptr_t)page->bytes, .len = page->size_bytes},
        .mode = UFFDIO_REGISTER_MODE_MISSING};
    assert_int_equal(ioctl(page->fault_fd, UFFDIO_REGISTER, &range), 0);
    return true;
}

struct reader {
    pthread_t thread;
    bool runs;
    int fd;
    struct page page;
    ssize_t got;
};

static void *read_into_page(void *userdata)
{
    struct reader *reader = userdata;
    reader->got = syscall(SYS_read, reader->fd, reader->page.bytes, 5);
    return NULL;
}

static struct reader reader;

/* Also after a failure, since a thread that stands still keeps the process from its end. */
static int let_reader_go(void **state)
{
    struct uffdio_zeropage zero = {
        .range = {.start = (uintptr_t)reader.page.bytes, .len = reader.page.size_bytes}};
    (void)state;
    if (reader.runs) {
        assert_int_equal(ioctl(reader.page.fault_fd, UFFDIO_ZEROPAGE, &zero), 0);
        assert_int_equal(pthread_join(reader.thread, NULL), 0);
        assert_int_equal(munmap(reader.page.bytes, reader.page.size_bytes), 0);
        assert_int_equal(close(reader.page.fault_fd), 0);
        assert_int_equal(close(reader.fd), 0);
        reader.runs = false;
    }
    return 0;
}

static int let_reader_go_and_tear_down(void **state)
{
    return let_reader_go(state) | harness_teardown(state);
}

/*
 * The reader holds the stream's lock all the time. Whatever the daemon does now must not want it:
 * the next Read, other clients, the end of the session and of the connection.
 */
TEST_WITH(goes_on_while_a_client_stands_still_in_a_stream, harness_setup,
          let_reader_go_and_tear_down)
{
    if (!make_page(&reader.page)) {
        skip();
    }
    struct client *client = dial_with("bytes", 5);
    struct client *other = dial();
    ask(client, CALL("Read"), CHUNK("5", "1", "false"));
    reader.fd = take_fd(client->got_fd);
    reader.runs = pthread_create(&reader.thread, NULL, read_into_page, &reader) == 0;
    struct pollfd fault = {.fd = reader.page.fault_fd, .events = POLLIN};
    assert_int_equal(poll(&fault, 1, 10000), 1); /* it stands */

    ask(client, CALL("Read"), HOLDS_BYTES);
    ask(other, CALL("Start"), NO_SESSION);
    ask(client, CALL("Close"), EMPTY);
    hang_up(client);
    ask(other, CREATE, CREATED);
    ask(other, CALL("Start"), EMPTY);
    ask(other, CALL("Read"), CHUNK("5", "1", "false"));
    assert_stream(other, "bytes", 5);
    hang_up(other);

    assert_int_equal(let_reader_go(state), 0);
    assert_int_equal(reader.got, 5);
}

/* Replies wait because the client does not read; a descriptor waits with its own. */
STORY(keeps_a_descriptor_with_the_reply_that_brings_it)
{
    memcpy(fake.ready, "bytes", 5);
    fake.ready_bytes = 5;
    fake.books_bytes = 60000;
    struct client *client = dial_and_start(CREATE);
    size_t fd_count = count_descriptors();
    for (unsigned i = 0; i < 5; i++) {
        say(client, CALL("Status"));
    }
    say(client, CALL("Read"));
    say(client, CALL("Read"));
    /* The first Read's reply waits with its descriptor; the second Read waits for it. */
    assert_int_equal(count_descriptors(), fd_count + 2); /* the two ends of its stream */
    for (unsigned i = 0; i < 5; i++) {
        assert_true(strlen(hear(client)) > 60000);
    }
    expect_reply(client, CHUNK("5", "1", "false"));
    expect_reply(client, HOLDS_BYTES);
    assert_stream(client, "bytes", 5);
}

STORY(begins_a_segment_with_a_connections_first_read)
{
    struct client *client = dial_and_create(CREATE_DETACHED);
    assert_int_equal(fake.segment_count, 0);
    ask(client, CALL("Read"), NO_CHUNK("false"));
    ask(client, CALL("Read"), NO_CHUNK("false"));
    ask(client, CALL("Attach"), ATTACHED("created"));
    ask(client, CALL("Read"), NO_CHUNK("false"));
    assert_int_equal(fake.segment_count, 1);
    hang_up(client);
    client = dial();
    ask(client, CALL("Attach"), ATTACHED("created"));
    assert_int_equal(fake.segment_count, 1);
    ask(client, CALL("Read"), NO_CHUNK("false"));
    ask(client, CALL("Read"), NO_CHUNK("false"));
    assert_int_equal(fake.segment_count, 2);
    ask(client, CALL("Close"), EMPTY);
    ask(client, CREATE, CREATED);
    ask(client, CALL("Read"), NO_CHUNK("false"));
    assert_int_equal(fake.segment_count, 3);
}
