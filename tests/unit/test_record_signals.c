/* SPDX-License-Identifier: Apache-2.0 */

/* Which signals end a recording, and which end the program at once. Each story is a child's. */
#include "clock.h"
#include "record_signals.h"
#include "unit_test.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAST_WORDS     "ended at once"
#define STATUS_GOES_ON 40 /* the recording is to end, the program goes on */
#define STATUS_FAILED  41

static void wait_until_ns(uint64_t at_ns)
{
    const struct timespec at = clock_timespec(at_ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

static void take_or_exit(void)
{
    int fd = -1;
    if (record_signals_take(LAST_WORDS, &fd) < 0 || record_signals_read()) {
        _exit(STATUS_FAILED);
    }
}

/* Both are there before the first is handled, so no time passes between them. */
static void send_together(int first, int second)
{
    sigset_t both;
    (void)sigemptyset(&both);
    (void)sigaddset(&both, first);
    (void)sigaddset(&both, second);
    (void)sigprocmask(SIG_BLOCK, &both, NULL);
    (void)raise(first);
    (void)raise(second);
    (void)sigprocmask(SIG_UNBLOCK, &both, NULL);
}

static void hear_one_request_twice(void)
{
    take_or_exit();
    send_together(SIGTERM, SIGINT);
    _exit(record_signals_read() ? STATUS_GOES_ON : STATUS_FAILED);
}

static void hear_another_a_second_later(void)
{
    take_or_exit();
    send_together(SIGTERM, SIGHUP);
    wait_until_ns(clock_ns(CLOCK_MONOTONIC) + NS_PER_S);
    (void)raise(SIGTERM);
    _exit(STATUS_GOES_ON);
}

static void hear_a_child_end(void)
{
    take_or_exit();
    send_together(SIGCHLD, SIGPIPE);
    _exit(record_signals_read() ? STATUS_FAILED : STATUS_GOES_ON);
}

/* Returns the status of a child that plays the story; `ret_words` is what it wrote. */
static int play(void (*story)(void), char *ret_words, size_t words_bytes)
{
    int ends[2];
    int status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_int_not_equal(pid, -1);
    if (pid == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        story();
    }
    (void)close(ends[1]);
    ssize_t got = read(ends[0], ret_words, words_bytes - 1);
    (void)close(ends[0]);
    assert_true(got >= 0);
    ret_words[got] = '\0';
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(takes_signals_that_come_together_for_one_request)
{
    char words[64];
    assert_int_equal(play(hear_one_request_twice, words, sizeof words), STATUS_GOES_ON);
    assert_string_equal(words, "");
}

TEST(ends_at_once_by_a_signal_a_second_after_the_first)
{
    char words[64];
    assert_int_equal(play(hear_another_a_second_later, words, sizeof words), EXIT_FAILURE);
    assert_string_equal(words, LAST_WORDS);
}

TEST(goes_on_when_a_child_or_a_reader_ends)
{
    char words[64];
    assert_int_equal(play(hear_a_child_end, words, sizeof words), STATUS_GOES_ON);
    assert_string_equal(words, "");
}
