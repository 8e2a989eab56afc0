/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asks other programs (systemctl, journalctl, dpkg-query). What they print is bounded, and so is
 * the time: one that does not end is killed, also when it prints no more.
 */
#include "run.h"

#include "cleanup.h"
#include "clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>

#define LOOK_MS 2

static int spawn_silent(const char *const *arguments, int output_fd, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return -ENOMEM;
    }
    int error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
    }
    if (error == 0) {
        error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    if (error == 0) {
        error = posix_spawnp(ret, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments,
                             environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return -error;
}

/* Whether there is something to read before that time. */
static bool is_ready(int fd, uint64_t end_ns)
{
    for (;;) {
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        struct pollfd waited = {.fd = fd, .events = POLLIN};
        int wait_ms = now_ns >= end_ns ? 0 : (int)((end_ns - now_ns) / NS_PER_MS) + 1;
        int r = poll(&waited, 1, wait_ms);
        if (r >= 0 || errno != EINTR) {
            return r > 0;
        }
    }
}

/* Reads until the end, until that time, or until `into` is full; the rest is thrown away. Returns 0
 * or -ETIMEDOUT. */
static int read_output(int fd, uint64_t end_ns, char *into, size_t capacity_bytes)
{
    size_t used_bytes = 0;
    for (;;) {
        char rest[4096];
        if (!is_ready(fd, end_ns)) {
            return -ETIMEDOUT;
        }
        size_t room_bytes = capacity_bytes - 1 - used_bytes;
        ssize_t got =
            room_bytes == 0 ? read(fd, rest, sizeof rest) : read(fd, into + used_bytes, room_bytes);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return 0;
        }
        used_bytes += room_bytes > 0 && got > 0 ? (size_t)got : 0;
        into[used_bytes] = '\0';
    }
}

/* Waits for the end of a child, and kills one that has not ended by that time. Returns 0, or
 * -ETIMEDOUT. */
static int wait_for_end(pid_t pid, uint64_t end_ns, int *ret_status)
{
    pid_t ended = 0;
    while ((ended = waitpid(pid, ret_status, WNOHANG)) == 0 && clock_ns(CLOCK_MONOTONIC) < end_ns) {
        (void)poll(NULL, 0, LOOK_MS);
    }
    if (ended != 0) {
        return 0;
    }
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR) {
    }
    return -ETIMEDOUT;
}

int ask_program(const char *const *arguments, uint64_t limit_ms, char *into, size_t capacity_bytes)
{
    int ends[2];
    pid_t pid = 0;
    int status = 0;
    into[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -errno;
    }
    cleanup_(closep) int read_fd = ends[0];
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + limit_ms * NS_PER_MS;
    int r = spawn_silent(arguments, ends[1], &pid);
    (void)close(ends[1]);
    if (r < 0) {
        return r;
    }
    r = read_output(read_fd, end_ns, into, capacity_bytes);
    r = wait_for_end(pid, r < 0 ? 0 : end_ns, &status);
    if (r < 0) {
        return r;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}
