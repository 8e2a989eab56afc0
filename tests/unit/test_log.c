/* SPDX-License-Identifier: Apache-2.0 */

/* Log lines on a standard error that is not the journal's: no priority stands before them. */
#include "log.h"
#include "unit_test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int pipe_fds[2];
static int saved_stderr;

static int catch_stderr(void **state)
{
    (void)state;
    saved_stderr = dup(STDERR_FILENO);
    return saved_stderr < 0 || pipe2(pipe_fds, O_NONBLOCK) != 0 ||
           dup2(pipe_fds[1], STDERR_FILENO) < 0;
}

static int release_stderr(void **state)
{
    (void)state;
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
    return dup2(saved_stderr, STDERR_FILENO) < 0 || close(saved_stderr) != 0;
}

static void assert_line(const char *wanted)
{
    char line[2048] = "";
    ssize_t bytes = read(pipe_fds[0], line, sizeof line - 1);
    line[bytes < 0 ? 0 : bytes] = '\0';
    assert_string_equal(line, wanted);
}

TEST_WITH(returns_what_it_logs, catch_stderr, release_stderr)
{
    errno = ERANGE;
    assert_int_equal(log_error(-ENOENT, "session %d: cannot begin", 3), -ENOENT);
    assert_line("session 3: cannot begin: No such file or directory\n");
    assert_int_equal(log_warning(0, "peer: slow, ignoring"), 0);
    assert_line("peer: slow, ignoring\n");
    assert_int_equal(errno, ERANGE);
}

TEST_WITH(keeps_a_text_from_beginning_a_line, catch_stderr, release_stderr)
{
    log_info("'%s'", "a\n<0>b\x1b[1m");
    assert_line("'a?<0>b?[1m'\n");
}

TEST_WITH(cuts_a_line_that_is_too_long, catch_stderr, release_stderr)
{
    char text[3000];
    char wanted[1025] = "";
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    memset(wanted, 'x', 1019);
    wanted[1019] = '\n';
    log_info("%s", text);
    assert_line(wanted);
}
