/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Processes that begin late, or not at all: respawn() is this file's own, and makes each process
 * when a test lets it.
 */
#include "elf_worker_starter.h"

#include "elf_worker.h"
#include "respawn.h"
#include "unit_test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_MS 60000

static sem_t may_begin;
static sem_t has_begun;
static int refusal;  /* of the next process; 0: none */
static bool is_last; /* the thread that is to make the next process ends instead */
static pid_t begun_pid;
static int socket_fd; /* of a worker to come */

int respawn(const char *name, const char *argument, const int *fds, size_t fd_count, pid_t *ret_pid)
{
    (void)name, (void)argument, (void)fds, (void)fd_count;
    while (sem_wait(&may_begin) < 0) {
    }
    if (is_last) {
        (void)sem_post(&has_begun);
        pthread_exit(NULL);
    }
    const int r = refusal; /* which the next one has as soon as this one is told of */
    pid_t pid = r == 0 ? fork() : 0;
    if (pid == 0 && r == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            (void)pause();
        }
    }
    *ret_pid = begun_pid = pid;
    (void)sem_post(&has_begun);
    return r;
}

static void let_begin(int refused)
{
    refusal = refused;
    (void)sem_post(&may_begin);
    while (sem_wait(&has_begun) < 0) {
    }
}

/* That nothing is left of it but what it died of. */
static void expect_killed(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(answers_when_the_process_is_there)
{
    pid_t first = -1;
    pid_t second = -1;
    assert_int_equal(elf_worker_starter_ask(socket_fd, &first), 0);
    assert_int_equal(elf_worker_starter_ask(socket_fd, &second), 0);
    elf_worker_starter_wait(&second, 1);
    assert_int_equal(first, 0);
    assert_int_equal(second, 0);
    let_begin(0);
    elf_worker_starter_wait(&first, LONG_MS);
    assert_int_equal(first, begun_pid);
    assert_int_equal(second, 0);
    let_begin(-EMFILE);
    elf_worker_starter_wait(&second, LONG_MS);
    assert_int_equal(second, -EMFILE);
    assert_int_equal(kill(first, SIGKILL), 0);
    expect_killed(first);

    pid_t all[ELF_WORKER_STARTS_MAX + 1];
    for (size_t i = 0; i < ELF_WORKER_STARTS_MAX; i++) {
        assert_int_equal(elf_worker_starter_ask(socket_fd, &all[i]), 0);
    }
    assert_int_equal(elf_worker_starter_ask(socket_fd, &all[ELF_WORKER_STARTS_MAX]), -EAGAIN);
    for (size_t i = 0; i < ELF_WORKER_STARTS_MAX; i++) {
        let_begin(-EMFILE);
        elf_worker_starter_wait(&all[i], LONG_MS);
        assert_int_equal(all[i], -EMFILE);
    }
}

TEST(kills_what_is_forgotten)
{
    pid_t forgotten = -1;
    pid_t next = -1;
    assert_int_equal(elf_worker_starter_ask(socket_fd, &forgotten), 0);
    assert_int_equal(elf_worker_starter_ask(socket_fd, &next), 0);
    elf_worker_starter_forget(&forgotten);
    let_begin(0);
    pid_t pid = begun_pid;
    let_begin(-EMFILE);
    elf_worker_starter_wait(&next, LONG_MS);
    assert_int_equal(forgotten, 0);
    expect_killed(pid);
}

static void expect_refused(int refused)
{
    pid_t pid = -1;
    assert_int_equal(elf_worker_starter_ask(socket_fd, &pid), 0);
    let_begin(refused);
    elf_worker_starter_wait(&pid, LONG_MS);
    assert_int_equal(pid, refused);
}

TEST(a_thread_that_ends_fails_its_requests_and_another_one_goes_on)
{
    pid_t asked[2] = {-1, -1};
    expect_refused(-EMFILE);
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        assert_int_equal(elf_worker_starter_ask(socket_fd, &asked[i]), 0);
    }
    is_last = true;
    let_begin(0);
    elf_worker_starter_wait(&asked[0], LONG_MS);
    is_last = false;
    assert_int_equal(asked[0], -EPIPE);
    assert_int_equal(asked[1], -EPIPE);
    expect_refused(-EAGAIN);
}

/* Then none is asked for: respawn() would wait for let_begin(). */
TEST(refuses_where_the_thread_has_no_room_for_a_descriptor)
{
    struct rlimit before;
    pid_t pid = -1;
    expect_refused(-EAGAIN);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = {.rlim_cur = RESPAWN_FIRST_FD, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int r = elf_worker_starter_ask(socket_fd, &pid);
    elf_worker_starter_wait(&pid, LONG_MS);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(r, 0);
    assert_int_equal(pid, -EMFILE);
    expect_refused(-EAGAIN);
}

/* The daemon goes on meanwhile, and what it sends waits. */
TEST(a_worker_that_begins_late_is_used_and_ended)
{
    const struct elf_worker_config config = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    struct elf_worker_table table = {.map = NULL};
    struct elf_worker *worker = NULL;
    assert_int_equal(elf_worker_start(&config, &worker), 0);
    assert_int_equal(elf_worker_pid(worker), 0);
    assert_int_equal(
        elf_worker_send(worker, ELF_WORKER_SYMBOLS, STDIN_FILENO, -1, SYMBOL_TABLE_BYTES_MAX), 0);
    assert_int_equal(elf_worker_receive(worker, &table), -EAGAIN);
    assert_false(elf_worker_end(worker));
    let_begin(0);
    while (!elf_worker_end(worker)) {
        (void)usleep(1000);
    }
    assert_int_equal(kill(begun_pid, 0), -1);
    elf_worker_free(worker);

    /* One whose process never comes is one that has died. */
    assert_int_equal(elf_worker_start(&config, &worker), 0);
    let_begin(-EAGAIN);
    int r = 0;
    while ((r = elf_worker_receive(worker, &table)) == -EAGAIN) {
        (void)usleep(1000);
    }
    assert_int_equal(r, -EPIPE);
    assert_true(elf_worker_end(worker));
    elf_worker_free(worker);
}

int main(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        return 1;
    }
    socket_fd = pair[0];
    (void)sem_init(&may_begin, 0, 0);
    (void)sem_init(&has_begun, 0, 0);
    return unit_test_run();
}
