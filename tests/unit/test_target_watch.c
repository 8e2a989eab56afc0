/* SPDX-License-Identifier: Apache-2.0 */

/* When all that -p and -t name has ended, also while nothing has waited for it. */
#include "target_watch.h"
#include "unit_test.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t fork_waiting(void)
{
    pid_t pid = fork();
    assert_int_not_equal(pid, -1);
    if (pid == 0) {
        for (;;) {
            (void)pause();
        }
    }
    return pid;
}

/* Ends a child and leaves it unwaited for. */
static void end(pid_t pid)
{
    siginfo_t info;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void reap(pid_t pid)
{
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

__attribute__((format(printf, 2, 3))) static void begin(struct target_watch *watch,
                                                        const char *format, ...)
{
    char config[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(config, sizeof config, format, args);
    va_end(args);
    assert_int_equal(target_watch_begin(watch, config), 0);
}

TEST(ends_with_the_last_of_the_targets)
{
    struct target_watch watch = {0};
    char text[TARGET_WATCH_TEXT_BYTES];
    pid_t first = fork_waiting();
    pid_t second = fork_waiting();
    begin(&watch, "{\"targets\":{\"pids\":[%d],\"tids\":[%d]}}", first, second);
    assert_false(target_watch_has_ended(&watch));
    end(first);
    assert_false(target_watch_has_ended(&watch));
    end(second);
    reap(second); /* as the kernel does with a thread by itself */
    assert_true(target_watch_has_ended(&watch));
    assert_true(target_watch_has_ended(&watch));
    assert_string_equal(target_watch_describe(&watch, text), "all 2 targets have ended");
    target_watch_done(&watch);
    reap(first);
}

TEST(names_a_single_target)
{
    struct target_watch watch = {0};
    char text[TARGET_WATCH_TEXT_BYTES];
    char expected[TARGET_WATCH_TEXT_BYTES];
    pid_t pid = fork_waiting();
    begin(&watch, "{\"targets\":{\"pids\":[%d]}}", pid);
    end(pid);
    assert_true(target_watch_has_ended(&watch));
    (void)snprintf(expected, sizeof expected, "process %d has ended", pid);
    assert_string_equal(target_watch_describe(&watch, text), expected);
    target_watch_done(&watch);
    begin(&watch, "{\"targets\":{\"tids\":[%d]}}", pid);
    (void)snprintf(expected, sizeof expected, "thread %d has ended", pid);
    assert_string_equal(target_watch_describe(&watch, text), expected);
    target_watch_done(&watch);
    reap(pid);
}

TEST(watches_nothing_where_more_than_tasks_is_named)
{
    static const char *const others[] = {"\"comms\":[\"x\"]", "\"uids\":[0]", "\"cgroups\":[\"/\"]",
                                         "\"units\":[\"x\"]"};
    struct target_watch watch = {0};
    pid_t pid = fork_waiting();
    end(pid);
    reap(pid);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        begin(&watch, "{\"targets\":{%s,\"pids\":[%d],\"tids\":[%d]}}", others[i], pid, pid);
        assert_false(target_watch_has_ended(&watch));
        target_watch_done(&watch);
    }
    begin(&watch, "{}");
    assert_false(target_watch_has_ended(&watch));
    begin(&watch, "no JSON");
    assert_false(target_watch_has_ended(&watch));
    target_watch_done(&watch);
}
