/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two pipes, both closed by a successful exec: a byte in the first says go, an errno in the second
 * says why not. The child runs as the caller, with the caller's descriptors and signals.
 */
#include "record_child.h"

#include "cleanup.h"
#include "naming.h"
#include "record_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static void run_child(int go_fd, int end_fd, char *const *command)
{
    char go = 0;
    ssize_t got = 0;
    do {
        got = read(go_fd, &go, 1);
    } while (got < 0 && errno == EINTR);
    if (got == 1) {
        (void)execvp(command[0], command);
        int why = errno;
        (void)!write(end_fd, &why, sizeof why);
    }
    _exit(EXIT_FAILURE);
}

int record_child_fork(struct record_child *child, char *const *command, bool names_code)
{
    int go[2] = {-1, -1};
    int end[2] = {-1, -1};
    if (pipe2(go, O_CLOEXEC) < 0) {
        return -errno;
    }
    cleanup_(closep) int go_read = go[0];
    cleanup_(closep) int go_write = go[1];
    if (pipe2(end, O_CLOEXEC) < 0) {
        return -errno;
    }
    cleanup_(closep) int end_read = end[0];
    cleanup_(closep) int end_write = end[1];
    pid_t pid = fork();
    if (pid < 0) {
        return -errno;
    }
    if (pid == 0) {
        record_signals_restore();
        (void)close(go_write);
        if (names_code) {
            naming_set_environment(naming_links_are_followed());
        }
        run_child(go_read, end_write, command);
    }
    *child = (struct record_child){
        .pid = pid,
        .go_fd = take_fd(go_write),
        .end_fd = take_fd(end_read),
        .is_running = true,
    };
    return 0;
}

static void wait_for(struct record_child *child, int options)
{
    pid_t waited = 0;
    do {
        waited = waitpid(child->pid, &child->wait_status, options);
    } while (waited < 0 && errno == EINTR);
    child->is_running = waited == 0;
}

int record_child_release(struct record_child *child)
{
    int why = 0;
    ssize_t got = 0;
    /* A child that a signal ended while it waited is found by record_child_has_ended(). */
    if (write(child->go_fd, "g", 1) == 1) {
        do {
            got = read(child->end_fd, &why, sizeof why);
        } while (got < 0 && errno == EINTR);
    }
    child->go_fd = close_fd(child->go_fd);
    child->end_fd = close_fd(child->end_fd);
    if (why != 0) {
        wait_for(child, 0);
    }
    return -why;
}

bool record_child_has_ended(struct record_child *child)
{
    if (child->pid > 0 && child->is_running) {
        wait_for(child, WNOHANG);
    }
    return child->pid > 0 && !child->is_running;
}

void record_child_done(struct record_child *child)
{
    bool is_waiting = child->go_fd >= 0;
    child->go_fd = close_fd(child->go_fd);
    child->end_fd = close_fd(child->end_fd);
    if (child->pid > 0 && is_waiting && child->is_running) {
        wait_for(child, 0);
    }
}

int record_child_status(const struct record_child *child)
{
    if (child->pid <= 0 || child->is_running) {
        return 0;
    }
    return WIFSIGNALED(child->wait_status) ? 128 + WTERMSIG(child->wait_status)
                                           : WEXITSTATUS(child->wait_status);
}

const char *record_child_describe(const struct record_child *child, char *into)
{
    if (child->is_running) {
        (void)snprintf(into, RECORD_CHILD_TEXT_BYTES, "still runs, as pid %d", child->pid);
    } else if (WIFSIGNALED(child->wait_status)) {
        (void)snprintf(into, RECORD_CHILD_TEXT_BYTES, "was ended by signal %d (%s)",
                       WTERMSIG(child->wait_status), strsignal(WTERMSIG(child->wait_status)));
    } else {
        (void)snprintf(into, RECORD_CHILD_TEXT_BYTES, "ended with status %d",
                       WEXITSTATUS(child->wait_status));
    }
    return into;
}
