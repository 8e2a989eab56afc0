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
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 10000

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
    assert_int_equal(opener_new(&opener), 0);
    for (int i = 0; i < wanted; i++) {
        assert_int_equal(opener_submit(opener, &query, NULL), 0);
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
    assert_int_equal(opener_submit(opener, &own, &own), 0);
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

static void refuses_more_requests_than_its_queue_holds(void **state)
{
    (void)state;
    struct opener *opener = NULL;
    struct module_query query = query_of("/bin/missing");
    assert_int_equal(opener_new(&opener), 0);
    for (int i = 0; i < OPENER_REQUESTS_MAX; i++) {
        assert_int_equal(opener_submit(opener, &query, NULL), 0);
    }
    assert_int_equal(opener_submit(opener, &query, NULL), -EAGAIN);
    (void)wait_for_answer(opener);
    assert_int_equal(opener_submit(opener, &query, NULL), 0);
    for (int i = 0; i < OPENER_REQUESTS_MAX; i++) {
        assert_int_equal(wait_for_answer(opener).failure, MODULE_FAILURE_NOT_FOUND);
    }
    close_opener(opener);
}

struct fuse {
    char folder[64];
    char file[80];
    pid_t server; /* the only one with the connection: when it dies, nobody waits any more */
};

/* Reads requests and answers what finds the file; whatever opens it is never answered. */
static _Noreturn void serve(int fd)
{
    static _Alignas(8) char buffer[FUSE_MIN_READ_BUFFER * 2];
    struct {
        struct fuse_out_header header;
        union {
            struct fuse_init_out init;
            struct fuse_entry_out entry;
            struct fuse_attr_out attributes;
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

static bool mount_fuse(struct fuse *fuse)
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
        serve(fd);
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
    if (!mount_fuse(&fuse)) {
        skip();
    }
    struct module_query hanging = query_of(fuse.file);
    struct module_query fine = query_of("/bin/true");
    assert_int_equal(opener_new(&opener), 0);
    assert_int_equal(opener_submit(opener, &hanging, &hanging), 0);
    assert_int_equal(opener_submit(opener, &fine, &fine), 0);
    struct opener_answer answer = wait_for_answer(opener);
    assert_ptr_equal(answer.userdata, &fine);
    opener_release(opener, answer.file.fd, answer.uid);
    answer = wait_for_answer(opener);
    assert_ptr_equal(answer.userdata, &hanging);
    assert_int_equal(answer.failure, MODULE_FAILURE_NOT_FOUND);
    assert_int_equal(opener_hang_count(opener), 1);

    /* It is not touched again, so these fail at once, and all threads but one go on. */
    for (int i = 0; i < 20; i++) {
        assert_int_equal(opener_submit(opener, &hanging, &hanging), 0);
        answer = wait_for_answer(opener);
        assert_int_equal(answer.failure, MODULE_FAILURE_NOT_FOUND);
    }
    assert_int_equal(opener_hang_count(opener), 1);
    assert_int_equal(opener_submit(opener, &fine, &fine), 0);
    answer = wait_for_answer(opener);
    assert_int_equal(answer.failure, MODULE_FAILURE_NONE);
    opener_release(opener, answer.file.fd, answer.uid);

    /* One thread still hangs; neither stopping nor freeing waits for it. */
    close_opener(opener);
    unmount_fuse(&fuse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_no_more_than_a_share_for_one_uid),
        cmocka_unit_test(refuses_more_requests_than_its_queue_holds),
        cmocka_unit_test(gives_up_a_filesystem_that_does_not_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
