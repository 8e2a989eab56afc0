/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs the thread that starts workers. The thread unshares the table of descriptors, as a copy that
 * ends with its own socket (CLOSE_RANGE_UNSHARE). Each message on that socket has a descriptor for
 * one worker; the thread answers with the worker's pid. The thread is the worker's parent: the
 * kernel kills the worker when the thread ends.
 *
 * With its first answer the thread says whether it has a table of its own. If so, the program
 * closes its copy of the thread's end, so that the socket ends with the thread: then all requests
 * fail, and the next one starts another thread.
 *
 * A forked process has no such thread, and starts its own.
 */
#include "elf_worker_starter.h"

#include "cleanup.h"
#include "descriptors.h"
#include "elf_worker.h"
#include "limit_clock.h"
#include "respawn.h"
#include "threads.h"

#include <errno.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct spawned {
    int32_t error; /* 0, or a negative errno value */
    int32_t pid;
    uint32_t has_own_table; /* 1: the thread has a table of descriptors of its own; else 0 */
};

/* This process's end of the socket, and the requests without an answer. */
static struct {
    pid_t pid; /* whose thread it is; 0: there is none */
    int socket_fd;
    int thread_fd; /* the thread's end, while it may be in one table with ours; else -1 */
    pid_t *asked[ELF_WORKER_STARTS_MAX]; /* borrowed, the oldest first; NULL: forgotten */
    size_t asked_count;
} starter;

/* Waits for a request and its descriptor (returned: close; -1: the table had no room for it).
 * False: there will be none. */
static bool receive_request(int socket_fd, int *ret_fd)
{
    int fds[DESCRIPTORS_MAX];
    size_t fd_count = 0;
    char byte = 0;
    ssize_t got = -1;
    do {
        got = descriptors_receive(socket_fd, &byte, sizeof byte, 0, fds, &fd_count);
    } while (got == -EINTR);
    *ret_fd = got > 0 && fd_count > 0 ? fds[0] : -1;
    return got > 0;
}

/* Sends a descriptor (borrowed) for the worker to come. Returns 0, or -errno. */
static int send_request(int socket_fd, int fd)
{
    const char byte = 0;
    ssize_t sent = descriptors_send(socket_fd, &byte, sizeof byte, &fd, 1, MSG_DONTWAIT);
    return sent < 0 ? (int)sent : 0;
}

/* False: without CLOSE_RANGE_UNSHARE the thread keeps the program's table. */
static bool leave_table(int socket_fd)
{
    if (close_range((unsigned)socket_fd + 1, UINT_MAX, CLOSE_RANGE_UNSHARE) < 0) {
        return false;
    }
    if (socket_fd > RESPAWN_FIRST_FD) {
        (void)close_range(RESPAWN_FIRST_FD, (unsigned)socket_fd - 1, 0);
    }
    return true;
}

static void *run_thread(void *userdata)
{
    const int socket_fd = (int)(intptr_t)userdata;
    (void)pthread_setname_np(pthread_self(), "worker-starter");
    const bool has_own_table = leave_table(socket_fd);
    for (;;) {
        cleanup_(closep) int fd = -1;
        pid_t pid = 0;
        struct spawned spawned = {.error = -EMFILE, .has_own_table = has_own_table};
        if (!receive_request(socket_fd, &fd)) {
            return NULL;
        }
        if (fd >= 0) {
            spawned.error = respawn("cpu-profilerd", ELF_WORKER_ARGUMENT, &fd, 1, &pid);
        }
        spawned.pid = pid;
        if (send(socket_fd, &spawned, sizeof spawned, MSG_NOSIGNAL) < 0) {
            return NULL;
        }
    }
}

static int start_thread(void)
{
    int pair[2];
    if (starter.pid == getpid()) {
        return 0;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        return -errno;
    }
    cleanup_(closep) int ours = pair[0];
    cleanup_(closep) int theirs = pair[1];
    int r = threads_start(run_thread, (void *)(intptr_t)theirs);
    if (r < 0) {
        return r;
    }
    starter.socket_fd = take_fd(ours);
    starter.thread_fd = take_fd(theirs);
    starter.pid = getpid();
    starter.asked_count = 0;
    return 0;
}

/* Takes the answer to the oldest request. */
static void take_answer(const struct spawned *spawned)
{
    pid_t *pid = starter.asked[0];
    starter.asked_count--;
    memmove(starter.asked, starter.asked + 1, starter.asked_count * sizeof *starter.asked);
    if (pid != NULL) {
        *pid = spawned->error == 0 ? spawned->pid : spawned->error;
    } else if (spawned->error == 0) {
        (void)kill(spawned->pid, SIGKILL);
    }
}

/* Fails all requests: the thread has ended. */
static void take_end(void)
{
    const struct spawned ended = {.error = -EPIPE};
    while (starter.asked_count > 0) {
        take_answer(&ended);
    }
    starter.socket_fd = close_fd(starter.socket_fd);
    starter.pid = 0;
}

/* Takes the answers that have come, and the end of the thread. */
static void take_answers(void)
{
    struct spawned spawned;
    ssize_t got = 0;
    while ((got = recv(starter.socket_fd, &spawned, sizeof spawned, MSG_DONTWAIT)) ==
           (ssize_t)sizeof spawned) {
        if (spawned.has_own_table != 0) {
            starter.thread_fd = close_fd(starter.thread_fd);
        }
        take_answer(&spawned);
    }
    if (got >= 0 || (errno != EAGAIN && errno != EINTR)) {
        take_end();
    }
}

int elf_worker_starter_ask(int socket_fd, pid_t *pid)
{
    if (starter.pid == getpid()) {
        take_answers();
    }
    int r = start_thread();
    if (r < 0) {
        return r;
    }
    if (starter.asked_count == ELF_WORKER_STARTS_MAX) {
        return -EAGAIN;
    }
    r = send_request(starter.socket_fd, socket_fd);
    if (r == 0) {
        *pid = 0;
        starter.asked[starter.asked_count++] = pid;
    }
    return r;
}

void elf_worker_starter_wait(const pid_t *pid, int wait_ms)
{
    const uint64_t until_ns = limit_clock_ns() + (uint64_t)wait_ms * NS_PER_MS;
    while (starter.asked_count > 0) {
        take_answers();
        uint64_t now_ns = limit_clock_ns();
        if (*pid != 0 || now_ns >= until_ns || starter.asked_count == 0) {
            return;
        }
        struct pollfd readable = {.fd = starter.socket_fd, .events = POLLIN};
        (void)poll(&readable, 1, (int)((until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS));
    }
}

void elf_worker_starter_forget(const pid_t *pid)
{
    for (size_t i = 0; i < starter.asked_count; i++) {
        if (starter.asked[i] == pid) {
            starter.asked[i] = NULL;
        }
    }
}
