/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bounds of the opener, and a filesystem that never answers: one of the test's own making,
 * whose requests nobody serves once its single file is known. That part needs root and FUSE.
 */
#include "opener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
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

struct fuse {
    char folder[64];
    char file[80];
    pid_t server; /* the only one with the connection: when it dies, nobody waits any more */
};

/* Reads requests and answers what finds the file, and what opens it unless that is to hang; closing
 * it is never answered. */
static _Noreturn void serve(int fd, bool opens)
{
    static _Alignas(8) char buffer[FUSE_MIN_READ_BUFFER * 2];
    struct {
        struct fuse_out_header header;
        union {
            struct fuse_init_out init;
            struct fuse_entry_out entry;
            struct fuse_attr_out attributes;
            struct fuse_open_out opened;
            struct fuse_statfs_out filesystem;
        } body;
    } reply;
    for (;;) {
        ssize_t got = read(fd, buffer, sizeof buffer);
        const struct fuse_in_header *request = (const void *)buffer;
        if (got < (ssize_t)sizeof *request) {
            _exit(0);
        }
        const struct fuse_attr attributes = {
            .ino = request->opcode == FUSE_GETATTR ? request->nodeid : 2,
            .size = 100,
            .nlink = 1,
            .mode = request->opcode == FUSE_GETATTR && request->nodeid == FUSE_ROOT_ID
                        ? S_IFDIR | 0755
                        : S_IFREG | 0755,
        };
        memset(&reply, 0, sizeof reply);
        size_t bytes = 0;
        if (request->opcode == FUSE_INIT) {
            reply.body.init = (struct fuse_init_out){.major = FUSE_KERNEL_VERSION,
                                                     .minor = FUSE_KERNEL_MINOR_VERSION,
                                                     .max_write = 4096};
            bytes = sizeof reply.body.init;
        } else if (request->opcode == FUSE_LOOKUP) {
            reply.body.entry = (struct fuse_entry_out){
                .nodeid = 2, .entry_valid = 1000, .attr_valid = 1000, .attr = attributes};
            bytes = sizeof reply.body.entry;
        } else if (request->opcode == FUSE_GETATTR) {
            reply.body.attributes = (struct fuse_attr_out){.attr_valid = 1000, .attr = attributes};
            bytes = sizeof reply.body.attributes;
        } else if (request->opcode == FUSE_OPEN && opens) {
            bytes = sizeof reply.body.opened;
        } else if (request->opcode == FUSE_STATFS) {
            bytes = sizeof reply.body.filesystem;
        } else if (request->opcode == FUSE_IOCTL) {
            reply.header.error = -ENOSYS;
        } else {
            continue;
        }
        reply.header.unique = request->unique;
        reply.header.len = (uint32_t)(sizeof reply.header + bytes);
        if (write(fd, &reply, reply.header.len) < 0) {
            _exit(1);
        }
    }
}

static bool mount_fuse(struct fuse *fuse, bool opens)
{
    char options[128];
    struct stat status;
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
        return false;
    }
    (void)snprintf(fuse->folder, sizeof fuse->folder, "/tmp/opener.XXXXXX");
    assert_non_null(mkdtemp(fuse->folder));
    (void)snprintf(fuse->file, sizeof fuse->file, "%s/file", fuse->folder);
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    (void)snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
    if (fd < 0 || mount("test", fuse->folder, "fuse", 0, options) < 0) {
        (void)close(fd);
        (void)rmdir(fuse->folder);
        return false;
    }
    fuse->server = fork();
    if (fuse->server == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(fd, opens);
    }
    (void)close(fd);
    assert_int_equal(stat(fuse->file, &status), 0);
    return true;
}

static void unmount_fuse(const struct fuse *fuse)
{
    (void)kill(fuse->server, SIGKILL);
    (void)waitpid(fuse->server, NULL, 0);
    (void)umount2(fuse->folder, MNT_DETACH);
    (void)rmdir(fuse->folder);
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
        assert_int_equal(answer.failure, MODULE_FAILURE_NOT_FOUND);
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
        assert_int_equal(wait_for_answer(opener).failure, MODULE_FAILURE_NOT_FOUND);
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
    /* The end of the threads is waited for, and then no more. */
    close_opener(opener);
    assert_in_range(now_ms() - begin_ms, HANG_MS, HANG_MS + 1000);
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
        cmocka_unit_test(walks_no_path_over_a_filesystem_that_hangs),
        cmocka_unit_test(ends_although_a_file_cannot_be_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
