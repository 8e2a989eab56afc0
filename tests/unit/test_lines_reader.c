/* SPDX-License-Identifier: Apache-2.0 */

/* The child that reads debugging information, and questions that profctl never asks. */
#include "lines.h"
#include "lines_wire.h"
#include "unit_test.h"

#include "cleanup.h"
#include "respawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY     65534
#define DATA_BYTES (UINT64_C(512) << 20)

struct reader {
    pid_t pid;
    int socket_fd;
    int pipe_fd;
};

static struct reader start(void)
{
    const struct lines_settings settings = {
        .uid = NOBODY, .gid = NOBODY, .data_bytes_max = DATA_BYTES};
    int sockets[2];
    int pipes[2];
    struct reader reader = {.pid = 0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    const int fds[] = {sockets[1], pipes[1]};
    assert_int_equal(respawn("profctl", LINES_READER_ARGUMENT, fds, COUNT_OF(fds), &reader.pid), 0);
    (void)close(sockets[1]);
    (void)close(pipes[1]);
    reader.socket_fd = sockets[0];
    reader.pipe_fd = pipes[0];
    assert_int_equal(write(reader.socket_fd, &settings, sizeof settings), sizeof settings);
    return reader;
}

static void ask(const struct reader *reader, uint32_t request)
{
    const struct lines_question question = {.request = request};
    assert_int_equal(send(reader->socket_fd, &question, sizeof question, MSG_NOSIGNAL),
                     sizeof question);
}

/* That it says nothing more, and ends with this status, at the latest where its questions end. */
static void expect_end(struct reader *reader, int expected)
{
    char byte = 0;
    int status = 0;
    (void)shutdown(reader->socket_fd, SHUT_WR);
    assert_int_equal(read(reader->pipe_fd, &byte, 1), 0);
    assert_int_equal(waitpid(reader->pid, &status, 0), reader->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
    reader->socket_fd = close_fd(reader->socket_fd);
    reader->pipe_fd = close_fd(reader->pipe_fd);
}

static void expect_no_file(const struct reader *reader)
{
    struct lines_answer_header header = {.error = 0};
    assert_int_equal(read(reader->pipe_fd, &header, sizeof header), sizeof header);
    assert_int_equal(header.error, -EBADMSG);
}

TEST(ends_at_a_question_that_there_is_not)
{
    static const uint32_t unknown[] = {0, LINES_CODE + 1, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        struct reader reader = start();
        ask(&reader, LINES_READ);
        expect_no_file(&reader);
        ask(&reader, unknown[i]);
        expect_end(&reader, EXIT_FAILURE);
    }
}

TEST(ends_with_its_socket)
{
    struct reader reader = start();
    ask(&reader, LINES_READ);
    expect_no_file(&reader);
    expect_end(&reader, EXIT_SUCCESS);
}

int main(int argc, char **argv)
{
    lines_reader_start(argc, argv);
    return unit_test_run();
}
