/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs the thread that starts workers. The thread unshares the table of descriptors, as a copy that
 * ends with its own socket (CLOSE_RANGE_UNSHARE). Each message on that socket has a descriptor for
 * one worker; the thread answers with the worker's pid. The thread is the worker's parent: the
 * kernel kills the worker when the thread ends.
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
};

/* This process's end of the socket, and the requests without an answer. */
static struct {
    pid_t pid; /* whose thread it is; 0: none was started */
    int socket_fd;
    pid_t *asked[ELF_WORKER_STARTS_MAX]; /* borrowed, the oldest first; NULL: forgotten */
    size_t asked_count;
} starter;

/* A descriptor that came with a request (returned: close), or -1 when there will be none. */
static int receive_request(int socket_fd)
{
    int fds[DESCRIPTORS_MAX];
    size_t fd_count = 0;
    char byte = 0;
    ssize_t got = -1;
    do {
        got = descriptors_receive(socket_fd, &byte, sizeof byte, 0, fds, &fd_count);
    } while (got == -EINTR);
    return got > 0 && fd_count > 0 ? fds[0] : -1;
}

/* Sends a descriptor (borrowed) for the worker to come. Returns 0, or -errno. */
static int send_request(int socket_fd, int fd)
{
    const char byte = 0;
    ssize_t sent = descriptors_send(socket_fd, &byte, sizeof byte, &fd, 1, MSG_DONTWAIT);
    return sent < 0 ? (int)sent : 0;
}

/* Without CLOSE_RANGE_UNSHARE the thread keeps the program's table. */
static void leave_table(int socket_fd)
{
    if (close_range((unsigned)socket_fd + 1, UINT_MAX, CLOSE_RANGE_UNSHARE) == 0 &&
        socket_fd > RESPAWN_FIRST_FD) {
        (void)close_range(RESPAWN_FIRST_FD, (unsigned)socket_fd - 1, 0);
    }
}

static void *run_thread(void *userdata)
{
    const int socket_fd = (int)(intptr_t)userdata;
    (void)pthread_setname_np(pthread_self(), "worker-starter");
    leave_table(socket_fd);
    for (;;) {
        cleanup_(closep) int fd = receive_request(socket_fd);
        pid_t pid = 0;
        struct spawned spawned = {.error = -EMFILE};
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
    starter.pid = getpid();
    starter.asked_count = 0;
    (void)take_fd(theirs);
    return 0;
}

int elf_worker_starter_ask(int socket_fd, pid_t *pid)
{
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
}

void elf_worker_starter_wait(const pid_t *pid, int wait_ms)
{
    const uint64_t until_ns = limit_clock_ns() + (uint64_t)wait_ms * NS_PER_MS;
    struct spawned spawned;
    while (starter.asked_count > 0) {
        ssize_t got = recv(starter.socket_fd, &spawned, sizeof spawned, MSG_DONTWAIT);
        if (got == (ssize_t)sizeof spawned) {
            take_answer(&spawned);
            continue;
        }
        if (got >= 0 || (errno != EAGAIN && errno != EINTR)) {
            take_end();
            return;
        }
        uint64_t now_ns = limit_clock_ns();
        if (*pid != 0 || now_ns >= until_ns) {
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
