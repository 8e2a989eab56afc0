/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The daemon's side of the worker: starts it, sends a request, takes the answer, ends it. A hostile
 * file may have taken the worker over, so an answer counts only if it belongs to the request, if
 * the daemon's memfd is sealed by then, and if it has a table that passes its check. Any other
 * answer ends the worker, and the caller sees a worker that died.
 *
 * A descriptor from the worker may be one whose close never returns: a user's file, which the
 * worker was given. So a message with a descriptor is not taken out of the socket, and the socket
 * is closed on another thread.
 *
 * Two calls block: the start waits a moment for the new process, and elf_worker_free() for the dead
 * one. If the new process is late, requests wait in its socket. All calls belong to one thread. The
 * worker's parent is another one (elf_worker_starter.c).
 */
#include "elf_worker.h"

#include "cleanup.h"
#include "descriptors.h"
#include "elf_worker_confine.h"
#include "elf_worker_starter.h"
#include "elf_worker_wire.h"
#include "seals.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

_Static_assert(ELF_WORKER_FILES_MAX <= DESCRIPTORS_MAX, "a question goes in one message");

#define START_WAIT_MS 200 /* most begin in 2 ms; the caller serves clients */
#define END_WAIT_MS   1000
#define PID_GONE      (-1)
#define ERRNO_MAX     4095
#define MESSAGES_MAX  4096 /* more than a socket's queue holds */

/* A memfd for a table, what was asked for, and how large it may be. */
struct awaited_table {
    int fd;
    enum elf_worker_request request;
    size_t max_bytes;
};

struct elf_worker {
    int socket_fd;
    pid_t pid;  /* 0 until it is known, negative once there is none */
    int status; /* as waitpid() told it */
    uint64_t sequence;
    bool asked;
    struct awaited_table
        table; /* where the answer will be, while one is under way; else its fd is -1 */
    struct awaited_table next; /* and the one after it, of the same request */
};

int elf_worker_start(const struct elf_worker_config *config, struct elf_worker **ret)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        return -errno;
    }
    cleanup_(closep) int ours = pair[0];
    cleanup_(closep) int theirs = pair[1];
    const struct elf_worker_settings settings = {
        .uid = config->uid, .gid = config->gid, .memory_bytes = config->memory_bytes};
    if (send(ours, &settings, sizeof settings, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        return -errno;
    }
    struct elf_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL) {
        return -ENOMEM;
    }
    worker->socket_fd = take_fd(ours);
    worker->table.fd = worker->next.fd = -1;
    int r = elf_worker_starter_ask(theirs, &worker->pid);
    if (r == 0) {
        elf_worker_starter_wait(&worker->pid, START_WAIT_MS);
        r = worker->pid < 0 ? worker->pid : 0;
    }
    if (r < 0) {
        worker->pid = PID_GONE;
        elf_worker_free(worker);
        return r;
    }
    *ret = worker;
    return 0;
}

/* Takes the next message, unless there are descriptors in it. Returns its size, 0 also after the
 * last one, or -errno: -EAGAIN when there is none, -EBADMSG for one that stays where it is. */
static ssize_t receive(int socket_fd, void *buffer, size_t size)
{
    struct iovec data = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    ssize_t got = recvmsg(socket_fd, &message, MSG_PEEK | MSG_DONTWAIT);
    if (got >= 0 && (message.msg_flags & MSG_CTRUNC) != 0) {
        return -EBADMSG;
    }
    got = got < 0 ? got : recv(socket_fd, buffer, size, MSG_TRUNC | MSG_DONTWAIT);
    return got < 0 ? -errno : got;
}

/* Whether a message is left in a socket that has been shut down; an empty one looks like the end.
 * So credentials are asked for: every message has some, for which there is no room here. */
static bool has_message(int socket_fd)
{
    const int off = 0;
    const int on = 1;
    struct msghdr message = {.msg_iovlen = 0};
    (void)setsockopt(socket_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    ssize_t got = recvmsg(socket_fd, &message, MSG_PEEK | MSG_DONTWAIT);
    (void)setsockopt(socket_fd, SOL_SOCKET, SO_PASSCRED, &off, sizeof off);
    return got < 0 || (message.msg_flags & MSG_CTRUNC) != 0;
}

/* Closes the socket, unless it holds descriptors. Once it is shut down nothing more comes. */
static void close_socket(struct elf_worker *worker)
{
    struct elf_worker_answer answer;
    bool is_left = true;
    if (worker->socket_fd < 0) {
        return;
    }
    (void)shutdown(worker->socket_fd, SHUT_RDWR);
    for (unsigned i = 0; is_left && i < MESSAGES_MAX; i++) {
        is_left = has_message(worker->socket_fd);
        if (is_left && receive(worker->socket_fd, &answer, sizeof answer) < 0) {
            break;
        }
    }
    if (!is_left) {
        worker->socket_fd = close_fd(worker->socket_fd);
    }
}

int elf_worker_take_socket(struct elf_worker *worker)
{
    return take_fd(worker->socket_fd);
}

bool elf_worker_end(struct elf_worker *worker)
{
    close_socket(worker);
    worker->table.fd = close_fd(worker->table.fd);
    worker->next.fd = close_fd(worker->next.fd);
    elf_worker_starter_wait(&worker->pid, 0);
    if (worker->pid > 0) {
        (void)kill(worker->pid, SIGKILL);
        if (waitpid(worker->pid, &worker->status, WNOHANG) != 0) {
            worker->pid = PID_GONE;
        }
    }
    return worker->pid < 0;
}

enum elf_worker_trouble elf_worker_trouble(const struct elf_worker *worker)
{
    if (WIFSIGNALED(worker->status) && WTERMSIG(worker->status) == SIGSYS) {
        return ELF_WORKER_REFUSED_CALL;
    }
    return WIFEXITED(worker->status) && WEXITSTATUS(worker->status) == ELF_WORKER_EXIT_UNFILTERED
               ? ELF_WORKER_NO_FILTER
               : ELF_WORKER_NO_TROUBLE;
}

struct elf_worker *elf_worker_free(struct elf_worker *worker)
{
    if (worker == NULL) {
        return NULL;
    }
    if (!elf_worker_end(worker)) {
        elf_worker_starter_wait(&worker->pid, END_WAIT_MS);
    }
    if (!elf_worker_end(worker) && worker->pid > 0) {
        cleanup_(closep) int pid_fd = pidfd_open(worker->pid, 0);
        struct pollfd ended = {.fd = pid_fd, .events = POLLIN};
        (void)poll(&ended, 1, END_WAIT_MS);
        (void)elf_worker_end(worker);
    }
    elf_worker_starter_forget(&worker->pid);
    free(worker);
    return NULL;
}

int elf_worker_fd(const struct elf_worker *worker)
{
    return worker->socket_fd;
}

pid_t elf_worker_pid(const struct elf_worker *worker)
{
    elf_worker_starter_wait(&worker->pid, 0);
    return worker->pid > 0 ? worker->pid : 0;
}

/* `next_bytes`: how large the second table may be, of a question for two. */
static int send_question(struct elf_worker *worker, const struct elf_worker_question *question,
                         int fd, int debug_fd, size_t max_bytes, size_t next_bytes)
{
    if (worker->asked) {
        return -EAGAIN;
    }
    bool is_for_two = question->then_symbols != 0;
    cleanup_(closep) int table_fd = memfd_create("table", ELF_WORKER_MEMFD_FLAGS);
    cleanup_(closep) int next_fd = is_for_two ? memfd_create("table", ELF_WORKER_MEMFD_FLAGS) : -1;
    if (table_fd < 0 || (is_for_two && next_fd < 0)) {
        return -EAGAIN;
    }
    const int third_fd = is_for_two ? next_fd : debug_fd;
    const int fds[ELF_WORKER_FILES_MAX] = {fd, table_fd, third_fd};
    ssize_t sent =
        descriptors_send(worker->socket_fd, question, sizeof *question, fds,
                         third_fd < 0 ? ELF_WORKER_FILES_MIN : ELF_WORKER_FILES_MAX, MSG_DONTWAIT);
    if (sent < 0) {
        return sent == -EAGAIN || sent == -EBADF ? (int)sent : -EPIPE;
    }
    worker->sequence++;
    worker->asked = true;
    worker->table = (struct awaited_table){take_fd(table_fd),
                                           (enum elf_worker_request)question->request, max_bytes};
    worker->next = (struct awaited_table){take_fd(next_fd), ELF_WORKER_SYMBOLS, next_bytes};
    return 0;
}

int elf_worker_send(struct elf_worker *worker, enum elf_worker_request request, int fd,
                    int debug_fd, size_t max_bytes)
{
    const struct elf_worker_question question = {.sequence = worker->sequence + 1,
                                                 .request = (uint32_t)request};
    return send_question(worker, &question, fd, debug_fd, max_bytes, 0);
}

static struct elf_worker_question make_question(const struct elf_worker *worker,
                                                enum elf_worker_request request,
                                                const struct elf_worker_file *file)
{
    return (struct elf_worker_question){
        .sequence = worker->sequence + 1,
        .request = (uint32_t)request,
        .link_count = file->link_count,
        .size_bytes = file->size_bytes,
        .changed_s = file->changed_s,
        .changed_ns = file->changed_ns,
    };
}

int elf_worker_send_file(struct elf_worker *worker, enum elf_worker_request request,
                         const struct elf_worker_file *file, size_t max_bytes)
{
    const struct elf_worker_question question = make_question(worker, request, file);
    return send_question(worker, &question, file->fd, file->debug_fd, max_bytes, 0);
}

int elf_worker_send_both(struct elf_worker *worker, const struct elf_worker_file *file,
                         size_t cfi_bytes_max, size_t symbols_bytes_max)
{
    struct elf_worker_question question = make_question(worker, ELF_WORKER_CFI, file);
    question.then_symbols = 1;
    return send_question(worker, &question, file->fd, -1, cfi_bytes_max, symbols_bytes_max);
}

int elf_worker_send_map(struct elf_worker *worker, enum elf_worker_request request, int fd,
                        uint32_t known_bytes, size_t max_bytes)
{
    const struct elf_worker_question question = {
        .sequence = worker->sequence + 1, .request = (uint32_t)request, .known_bytes = known_bytes};
    return send_question(worker, &question, fd, -1, max_bytes, 0);
}

/* The spans come first. */
static int open_jitdump(struct elf_worker_table *table)
{
    size_t used = 0;
    int r = code_spans_open(table->map, table->map_bytes, &table->spans, &used);
    return r < 0 ? r
                 : symbol_table_open((const char *)table->map + used, table->map_bytes - used,
                                     &table->symbols);
}

static int open_table(struct elf_worker_table *table)
{
    switch (table->request) {
    case ELF_WORKER_SYMBOLS:
    case ELF_WORKER_KALLSYMS:
    case ELF_WORKER_PERF_MAP:
        return symbol_table_open(table->map, table->map_bytes, &table->symbols);
    case ELF_WORKER_JITDUMP:
        return open_jitdump(table);
    case ELF_WORKER_CFI:
    case ELF_WORKER_CODE:
        return cfi_table_open(table->map, table->map_bytes, &table->cfi);
    }
    return -EBADMSG;
}

/*
 * Maps the memfd in which the worker says a table is, if it can never change. Not populated: a
 * hole, which would become our memory when it is read, ends the check where it begins.
 */
static int map_table(const struct awaited_table *awaited, uint64_t size_bytes,
                     struct elf_worker_table *ret)
{
    struct stat status;
    if (!seals_are_whole(awaited->fd) || fstat(awaited->fd, &status) < 0 || size_bytes == 0 ||
        size_bytes > awaited->max_bytes || status.st_size != (off_t)size_bytes) {
        return -EBADMSG;
    }
    /* Private: kernels before 6.7 refuse a shared mapping of what is sealed against writing. */
    void *map = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, awaited->fd, 0);
    if (map == MAP_FAILED) {
        return -ENOBUFS;
    }
    struct elf_worker_table table = {
        .map = map, .map_bytes = size_bytes, .request = awaited->request};
    int r = open_table(&table);
    if (r < 0) {
        (void)munmap(map, size_bytes);
        return r;
    }
    *ret = table;
    return 0;
}

/* It is dead, or not to be trusted any more: then it is made to be dead. */
static int give_up(struct elf_worker *worker)
{
    if (worker->pid > 0) {
        (void)kill(worker->pid, SIGKILL);
    }
    return -EPIPE;
}

int elf_worker_receive(struct elf_worker *worker, struct elf_worker_table *ret)
{
    struct elf_worker_answer answer;
    ssize_t got = receive(worker->socket_fd, &answer, sizeof answer);
    if (got == -EAGAIN) {
        return -EAGAIN;
    }
    if (got != (ssize_t)sizeof answer || !worker->asked || answer.sequence != worker->sequence) {
        return give_up(worker);
    }
    cleanup_(closep) int fd = take_fd(worker->table.fd);
    const struct awaited_table awaited = {fd, worker->table.request, worker->table.max_bytes};
    worker->asked = worker->next.fd >= 0;
    worker->table = worker->next;
    worker->next.fd = -1;
    if (answer.error != 0) {
        bool plausible = answer.error < 0 && answer.error >= -ERRNO_MAX &&
                         answer.error != -EAGAIN && answer.error != -EPIPE;
        return plausible ? answer.error : give_up(worker);
    }
    int r = map_table(&awaited, answer.size_bytes, ret);
    return r == 0 || r == -ENOBUFS ? r : give_up(worker);
}
