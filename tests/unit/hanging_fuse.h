/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A filesystem (FUSE) of the test's own making, with one file that cannot be closed, nor opened if
 * so wished: it does not answer. Needs root. */

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fuse {
    char folder[64];
    char file[80];
    pid_t server; /* the only one with the connection: when it dies, no request waits any more */
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
