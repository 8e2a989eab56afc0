/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The daemon's side of the worker: starts it, sends a question, takes the answer, ends it. Whatever
 * comes from the worker may have been written by someone who took it over with a hostile file, so
 * an answer counts only if it is the one that was asked for, carries a sealed file of our kind of
 * memory, and holds a table that passes its check. Anything else ends the worker and
 * looks to the caller as if it had died.
 *
 * Nothing here blocks but elf_worker_free(), which waits a moment for the dead process. Belongs to
 * one thread, and that one must live as long as the worker: it is told to die with it.
 */
#include "elf_worker.h"

#include "cleanup.h"
#include "elf_worker_wire.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define SELF            "/proc/self/exe"
#define CHILD_SOCKET_FD 3
#define SEALS           (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define END_WAIT_MS     1000
#define ERRNO_MAX       4095

struct elf_worker {
    int socket_fd;
    pid_t pid;  /* 0 once it has been reaped */
    int status; /* as waitpid() told it */
    uint64_t sequence;
    bool asked;
    enum elf_worker_request request; /* what was asked for, and how large it may be */
    size_t max_bytes;
};

static int fill_actions(posix_spawn_file_actions_t *actions, int null_fd, int socket_fd)
{
    int r = 0;
    for (int fd = 0; fd < CHILD_SOCKET_FD && r == 0; fd++) {
        r = posix_spawn_file_actions_adddup2(actions, null_fd, fd);
    }
    if (r == 0) {
        r = posix_spawn_file_actions_adddup2(actions, socket_fd, CHILD_SOCKET_FD);
    }
    if (r == 0) {
        r = posix_spawn_file_actions_addclosefrom_np(actions, CHILD_SOCKET_FD + 1);
    }
    return -r;
}

/* No signal of ours is blocked or ignored in the worker, and none of the terminal reaches it. */
static int fill_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int r = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                     POSIX_SPAWN_SETSID);
    if (r == 0) {
        r = posix_spawnattr_setsigmask(attributes, &none);
    }
    if (r == 0) {
        r = posix_spawnattr_setsigdefault(attributes, &all);
    }
    return -r;
}

/*
 * This program, by its path: under valgrind /proc/self/exe is the tool, and only what the link says
 * is us. A file that has been replaced since says so by a path that is not there; then the link
 * itself is right.
 */
static void find_program(char ret[PATH_MAX])
{
    ssize_t bytes = readlink(SELF, ret, PATH_MAX - 1);
    ret[bytes > 0 ? bytes : 0] = '\0';
    if (bytes <= 0 || access(ret, X_OK) != 0) {
        memcpy(ret, SELF, sizeof SELF);
    }
}

/* Executes this program anew with `socket_fd` (borrowed) as its only descriptor. */
static int spawn(int socket_fd, pid_t *ret_pid)
{
    static char name[] = "cpu-profilerd";
    static char argument[] = ELF_WORKER_ARGUMENT;
    char *const argv[] = {name, argument, NULL};
    char *const environment[] = {NULL};
    cleanup_(closep) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    /* Above what the child's actions overwrite, whatever is open in this process. */
    cleanup_(closep) int high_null_fd =
        null_fd < 0 ? -1 : fcntl(null_fd, F_DUPFD_CLOEXEC, CHILD_SOCKET_FD + 1);
    cleanup_(closep) int high_socket_fd = fcntl(socket_fd, F_DUPFD_CLOEXEC, CHILD_SOCKET_FD + 1);
    if (high_null_fd < 0 || high_socket_fd < 0) {
        return -errno;
    }

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int r = -posix_spawn_file_actions_init(&actions);
    if (r < 0) {
        return r;
    }
    r = -posix_spawnattr_init(&attributes);
    if (r == 0) {
        r = fill_actions(&actions, high_null_fd, high_socket_fd);
        if (r == 0) {
            r = fill_attributes(&attributes);
        }
        if (r == 0) {
            char program[PATH_MAX];
            find_program(program);
            r = -posix_spawn(ret_pid, program, &actions, &attributes, argv, environment);
        }
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return r;
}

int elf_worker_start(const struct elf_worker_config *config, struct elf_worker **ret)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        return -errno;
    }
    cleanup_(closep) int ours = pair[0];
    cleanup_(closep) int theirs = pair[1];
    const struct elf_worker_settings settings = {.uid = config->uid, .gid = config->gid};
    if (send(ours, &settings, sizeof settings, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        return -errno;
    }
    struct elf_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL) {
        return -ENOMEM;
    }
    worker->socket_fd = take_fd(ours);
    int r = spawn(theirs, &worker->pid);
    if (r < 0) {
        elf_worker_free(worker);
        return r;
    }
    *ret = worker;
    return 0;
}

bool elf_worker_end(struct elf_worker *worker)
{
    worker->socket_fd = close_fd(worker->socket_fd);
    if (worker->pid > 0) {
        (void)kill(worker->pid, SIGKILL);
        if (waitpid(worker->pid, &worker->status, WNOHANG) != 0) {
            worker->pid = 0;
        }
    }
    return worker->pid == 0;
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
        cleanup_(closep) int pid_fd = pidfd_open(worker->pid, 0);
        struct pollfd ended = {.fd = pid_fd, .events = POLLIN};
        (void)poll(&ended, 1, END_WAIT_MS);
        (void)elf_worker_end(worker);
    }
    free(worker);
    return NULL;
}

int elf_worker_fd(const struct elf_worker *worker)
{
    return worker->socket_fd;
}

pid_t elf_worker_pid(const struct elf_worker *worker)
{
    return worker->pid;
}

int elf_worker_send(struct elf_worker *worker, enum elf_worker_request request, int fd,
                    int debug_fd, size_t max_bytes)
{
    if (worker->asked) {
        return -EAGAIN;
    }
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(ELF_WORKER_FILES_MAX * sizeof(int))];
    } control = {.bytes = {0}};
    const int fds[ELF_WORKER_FILES_MAX] = {fd, debug_fd};
    size_t fds_bytes = (debug_fd < 0 ? 1 : 2) * sizeof *fds;
    struct elf_worker_question question = {.sequence = worker->sequence + 1,
                                           .request = (uint32_t)request};
    struct iovec data = {.iov_base = &question, .iov_len = sizeof question};
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = CMSG_SPACE(fds_bytes),
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds_bytes);
    memcpy(CMSG_DATA(header), fds, fds_bytes);
    if (sendmsg(worker->socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        return errno == EAGAIN || errno == EBADF ? -errno : -EPIPE;
    }
    worker->sequence++;
    worker->asked = true;
    worker->request = request;
    worker->max_bytes = max_bytes;
    return 0;
}

/* Closes what a message carried, however much the sender put into it, but for one (returned). */
static int take_descriptor(struct msghdr *message)
{
    cleanup_(closep) int taken = -1;
    size_t count = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        for (size_t at = CMSG_LEN(0); at + sizeof taken <= header->cmsg_len; at += sizeof taken) {
            taken = close_fd(taken);
            memcpy(&taken, (unsigned char *)header + at, sizeof taken);
            count++;
        }
    }
    return count == 1 && (message->msg_flags & MSG_CTRUNC) == 0 ? take_fd(taken) : -1;
}

static int open_table(struct elf_worker_table *table)
{
    switch (table->request) {
    case ELF_WORKER_SYMBOLS:
    case ELF_WORKER_KALLSYMS:
    case ELF_WORKER_PERF_MAP:
        return symbol_table_open(table->map, table->map_bytes, &table->symbols);
    case ELF_WORKER_CFI:
        return cfi_table_open(table->map, table->map_bytes, &table->cfi);
    }
    return -EBADMSG;
}

/*
 * Maps a file that the worker says is a table (borrowed), if it is one and can never change. Not
 * populated: a hole, which would become our memory when it is read, ends the check where it begins.
 */
static int map_table(const struct elf_worker *worker, int fd, uint64_t size_bytes,
                     struct elf_worker_table *ret)
{
    struct stat status;
    struct statfs filesystem;
    int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &status) < 0 ||
        fstatfs(fd, &filesystem) < 0 || filesystem.f_type != TMPFS_MAGIC || size_bytes == 0 ||
        size_bytes > worker->max_bytes || status.st_size != (off_t)size_bytes) {
        return -EBADMSG;
    }
    /* Private: kernels before 6.7 refuse a shared mapping of what is sealed against writing. */
    void *map = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        return -ENOBUFS;
    }
    struct elf_worker_table table = {
        .map = map, .map_bytes = size_bytes, .request = worker->request};
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
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct elf_worker_answer answer;
    struct iovec data = {.iov_base = &answer, .iov_len = sizeof answer};
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    ssize_t got = recvmsg(worker->socket_fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0) {
        return errno == EAGAIN ? -EAGAIN : give_up(worker);
    }
    cleanup_(closep) int fd = take_descriptor(&message);
    if (got != (ssize_t)sizeof answer || (message.msg_flags & MSG_TRUNC) != 0 || !worker->asked ||
        answer.sequence != worker->sequence) {
        return give_up(worker);
    }
    worker->asked = false;
    if (answer.error != 0) {
        bool plausible = answer.error < 0 && answer.error >= -ERRNO_MAX &&
                         answer.error != -EAGAIN && answer.error != -EPIPE && fd < 0;
        return plausible ? answer.error : give_up(worker);
    }
    int r = map_table(worker, fd, answer.size_bytes, ret);
    return r == 0 || r == -ENOBUFS ? r : give_up(worker);
}
