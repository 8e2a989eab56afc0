/* SPDX-License-Identifier: Apache-2.0 */

/* Read: what comes in a pipe, and that no client can use one against the daemon. */
#include "control_harness.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Reads `size` bytes and the end of the pipe from the descriptor that came last. */
static void assert_pipe(struct client *client, const char *wanted, size_t size)
{
    static char bytes[sizeof fake.ready + 1];
    size_t got = 0;
    ssize_t r = 1;
    assert_true(client->got_fd >= 0);
    assert_int_equal(fcntl(client->got_fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    while (r > 0) {
        r = read(client->got_fd, bytes + got, sizeof bytes - got);
        assert_true(r >= 0);
        got += (size_t)r;
    }
    assert_int_equal(got, size);
    assert_memory_equal(bytes, wanted, size);
    client->got_fd = close_fd(client->got_fd);
}

#define CHUNK(size, sequence, end)                                                                 \
    "{\"parameters\":{\"fd\":0,\"size_bytes\":" size ",\"sequence\":" sequence ",\"end\":" end "}}"
#define NO_CHUNK(end) "{\"parameters\":{\"fd\":-1,\"size_bytes\":0,\"sequence\":0,\"end\":" end "}}"
#define READ(ack)     CALL_WITH("Read", "{\"ack\":" ack "}")

static void hands_out_bytes_until_they_are_acknowledged(void **state)
{
    struct client client = dial();
    (void)state;
    fake.stops_at_once = true;
    fake.ready_bytes = 5;
    memcpy(fake.ready, "first", 5);
    ask(&client, CREATE, CREATED);
    ask(&client, CALL("Read"), NO_CHUNK("false"));
    ask(&client, CALL("Start"), EMPTY);
    ask(&client, CALL("Read"), CHUNK("5", "1", "false"));
    assert_pipe(&client, "first", 5);
    memcpy(fake.ready + 5, "second", 6);
    fake.ready_bytes += 6;
    ask(&client, CALL("Read"), CHUNK("5", "1", "false"));
    assert_pipe(&client, "first", 5);
    ask(&client, READ("1"), CHUNK("6", "2", "false"));
    assert_pipe(&client, "second", 6);
    ask(&client, READ("3"),
        ERROR("InvalidArgs",
              "{\"member\":\"ack\",\"text\":\"was never handed out; 0 is allowed\"}"));
    ask(&client, CALL("Stop"), STOPPED("client"));
    ask(&client, CALL("Read"), CHUNK("6", "2", "true"));
    assert_pipe(&client, "second", 6);
    ask(&client, READ("2"), NO_CHUNK("true"));
    assert_int_equal(client.got_fd, -1);
    hang_up(&client);
}

static void fills_pipes_as_large_as_the_kernel_grants(void **state)
{
    struct client client = dial();
    (void)state;
    for (size_t i = 0; i < sizeof fake.ready; i++) {
        fake.ready[i] = (char)(i * 7 / 5);
    }
    fake.ready_bytes = sizeof fake.ready;
    ask(&client, CREATE, CREATED);
    ask(&client, CALL("Start"), EMPTY);
    say(&client, CALL("Read"));
    assert_non_null(hear(&client));
    assert_int_equal(fcntl(client.got_fd, F_GETPIPE_SZ), fake.last_capacity_bytes);
    assert_pipe(&client, fake.ready, fake.handed_out_bytes);
    hang_up(&client);
}

#define HOLDS_BYTES                                                                                \
    BAD_STATE("running", "the pipe of the last Read holds bytes yet; read them, or close it")

/* A client with a running session that has `size` bytes to give. */
static struct client dial_and_start(const char *bytes, size_t size)
{
    struct client client = dial();
    memcpy(fake.ready, bytes, size);
    fake.ready_bytes = size;
    ask(&client, CREATE, CREATED);
    ask(&client, CALL("Start"), EMPTY);
    return client;
}

static void has_one_read_open_at_a_time(void **state)
{
    static const char calls[] = CALL("Read") "\0" CALL("Read");
    struct client client = dial_and_start("bytes", 5);
    char bytes[8];
    (void)state;
    unsigned fd_count = count_fds();
    say_bytes(&client, calls, sizeof calls);
    assert_string_equal(hear(&client), CHUNK("5", "1", "false"));
    assert_string_equal(hear(&client), HOLDS_BYTES);
    ask(&client, READ("1"), HOLDS_BYTES);
    assert_int_equal(fake.ready_bytes, 5); /* so nothing was acknowledged either */
    assert_int_equal(read(client.got_fd, bytes, 2), 2);
    ask(&client, CALL("Read"), HOLDS_BYTES);

    /* Once it is empty, closed or not, or closed, full or not, the next one may come. */
    assert_int_equal(read(client.got_fd, bytes, sizeof bytes), 3);
    ask(&client, CALL("Read"), CHUNK("5", "1", "false"));
    int kept_fd = fcntl(client.got_fd, F_DUPFD_CLOEXEC, 0);
    client.got_fd = close_fd(client.got_fd);
    ask(&client, CALL("Read"), HOLDS_BYTES);
    assert_int_equal(close(kept_fd), 0);
    for (unsigned i = 0; i < 100; i++) {
        ask(&client, CALL("Read"), CHUNK("5", "1", "false"));
        client.got_fd = close_fd(client.got_fd);
    }
    assert_int_equal(count_fds(), fd_count);
    hang_up(&client);
}

/* Empty ones are a little memory, too. */
static void lets_a_user_hold_eight_pipes(void **state)
{
    struct client client = dial_and_start("bytes", 5);
    int fds[8];
    char text[256];
    (void)state;
    (void)snprintf(text, sizeof text,
                   ERROR("Failed", "{\"text\":\"uid %u holds 8 pipes of earlier Reads open; "
                                   "close them\"}"),
                   geteuid());
    for (size_t i = 0; i < 8; i++) {
        char bytes[8];
        ask(&client, CALL("Read"), CHUNK("5", "1", "false"));
        assert_int_equal(read(client.got_fd, bytes, sizeof bytes), 5);
        fds[i] = take_fd(client.got_fd);
    }
    ask(&client, CALL("Read"), text);
    assert_int_equal(close(fds[5]), 0);
    ask(&client, CALL("Read"), CHUNK("5", "1", "false"));
    ask(&client, CALL("Read"), HOLDS_BYTES);
    fds[5] = take_fd(client.got_fd);
    hang_up(&client);

    /* A pipe outlives its connection and its session, and counts as long. */
    client = dial_and_start("bytes", 5);
    ask(&client, CALL("Read"), text);
    assert_int_equal(close(fds[0]), 0);
    ask(&client, CALL("Read"), CHUNK("5", "1", "false"));
    for (size_t i = 1; i < 8; i++) {
        assert_int_equal(close(fds[i]), 0);
    }
    hang_up(&client);
}

static void lets_all_users_hold_thirty_two_pipes(void **state)
{
    int fds[33];
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    for (size_t i = 0; i < 33; i++) {
        struct client client = dial_as((uid_t)(60000 + i / 8));
        fake.ready_bytes = 5;
        ask(&client, CREATE, CREATED);
        ask(&client, CALL("Start"), EMPTY);
        ask(&client, CALL("Read"),
            i < 32 ? CHUNK("5", "1", "false")
                   : ERROR("Failed", "{\"text\":\"clients hold 32 pipes of earlier Reads open; "
                                     "close them\"}"));
        fds[i] = take_fd(client.got_fd);
        hang_up(&client);
    }
    for (size_t i = 0; i < 32; i++) {
        assert_int_equal(close(fds[i]), 0);
    }
}

/* Whoever may not open the pipe anew has only the file that was sent. */
static void gives_no_other_user_a_way_into_a_pipe(void **state)
{
    struct client client = dial_and_start("bytes", 5);
    struct stat status;
    (void)state;
    ask(&client, CALL("Read"), CHUNK("5", "1", "false"));
    assert_int_equal(fstat(client.got_fd, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(status.st_uid, geteuid());
    hang_up(&client);
}

/* A page that comes when the test says so: who touches it stands still until then. */
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

static void let_page_come(struct page *page)
{
    struct uffdio_zeropage zero = {
        .range = {.start = (uintptr_t)page->bytes, .len = page->size_bytes}};
    assert_int_equal(ioctl(page->fault_fd, UFFDIO_ZEROPAGE, &zero), 0);
}

static void free_page(struct page *page)
{
    assert_int_equal(munmap(page->bytes, page->size_bytes), 0);
    assert_int_equal(close(page->fault_fd), 0);
}

struct reader {
    int fd;
    char *bytes;
    ssize_t got;
};

static void *read_into_page(void *userdata)
{
    struct reader *reader = userdata;
    reader->got = syscall(SYS_read, reader->fd, reader->bytes, 5);
    return NULL;
}

/*
 * The reader holds the pipe's lock all the time. Whatever the daemon does now must not want it: the
 * next Read, other clients, the end of the session and of the connection.
 */
static void goes_on_while_a_client_stands_still_in_a_pipe(void **state)
{
    struct page page;
    pthread_t thread;
    (void)state;
    if (!make_page(&page)) {
        skip();
    }
    struct client client = dial_and_start("bytes", 5);
    struct client other = dial();
    ask(&client, CALL("Read"), CHUNK("5", "1", "false"));
    struct reader reader = {.fd = take_fd(client.got_fd), .bytes = page.bytes};
    assert_int_equal(pthread_create(&thread, NULL, read_into_page, &reader), 0);
    struct pollfd fault = {.fd = page.fault_fd, .events = POLLIN};
    assert_int_equal(poll(&fault, 1, 10000), 1); /* it stands */

    ask(&client, CALL("Read"), HOLDS_BYTES);
    ask(&other, CALL("Start"), NO_SESSION);
    ask(&client, CALL("Close"), EMPTY);
    hang_up(&client);
    ask(&other, CREATE, CREATED);
    ask(&other, CALL("Start"), EMPTY);
    ask(&other, CALL("Read"), CHUNK("5", "1", "false"));
    assert_pipe(&other, "bytes", 5);
    hang_up(&other);

    let_page_come(&page);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(reader.got, 5);
    assert_int_equal(close(reader.fd), 0);
    free_page(&page);
}

/* Replies wait because the client does not read; a descriptor waits with its own. */
static void keeps_a_descriptor_with_the_reply_that_brings_it(void **state)
{
    struct client client = dial();
    (void)state;
    memcpy(fake.ready, "bytes", 5);
    fake.ready_bytes = 5;
    fake.books_bytes = 60000;
    ask(&client, CREATE, CREATED);
    ask(&client, CALL("Start"), EMPTY);
    unsigned fd_count = count_fds();
    for (unsigned i = 0; i < 5; i++) {
        say(&client, CALL("Status"));
    }
    say(&client, CALL("Read"));
    say(&client, CALL("Read"));
    /* The first Read's reply waits with its descriptor; the second Read waits for it. */
    assert_int_equal(count_fds(), fd_count + 1);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(strlen(hear(&client)) > 60000);
    }
    assert_string_equal(hear(&client), CHUNK("5", "1", "false"));
    assert_string_equal(hear(&client), HOLDS_BYTES);
    assert_pipe(&client, "bytes", 5);
    hang_up(&client);
}

static void begins_a_segment_with_a_connections_first_read(void **state)
{
    struct client client = dial();
    (void)state;
    ask(&client, CREATE_DETACHED, CREATED);
    assert_int_equal(fake.segment_count, 0);
    ask(&client, CALL("Read"), NO_CHUNK("false"));
    ask(&client, CALL("Read"), NO_CHUNK("false"));
    ask(&client, CALL("Attach"), "{\"parameters\":{\"session\":\"7\",\"state\":\"created\"}}");
    ask(&client, CALL("Read"), NO_CHUNK("false"));
    assert_int_equal(fake.segment_count, 1);
    hang_up(&client);
    client = dial();
    ask(&client, CALL("Attach"), "{\"parameters\":{\"session\":\"7\",\"state\":\"created\"}}");
    assert_int_equal(fake.segment_count, 1);
    ask(&client, CALL("Read"), NO_CHUNK("false"));
    ask(&client, CALL("Read"), NO_CHUNK("false"));
    assert_int_equal(fake.segment_count, 2);
    ask(&client, CALL("Close"), EMPTY);
    ask(&client, CREATE, CREATED);
    ask(&client, CALL("Read"), NO_CHUNK("false"));
    assert_int_equal(fake.segment_count, 3);
    hang_up(&client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hands_out_bytes_until_they_are_acknowledged),
        TEST(fills_pipes_as_large_as_the_kernel_grants),
        TEST(has_one_read_open_at_a_time),
        TEST(lets_a_user_hold_eight_pipes),
        TEST(lets_all_users_hold_thirty_two_pipes),
        TEST(gives_no_other_user_a_way_into_a_pipe),
        TEST(goes_on_while_a_client_stands_still_in_a_pipe),
        TEST(keeps_a_descriptor_with_the_reply_that_brings_it),
        TEST(begins_a_segment_with_a_connections_first_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
