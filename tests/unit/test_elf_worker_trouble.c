/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the daemon's side makes of trouble that is no file's doing: a worker that this machine does
 * not let work, and a table for which there is no memory. And of one that was taken over, and sends
 * back what it was handed: a file that cannot be closed. This program is its own worker, honest or
 * one that ends as it is told.
 */
#include "elf_worker.h"
#include "elf_worker_wire.h"
#include "hanging_fuse.h"
#include "unit_test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS     30000
#define FIRST_UID   70000 /* of a worker that ends */
#define UID_OF(end) ((uid_t)(FIRST_UID + (end)))
#define LIAR_UID    80000 /* of a worker that sends back what it was sent */
#define LIMIT_S     10    /* for what takes no time */

/* How a worker ends, and what would end the next one too. */
static const struct {
    int signal; /* 0: it exits */
    int status;
    enum elf_worker_trouble trouble;
} ends[] = {
    {SIGSYS, 0, ELF_WORKER_REFUSED_CALL},
    {0, ELF_WORKER_EXIT_UNFILTERED, ELF_WORKER_NO_FILTER},
    {0, EXIT_FAILURE, ELF_WORKER_NO_TROUBLE},
    {SIGKILL, 0, ELF_WORKER_NO_TROUBLE},
};

static _Noreturn void end_as(size_t end)
{
    if (ends[end].signal != 0) {
        (void)raise(ends[end].signal);
    }
    _exit(ends[end].status);
}

static struct elf_worker *start(uid_t uid)
{
    const struct elf_worker_config config = {.uid = uid, .gid = (gid_t)-1};
    struct elf_worker *worker = NULL;
    assert_int_equal(elf_worker_start(&config, &worker), 0);
    return worker;
}

static void wait_for_worker(const struct elf_worker *worker)
{
    struct pollfd readable = {.fd = elf_worker_fd(worker), .events = POLLIN};
    assert_int_equal(poll(&readable, 1, WAIT_MS), 1);
}

TEST(tells_what_would_end_the_next_one_too)
{
    for (size_t end = 0; end < COUNT_OF(ends); end++) {
        struct elf_worker *worker = start(UID_OF(end));
        struct elf_worker_table table;
        wait_for_worker(worker);
        assert_int_equal(elf_worker_receive(worker, &table), -EPIPE);
        for (int tries = 0; !elf_worker_end(worker) && tries < 1000; tries++) {
            (void)usleep(1000);
        }
        assert_int_equal(elf_worker_trouble(worker), ends[end].trouble);
        elf_worker_free(worker);
    }
}

TEST(has_no_room_for_a_table_and_goes_on)
{
    struct elf_worker *worker = start((uid_t)-1);
    struct elf_worker_table table = {.map = NULL};
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (int expected = -ENOBUFS; expected <= 0; expected += ENOBUFS) {
        struct rlimit limit;
        assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
        const struct rlimit none = {.rlim_cur = 1, .rlim_max = limit.rlim_max};
        assert_int_equal(
            elf_worker_send(worker, ELF_WORKER_SYMBOLS, fd, -1, SYMBOL_TABLE_BYTES_MAX), 0);
        wait_for_worker(worker);
        assert_int_equal(setrlimit(RLIMIT_AS, expected < 0 ? &none : &limit), 0);
        int r = elf_worker_receive(worker, &table);
        assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
        assert_int_equal(r, expected);
    }
    (void)munmap(table.map, table.map_bytes);
    (void)close(fd);
    elf_worker_free(worker);
}

/* Sends one question's files back, again and again as fast as it can. Two empty messages come
 * first: at one of them a reader could take the socket for exhausted. */
static _Noreturn void send_back(void)
{
    char settings[64];
    struct elf_worker_question question;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(ELF_WORKER_FILES_MAX * sizeof(int))];
    } control;
    struct iovec data = {.iov_base = &question, .iov_len = sizeof question};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    (void)recv(3, settings, sizeof settings, 0);
    if (recvmsg(3, &message, 0) < 0) {
        _exit(1);
    }
    struct elf_worker_answer answer = {.sequence = question.sequence, .size_bytes = 4096};
    data = (struct iovec){.iov_base = &answer, .iov_len = sizeof answer};
    (void)send(3, "", 0, MSG_NOSIGNAL);
    (void)send(3, "", 0, MSG_NOSIGNAL);
    while (sendmsg(3, &message, MSG_NOSIGNAL) >= 0) {
    }
    _exit(0);
}

/* In a process of its own, since what must not happen is that it never comes back. */
static _Noreturn void be_sent_back(const char *path)
{
    struct elf_worker_table table = {.map = NULL};
    const struct elf_worker_config config = {.uid = LIAR_UID, .gid = (gid_t)-1};
    struct elf_worker *worker = NULL;
    int started = elf_worker_start(&config, &worker);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    /* Another one, whose process is not to begin with this file either. */
    if (fd < 0 || started < 0 || elf_worker_start(&config, &(struct elf_worker *){NULL}) < 0 ||
        elf_worker_send(worker, ELF_WORKER_SYMBOLS, fd, -1, SYMBOL_TABLE_BYTES_MAX) < 0) {
        _exit(1);
    }
    int queued_bytes = 0; /* of messages that are not empty: those with the files */
    for (unsigned i = 0; queued_bytes == 0 && i < WAIT_MS; i++) {
        (void)usleep(1000);
        (void)ioctl(elf_worker_fd(worker), FIONREAD, &queued_bytes);
    }
    int r = elf_worker_receive(worker, &table);
    /* It holds the file, and so does this process: both end when the filesystem does. */
    (void)elf_worker_end(worker);
    bool taken = elf_worker_take_socket(worker) >= 0;
    (void)kill(getppid(), r == -EPIPE && taken ? SIGUSR1 : SIGUSR2);
    _exit(0);
}

TEST(closes_nothing_that_a_worker_sends)
{
    static struct fuse fuse;
    sigset_t verdicts;
    if (!mount_fuse(&fuse, true)) {
        skip();
    }
    (void)sigemptyset(&verdicts);
    (void)sigaddset(&verdicts, SIGUSR1);
    (void)sigaddset(&verdicts, SIGUSR2);
    (void)sigprocmask(SIG_BLOCK, &verdicts, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        be_sent_back(fuse.file);
    }
    const struct timespec limit = {.tv_sec = LIMIT_S};
    int verdict = sigtimedwait(&verdicts, NULL, &limit);
    unmount_fuse(&fuse);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    assert_int_equal(verdict, SIGUSR1);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], ELF_WORKER_ARGUMENT) == 0) {
        struct elf_worker_settings settings = {0};
        (void)recv(3, &settings, sizeof settings, MSG_PEEK);
        if (settings.uid >= UID_OF(0) && settings.uid < UID_OF(COUNT_OF(ends))) {
            end_as(settings.uid - FIRST_UID);
        }
        if (settings.uid == LIAR_UID) {
            send_back();
        }
        elf_worker_child(3);
    }
    return unit_test_run();
}
