/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bounds of the opener, and a filesystem that never answers: one of the test's own making,
 * whose requests nobody serves once its single file is known. That part needs root and FUSE.
 */
#include "opener.h"

#include "hanging_fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 10000
#define HANG_MS 200 /* where something is to hang */
#define HANG_NS (HANG_MS * UINT64_C(1000000))

static struct opener_answer wait_for_answer(struct opener *opener)
{
    struct opener_answer answer = {.userdata = NULL};
    struct pollfd readable = {.fd = opener_fd(opener), .events = POLLIN};
    for (int ms = 0; !opener_next(opener, &answer); ms += 50) {
        assert_true(ms < WAIT_MS);
        (void)poll(&readable, 1, 50);
    }
    return answer;
}

static int submit(struct opener *opener, const struct module_query *query,
                  enum module_urgency urgency)
{
    const struct opener_request request = {
        .query = query, .urgency = urgency, .userdata = (void *)(uintptr_t)query};
    return opener_submit(opener, &request);
}

static void close_opener(struct opener *opener)
{
    struct opener_answer answer;
    opener_stop(opener);
    while (opener_next(opener, &answer)) {
        if (answer.failure == MODULE_FAILURE_NONE) {
            opener_release(opener, answer.file.fd, answer.uid);
        }
    }
    opener_free(opener);
}

/* A file that a process which is gone (no pid is that high) had mapped. */
static struct module_query query_of(const char *path)
{
    struct stat status = {0};
    (void)stat(path, &status);
    return (struct module_query){
        .pid = INT32_MAX,
        .parent_pid = INT32_MAX,
        .path = path,
        .device_major = major(status.st_dev),
        .device_minor = minor(status.st_dev),
        .inode = status.st_ino,
    };
}

static void opens_no_more_than_a_share_for_one_uid(void **state)
{
    (void)state;
    struct opener *opener = NULL;
    struct module_query query = query_of("/bin/true");
    int files[OPENER_UID_FILES_MAX];
    int wanted = OPENER_UID_FILES_MAX + 10;
    struct opener_answer answer;
    assert_int_equal(opener_new(OPENER_HANG_NS, &opener), 0);
    for (int i = 0; i < wanted; i++) {
        assert_int_equal(submit(opener, &query, MODULE_WANTED), 0);
    }
    for (int i = 0; i < OPENER_UID_FILES_MAX; i++) {
        answer = wait_for_answer(opener);
        assert_int_equal(answer.failure, MODULE_FAILURE_NONE);
        assert_int_equal(answer.uid, (uid_t)-1);
        files[i] = answer.file.fd;
    }
    (void)poll(NULL, 0, 50);
    assert_false(opener_next(opener, &answer));
    /* Another uid's do not wait behind them. */
    struct module_query own = query;
    own.pid = getpid();
    assert_int_equal(submit(opener, &own, MODULE_WANTED), 0);
    answer = wait_for_answer(opener);
    assert_ptr_equal(answer.userdata, &own);
    assert_int_equal(answer.uid, getuid());
    opener_release(opener, answer.file.fd, answer.uid);

    /* Each one that is released lets one more in. */
    for (int i = 0; i < wanted - OPENER_UID_FILES_MAX; i++) {
        opener_release(opener, files[i], (uid_t)-1);
        files[i] = wait_for_answer(opener).file.fd;
    }
    for (int i = 0; i < OPENER_UID_FILES_MAX; i++) {
        opener_release(opener, files[i], (uid_t)-1);
    }
    close_opener(opener);
}

/* Stops the threads that work for gone processes, so that what is submitted waits. */
static void fill_files(struct opener *opener, const struct module_query *query, int *files)
{
    for (int i = 0; i < OPENER_UID_FILES_MAX; i++) {
        assert_int_equal(submit(opener, query, MODULE_WANTED), 0);
    }
    for (int i = 0; i < OPENER_UID_FILES_MAX; i++) {
        files[i] = wait_for_answer(opener).file.fd;
    }
}

static void release_files(struct opener *opener, const int *files)
{
    for (int i = 0; i < OPENER_UID_FILES_MAX; i++) {
        opener_release(opener, files[i], (uid_t)-1);
    }
}

static void leaves_half_of_its_queue_to_others(void **state)
{
    (void)state;
    struct opener *opener = NULL;
    struct module_query query = query_of("/bin/true");
    struct module_query own = query;
    int files[OPENER_UID_FILES_MAX];
    own.pid = getpid();
    assert_int_equal(opener_new(OPENER_HANG_NS, &opener), 0);
    fill_files(opener, &query, files);
    for (uint64_t i = 0; i < OPENER_REQUESTS_MAX / 2; i++) {
        assert_int_equal(submit(opener, &query, MODULE_WANTED), 0);
    }
    assert_int_equal(submit(opener, &query, MODULE_WANTED), -EAGAIN);

    /* Another uid's are taken, and done at once. */
    assert_int_equal(submit(opener, &own, MODULE_WANTED), 0);
    struct opener_answer answer = wait_for_answer(opener);
    assert_ptr_equal(answer.userdata, &own);
    opener_release(opener, answer.file.fd, answer.uid);
    release_files(opener, files);
    close_opener(opener);
}

static void counts_a_long_path_as_several_requests(void **state)
{
    (void)state;
    struct opener *opener = NULL;
    static char path[4000];
    struct module_query query = query_of("/bin/true");
    struct module_query long_query = query;
    int files[OPENER_UID_FILES_MAX];
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    long_query.path = path;
    uint64_t weight = 1 + (sizeof path - 1) / OPENER_REQUEST_BYTES;
    assert_int_equal(opener_new(OPENER_HANG_NS, &opener), 0);
    fill_files(opener, &query, files);
    for (uint64_t i = 0; i < OPENER_REQUESTS_MAX / 2 / weight; i++) {
        assert_int_equal(submit(opener, &long_query, MODULE_WANTED), 0);
    }
    assert_int_equal(submit(opener, &long_query, MODULE_WANTED), -EAGAIN);
    release_files(opener, files);
    close_opener(opener);
}

static void opens_what_is_wanted_before_what_may_be(void **state)
{
    (void)state;
    struct opener *opener = NULL;
    struct module_query query = query_of("/bin/true");
    struct module_query early = query;
    struct module_query wanted = query;
    int files[OPENER_UID_FILES_MAX];
    assert_int_equal(opener_new(OPENER_HANG_NS, &opener), 0);
    fill_files(opener, &query, files);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(submit(opener, &early, MODULE_PREFETCH), 0);
    }
    assert_int_equal(submit(opener, &wanted, MODULE_WANTED), 0);
    opener_release(opener, files[0], (uid_t)-1);
    struct opener_answer answer = wait_for_answer(opener);
    assert_ptr_equal(answer.userdata, &wanted);
    files[0] = answer.file.fd;
    release_files(opener, files);
    close_opener(opener);
}

/* A process of that uid, which has mapped nothing of what is asked for. */
static pid_t fork_as(uid_t uid)
{
    int pipe_fds[2];
    char byte = 0;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (setresuid(uid, uid, uid) == 0 && write(pipe_fds[1], "x", 1) == 1) {
            (void)pause();
        }
        _exit(1);
    }
    assert_true(pid > 0);
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
    return pid;
}

static void gives_up_a_filesystem_that_does_not_answer(void **state)
{
    (void)state;
    static struct fuse fuse;
    struct opener *opener = NULL;
    if (!mount_fuse(&fuse, false)) {
        skip();
    }
    struct module_query hanging = query_of(fuse.file);
    struct module_query fine = query_of("/bin/true");
    assert_int_equal(opener_new(HANG_NS, &opener), 0);
    assert_int_equal(submit(opener, &hanging, MODULE_WANTED), 0);
    assert_int_equal(submit(opener, &fine, MODULE_WANTED), 0);
    struct opener_answer answer = wait_for_answer(opener);
    assert_ptr_equal(answer.userdata, &fine);
    opener_release(opener, answer.file.fd, answer.uid);
    answer = wait_for_answer(opener);
    assert_ptr_equal(answer.userdata, &hanging);
    assert_int_equal(answer.failure, MODULE_FAILURE_NOT_FOUND);
    assert_int_equal(opener_hang_count(opener), 1);

    /* It is not touched again, so these fail at once, and all threads but one go on. */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(submit(opener, &hanging, MODULE_WANTED), 0);
        answer = wait_for_answer(opener);
        assert_int_equal(answer.failure, MODULE_FAILURE_LIMIT);
    }
    assert_int_equal(opener_hang_count(opener), 1);
    assert_int_equal(submit(opener, &fine, MODULE_WANTED), 0);
    answer = wait_for_answer(opener);
    assert_int_equal(answer.failure, MODULE_FAILURE_NONE);
    opener_release(opener, answer.file.fd, answer.uid);

    /* One thread still hangs; neither stopping nor freeing waits for it. */
    close_opener(opener);
    unmount_fuse(&fuse);
}

/* Requests that come together must not take all threads before the first is given up. */
static void leaves_threads_to_others_while_a_uid_hangs(void **state)
{
    (void)state;
    static struct fuse fuse;
    struct opener *opener = NULL;
    if (!mount_fuse(&fuse, false)) {
        skip();
    }
    struct module_query hanging = query_of(fuse.file);
    struct module_query fine = query_of("/bin/true");
    fine.pid = getpid();
    assert_int_equal(opener_new(HANG_NS, &opener), 0);
    for (int i = 0; i < 2 * OPENER_THREADS; i++) {
        assert_int_equal(submit(opener, &hanging, MODULE_WANTED), 0);
    }
    (void)poll(NULL, 0, HANG_MS / 4);
    assert_int_equal(submit(opener, &fine, MODULE_WANTED), 0);
    struct opener_answer answer = wait_for_answer(opener);
    assert_ptr_equal(answer.userdata, &fine);
    opener_release(opener, answer.file.fd, answer.uid);
    for (int i = 0; i < 2 * OPENER_THREADS; i++) {
        answer = wait_for_answer(opener);
        assert_ptr_equal(answer.userdata, &hanging);
        assert_int_not_equal(answer.failure, MODULE_FAILURE_NONE);
    }
    assert_int_equal(opener_hang_count(opener), OPENER_UID_THREADS_MAX);
    close_opener(opener);
    unmount_fuse(&fuse);
}

#define ACCOUNTS  (OPENER_THREADS_MAX / OPENER_UID_THREADS_MAX + 1)
#define FIRST_UID 20000

/* Each account takes what it may, and together they take every thread that may hang. */
static void opens_local_files_while_everything_else_hangs(void **state)
{
    (void)state;
    static struct fuse fuse;
    static struct module_query hanging[ACCOUNTS];
    struct opener *opener = NULL;
    if (!mount_fuse(&fuse, false)) {
        skip();
    }
    struct module_query fine = query_of("/bin/true");
    fine.pid = getpid();
    assert_int_equal(opener_new(5 * HANG_NS, &opener), 0);
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        hanging[i] = query_of(fuse.file);
        hanging[i].pid = fork_as(FIRST_UID + i);
        for (int j = 0; j < 2 * OPENER_UID_THREADS_MAX; j++) {
            assert_int_equal(submit(opener, &hanging[i], MODULE_WANTED), 0);
        }
    }
    /* For each of these, one more that is fine. */
    for (unsigned i = 0; i < 2 * ACCOUNTS * 2 * OPENER_UID_THREADS_MAX; i++) {
        struct opener_answer answer = wait_for_answer(opener);
        if (answer.userdata == &fine) {
            assert_int_equal(answer.failure, MODULE_FAILURE_NONE);
            assert_true(answer.file.is_local);
            opener_release(opener, answer.file.fd, answer.uid);
        } else {
            assert_int_not_equal(answer.failure, MODULE_FAILURE_NONE);
            assert_int_equal(submit(opener, &fine, MODULE_WANTED), 0);
        }
    }
    assert_in_range(opener_hang_count(opener), OPENER_UID_THREADS_MAX, OPENER_THREADS_MAX - 1);
    close_opener(opener);
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        (void)kill(hanging[i].pid, SIGKILL);
        (void)waitpid(hanging[i].pid, NULL, 0);
    }
    unmount_fuse(&fuse);
}

/* A path on the way to another filesystem hangs where nothing says so. */
static void walks_no_path_over_a_filesystem_that_hangs(void **state)
{
    (void)state;
    static struct fuse fuse;
    struct opener *opener = NULL;
    char path[128];
    if (!mount_fuse(&fuse, false)) {
        skip();
    }
    struct module_query hanging = query_of(fuse.file);
    struct module_query across = query_of("/bin/true");
    (void)snprintf(path, sizeof path, "%s/x/y", fuse.folder);
    across.path = path;
    assert_int_equal(opener_new(HANG_NS, &opener), 0);
    assert_int_equal(submit(opener, &hanging, MODULE_WANTED), 0);
    assert_int_equal(wait_for_answer(opener).failure, MODULE_FAILURE_NOT_FOUND);
    assert_int_equal(opener_hang_count(opener), 1);
    (void)kill(fuse.server, SIGSTOP); /* now lookups hang as well */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(submit(opener, &across, MODULE_WANTED), 0);
        assert_int_equal(wait_for_answer(opener).failure, MODULE_FAILURE_LIMIT);
    }
    assert_int_equal(opener_hang_count(opener), 1);
    close_opener(opener);
    unmount_fuse(&fuse);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void ends_although_a_file_cannot_be_closed(void **state)
{
    (void)state;
    static struct fuse fuse;
    struct opener *opener = NULL;
    if (!mount_fuse(&fuse, true)) {
        skip();
    }
    struct module_query hanging = query_of(fuse.file);
    assert_int_equal(opener_new(HANG_NS, &opener), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(submit(opener, &hanging, MODULE_WANTED), 0);
    }
    struct opener_answer answers[10];
    for (int i = 0; i < 10; i++) {
        answers[i] = wait_for_answer(opener);
        assert_int_equal(answers[i].failure, MODULE_FAILURE_NONE);
    }
    uint64_t begin_ms = now_ms();
    for (int i = 0; i < 10; i++) {
        opener_release(opener, answers[i].file.fd, answers[i].uid);
    }
    /* The end of the threads is waited for, and then no more: the filesystem never answers. */
    close_opener(opener);
    assert_true(now_ms() - begin_ms >= HANG_MS);
    unmount_fuse(&fuse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_no_more_than_a_share_for_one_uid),
        cmocka_unit_test(leaves_half_of_its_queue_to_others),
        cmocka_unit_test(counts_a_long_path_as_several_requests),
        cmocka_unit_test(opens_what_is_wanted_before_what_may_be),
        cmocka_unit_test(gives_up_a_filesystem_that_does_not_answer),
        cmocka_unit_test(leaves_threads_to_others_while_a_uid_hangs),
        cmocka_unit_test(opens_local_files_while_everything_else_hangs),
        cmocka_unit_test(walks_no_path_over_a_filesystem_that_hangs),
        cmocka_unit_test(ends_although_a_file_cannot_be_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
