/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pipe that the handler writes to. The variables of this file are its only state, and they are
 * here because a signal handler has no argument to find them through. The handler runs with all of
 * its signals blocked, so it is never interrupted by itself.
 */
#include "record_signals.h"

#include "cleanup.h"
#include "clock.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

#define TAKEN_COUNT (sizeof taken / sizeof taken[0])

/* From the first signal on. One request may arrive twice: timeout(1) signals its child and then its
 * process group, and a terminal may send what a parent sends too. */
#define REPEATED_NS (1 * NS_PER_S)

static const int taken[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE};
static struct sigaction before[TAKEN_COUNT];
static int pipe_fds[2] = {-1, -1};
static const char *words;
static volatile sig_atomic_t ending;
static volatile uint64_t ending_ns; /* when that was set; of the handler alone */
static bool shields_from_terminal;  /* SIGINT was ignored */

/* Sent by kill() and its like, which a terminal's driver is not. */
static bool is_sent_by_process(const siginfo_t *info)
{
    return info->si_code <= 0;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    char byte = (char)number;
    (void)context;
    if (number == SIGINT && shields_from_terminal && !is_sent_by_process(info)) {
        return;
    }
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (number != SIGCHLD && ending != 0 && now_ns - ending_ns >= REPEATED_NS) {
        (void)!write(STDERR_FILENO, words, strlen(words));
        _exit(EXIT_FAILURE);
    }
    if (number != SIGCHLD && ending == 0) {
        ending = 1;
        ending_ns = now_ns;
    }
    (void)!write(pipe_fds[1], &byte, 1);
    errno = saved_errno;
}

int record_signals_take(const char *last_words, int *ret_fd)
{
    struct sigaction action = {.sa_flags = SA_RESTART | SA_NOCLDSTOP | SA_SIGINFO};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    words = last_words;
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        return -errno;
    }
    action.sa_sigaction = on_signal;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < TAKEN_COUNT; i++) {
        (void)sigaddset(&action.sa_mask, taken[i]);
    }
    for (size_t i = 0; i < TAKEN_COUNT; i++) {
        if (sigaction(taken[i], NULL, &before[i]) < 0) {
            return -errno;
        }
        bool is_ignored = before[i].sa_handler == SIG_IGN;
        bool is_left = is_ignored && taken[i] != SIGCHLD && taken[i] != SIGINT;
        shields_from_terminal = shields_from_terminal || (is_ignored && taken[i] == SIGINT);
        /* A reader or a child that is gone is an error of write(). */
        const struct sigaction *wanted = taken[i] == SIGPIPE ? &ignore : &action;
        if (!is_left && sigaction(taken[i], wanted, NULL) < 0) {
            return -errno;
        }
    }
    *ret_fd = pipe_fds[0];
    return 0;
}

void record_signals_restore(void)
{
    for (size_t i = 0; i < TAKEN_COUNT; i++) {
        (void)sigaction(taken[i], &before[i], NULL);
    }
}

bool record_signals_read(void)
{
    char bytes[64];
    while (read(pipe_fds[0], bytes, sizeof bytes) > 0) {
    }
    return ending != 0;
}
