/* SPDX-License-Identifier: Apache-2.0 */

/*
 * lines_worker starts profctl anew as a child, sends it requests, and waits for answers up to a
 * time limit. A child that breaks the protocol, or is late, is killed. The wait for its end is
 * short: a process that reads from a hanging filesystem ends only when the filesystem answers.
 */
#include "lines_worker.h"

#include "cleanup.h"
#include "clock.h"
#include "descriptors.h"
#include "lines_answer.h"
#include "respawn.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NOBODY       65534
#define USER         "cpu-profilerd-worker" /* owns no file; the uid 65534 may own some */
#define END_WAIT_MS  1000
#define DATA_MIN     (UINT64_C(512) << 20)
#define DATA_MAX     (UINT64_C(16) << 30)
#define MEMORY_SHARE 2 /* a child may have one part of so many of the machine's memory */

/* A slow disk gives so many bytes a second; a sparse file says any size. */
#define LIMIT_MIN_S   UINT64_C(20)
#define LIMIT_MAX_S   UINT64_C(300)
#define LIMIT_BYTES_S (UINT64_C(4) << 20)

struct lines_worker {
    pid_t pid;       /* 0 once it has been waited for */
    bool has_status; /* how it ended is known: */
    int status;      /* from waitpid() */
    int socket_fd;
    int pipe_fd;
    uint64_t limit_ns; /* for an answer about the open file */
    char ending[LINES_ENDING_BYTES];
};

static struct lines_settings make_settings(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    uint64_t memory_bytes = pages <= 0 ? 0 : (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t data_bytes = memory_bytes / MEMORY_SHARE;
    data_bytes = data_bytes < DATA_MIN ? DATA_MIN : data_bytes > DATA_MAX ? DATA_MAX : data_bytes;
    struct lines_settings settings = {.uid = NOBODY, .gid = NOBODY, .data_bytes_max = data_bytes};
    const struct passwd *user = geteuid() == 0 ? getpwnam(USER) : NULL;
    if (user != NULL) {
        settings.uid = user->pw_uid;
        settings.gid = user->pw_gid;
    }
    return settings;
}

int lines_worker_start(struct lines_worker **ret)
{
    int sockets[2];
    int pipes[2];
    const struct lines_settings settings = make_settings();
    cleanup_(lines_worker_freep) struct lines_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL) {
        return -ENOMEM;
    }
    worker->socket_fd = -1;
    worker->pipe_fd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0) {
        return -errno;
    }
    worker->socket_fd = sockets[0];
    cleanup_(closep) int child_socket = sockets[1];
    if (pipe2(pipes, O_CLOEXEC) < 0) {
        return -errno;
    }
    worker->pipe_fd = pipes[0];
    cleanup_(closep) int child_pipe = pipes[1];
    const int fds[] = {child_socket, child_pipe};
    /* It cannot come too early: it waits in the socket. */
    if (send(worker->socket_fd, &settings, sizeof settings, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        return -errno;
    }
    int r = respawn("profctl", LINES_READER_ARGUMENT, fds, sizeof fds / sizeof *fds, &worker->pid);
    if (r == 0) {
        *ret = take_ptr(worker);
    }
    return r;
}

/* Ends the child and finds out how it ended. */
static void end_child(struct lines_worker *worker)
{
    worker->socket_fd = close_fd(worker->socket_fd);
    worker->pipe_fd = close_fd(worker->pipe_fd);
    if (worker->pid > 0) {
        cleanup_(closep) int pid_fd = pidfd_open(worker->pid, 0);
        struct pollfd ended = {.fd = pid_fd, .events = POLLIN};
        (void)kill(worker->pid, SIGKILL);
        (void)poll(&ended, 1, END_WAIT_MS);
        worker->has_status = waitpid(worker->pid, &worker->status, WNOHANG) == worker->pid;
        worker->pid = 0;
    }
}

struct lines_worker *lines_worker_free(struct lines_worker *worker)
{
    if (worker != NULL) {
        end_child(worker);
        free(worker);
    }
    return NULL;
}

void lines_worker_freep(struct lines_worker **worker)
{
    *worker = lines_worker_free(*worker);
}

bool lines_worker_is_useless(const struct lines_worker *worker)
{
    return worker->has_status && WIFEXITED(worker->status) &&
           (WEXITSTATUS(worker->status) == LINES_EXIT_UNFILTERED ||
            WEXITSTATUS(worker->status) == LINES_EXIT_UNCONFINED);
}

/* The child has closed its pipe, so it is ending. Waits for that, to learn of what. */
static int lose(struct lines_worker *worker)
{
    cleanup_(closep) int pid_fd = pidfd_open(worker->pid, 0);
    struct pollfd ended = {.fd = pid_fd, .events = POLLIN};
    (void)poll(&ended, 1, END_WAIT_MS);
    end_child(worker);
    if (!worker->has_status) {
        (void)snprintf(worker->ending, sizeof worker->ending,
                       "was killed, and how it ended is not known");
    } else if (WIFSIGNALED(worker->status)) {
        (void)snprintf(worker->ending, sizeof worker->ending, "was ended by signal %d (%s)",
                       WTERMSIG(worker->status), strsignal(WTERMSIG(worker->status)));
    } else if (!lines_worker_is_useless(worker)) {
        (void)snprintf(worker->ending, sizeof worker->ending, "ended with status %d",
                       WEXITSTATUS(worker->status));
    } else {
        (void)snprintf(worker->ending, sizeof worker->ending, "%s",
                       WEXITSTATUS(worker->status) == LINES_EXIT_UNFILTERED
                           ? "cannot load its system call filter: the kernel needs "
                             "CONFIG_SECCOMP_FILTER, and a container must allow seccomp(2)"
                           : "cannot give up its rights");
    }
    return -EPIPE;
}

/* What the child says makes no sense. */
static int refuse(struct lines_worker *worker)
{
    end_child(worker);
    (void)snprintf(worker->ending, sizeof worker->ending, "gave an answer that makes no sense");
    return -EPIPE;
}

/* Waits for the pipe or the socket, until `end_ns`. */
static int wait_for(struct lines_worker *worker, int fd, short events, uint64_t end_ns)
{
    for (;;) {
        struct pollfd waited = {.fd = fd, .events = events};
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        uint64_t left_ms = now_ns >= end_ns ? 0 : (end_ns - now_ns) / NS_PER_MS + 1;
        int ready = left_ms == 0 ? 0 : poll(&waited, 1, (int)left_ms);
        if (ready > 0) {
            return 0;
        }
        if (ready == 0 || errno != EINTR) {
            end_child(worker);
            (void)snprintf(worker->ending, sizeof worker->ending, "did not answer for %u s",
                           (unsigned)(worker->limit_ns / NS_PER_S));
            return -ETIME;
        }
    }
}

static int receive(struct lines_worker *worker, void *into, size_t size_bytes, uint64_t end_ns)
{
    uint8_t *at = into;
    while (size_bytes > 0) {
        int r = wait_for(worker, worker->pipe_fd, POLLIN, end_ns);
        if (r < 0) {
            return r;
        }
        ssize_t got = read(worker->pipe_fd, at, size_bytes);
        if (got <= 0) {
            return lose(worker);
        }
        at += got;
        size_bytes -= (size_t)got;
    }
    return 0;
}

/* Sends bytes, the first of them with a descriptor (-1: none). */
static int send_whole(struct lines_worker *worker, const void *from, size_t size_bytes, int fd,
                      uint64_t end_ns)
{
    const uint8_t *at = from;
    while (size_bytes > 0) {
        ssize_t sent =
            descriptors_send(worker->socket_fd, at, size_bytes, &fd, fd >= 0, MSG_DONTWAIT);
        if (sent < 0 && sent != -EAGAIN) {
            return lose(worker);
        }
        if (sent > 0) {
            at += sent;
            size_bytes -= (size_t)sent;
            fd = -1;
            continue;
        }
        int r = wait_for(worker, worker->socket_fd, POLLOUT, end_ns);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static uint64_t limit_ns(int fd)
{
    struct stat status;
    uint64_t size_bytes = fstat(fd, &status) < 0 ? 0 : (uint64_t)status.st_size;
    uint64_t limit_s = LIMIT_MIN_S + size_bytes / LIMIT_BYTES_S;
    return (limit_s < LIMIT_MAX_S ? limit_s : LIMIT_MAX_S) * NS_PER_S;
}

int lines_worker_open(struct lines_worker *worker, enum lines_request request, int fd,
                      struct lines_about *ret)
{
    const struct lines_question question = {.request = (uint32_t)request};
    uint64_t file_limit_ns = limit_ns(fd);
    if (request == LINES_OPEN || file_limit_ns > worker->limit_ns) {
        worker->limit_ns = file_limit_ns;
    }
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + worker->limit_ns;
    int r = send_whole(worker, &question, sizeof question, fd, end_ns);
    if (r == 0) {
        r = receive(worker, ret, sizeof *ret, end_ns);
    }
    return r == 0 && !lines_about_is_sound(ret) ? refuse(worker) : r;
}

int lines_worker_read(struct lines_worker *worker, const uint64_t *vaddrs, size_t count,
                      uint64_t *left_bytes, struct lines_answer_header *ret_header, void **ret_body)
{
    const struct lines_question question = {.request = LINES_READ, .address_count = count};
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + worker->limit_ns;
    cleanup_(freep) void *body = NULL;
    size_t body_bytes = 0;
    int r = send_whole(worker, &question, sizeof question, -1, end_ns);
    if (r == 0) {
        r = send_whole(worker, vaddrs, count * sizeof *vaddrs, -1, end_ns);
    }
    if (r == 0) {
        r = receive(worker, ret_header, sizeof *ret_header, end_ns);
    }
    if (r < 0 || ret_header->error != 0) {
        return r < 0 ? r : -EBADMSG;
    }
    if (lines_answer_size(ret_header, count, &body_bytes) < 0 || body_bytes > *left_bytes) {
        return refuse(worker);
    }
    *left_bytes -= body_bytes;
    body = malloc(body_bytes + 1);
    if (body == NULL) {
        end_child(worker);
        return -ENOMEM;
    }
    r = receive(worker, body, body_bytes, end_ns);
    if (r == 0) {
        *ret_body = take_ptr(body);
    }
    return r;
}

/* Asks about addresses of the open file, for a list. Returns 0 with how many items follow. */
static int ask_for_list(struct lines_worker *worker, enum lines_request request,
                        const uint64_t *vaddrs, size_t count, uint64_t end_ns, size_t *ret_count)
{
    const struct lines_question question = {.request = (uint32_t)request, .address_count = count};
    struct lines_list_header header = {0};
    int r = send_whole(worker, &question, sizeof question, -1, end_ns);
    if (r == 0) {
        r = send_whole(worker, vaddrs, count * sizeof *vaddrs, -1, end_ns);
    }
    if (r == 0) {
        r = receive(worker, &header, sizeof header, end_ns);
    }
    *ret_count = header.count;
    return r == 0 && header.error != 0 ? -EBADMSG : r;
}

int lines_worker_functions(struct lines_worker *worker, const uint64_t *vaddrs, size_t count,
                           struct function_range *ret)
{
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + worker->limit_ns;
    size_t answer_count = 0;
    int r = ask_for_list(worker, LINES_FUNCTIONS, vaddrs, count, end_ns, &answer_count);
    if (r == 0 && answer_count != count) {
        r = refuse(worker);
    }
    if (r == 0) {
        r = receive(worker, ret, count * sizeof *ret, end_ns);
    }
    return r == 0 && !lines_ranges_are_sound(vaddrs, ret, count) ? refuse(worker) : r;
}

int lines_worker_code(struct lines_worker *worker, uint64_t start, uint64_t end,
                      struct disassembly_line **ret, size_t *ret_count)
{
    const uint64_t range[] = {start, end};
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + worker->limit_ns;
    cleanup_(freep) struct disassembly_line *lines = NULL;
    size_t count = 0;
    int r = ask_for_list(worker, LINES_CODE, range, 2, end_ns, &count);
    if (r < 0) {
        return r;
    }
    if (count > end - start) {
        return refuse(worker);
    }
    lines = calloc(count + 1, sizeof *lines);
    if (lines == NULL) {
        end_child(worker);
        return -ENOMEM;
    }
    r = receive(worker, lines, count * sizeof *lines, end_ns);
    if (r == 0 && !lines_code_is_sound(start, end, lines, count)) {
        return refuse(worker);
    }
    if (r == 0) {
        *ret = take_ptr(lines);
        *ret_count = count;
    }
    return r;
}

const char *lines_worker_ending(const struct lines_worker *worker)
{
    return worker->ending;
}
