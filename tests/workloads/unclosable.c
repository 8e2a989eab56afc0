/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program that runs from a file which cannot be closed. Any user can make one: the program mounts
 * a filesystem (FUSE) in a user namespace of its own, and never answers its FLUSHes. The kernel
 * keeps processes outside the namespace away from that filesystem. But an overlay above it reads
 * with the rights of the user who mounted it, and is open to every process.
 *
 * unclosable FOLDER PROGRAM [ARGUMENT...]: runs a copy of PROGRAM from FOLDER, until the process
 * that was started is killed. A line "flush TID" names each thread that tries to close the file,
 * and waits. The file's time of change is UNCLOSABLE_MTIME_S. Status 77: it cannot be done here.
 */
#include "unclosable.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NODE      2
#define READ_BYTES_MAX 65536
#define PATH_BYTES     4096

static int program_fd;
static uint64_t program_bytes;

static _Noreturn void give_up(const char *what)
{
    (void)printf("%s: %s\n", what, strerror(errno));
    exit(77);
}

static struct fuse_attr attributes_of(uint64_t node)
{
    bool root = node == FUSE_ROOT_ID;
    return (struct fuse_attr){.ino = node,
                              .size = root ? 0 : program_bytes,
                              .blocks = program_bytes / 512,
                              .mtime = UNCLOSABLE_MTIME_S,
                              .nlink = 1,
                              .mode = root ? S_IFDIR | 0755 : S_IFREG | 0755};
}

/* Fills the answer to a request. Returns its size, or -1 for what is not answered. */
static int answer(const struct fuse_in_header *request, const void *arguments, void *body,
                  int *ret_error)
{
    const struct fuse_read_in *reading = arguments;
    switch (request->opcode) {
    case FUSE_INIT:
        *(struct fuse_init_out *)body = (struct fuse_init_out){
            .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
        return sizeof(struct fuse_init_out);
    case FUSE_LOOKUP:
        *(struct fuse_entry_out *)body = (struct fuse_entry_out){.nodeid = FILE_NODE,
                                                                 .entry_valid = 1000,
                                                                 .attr_valid = 1000,
                                                                 .attr = attributes_of(FILE_NODE)};
        return sizeof(struct fuse_entry_out);
    case FUSE_GETATTR:
        *(struct fuse_attr_out *)body =
            (struct fuse_attr_out){.attr_valid = 1000, .attr = attributes_of(request->nodeid)};
        return sizeof(struct fuse_attr_out);
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        *(struct fuse_open_out *)body = (struct fuse_open_out){.open_flags = FOPEN_KEEP_CACHE};
        return sizeof(struct fuse_open_out);
    case FUSE_STATFS:
        *(struct fuse_statfs_out *)body = (struct fuse_statfs_out){.st = {.namelen = 255}};
        return sizeof(struct fuse_statfs_out);
    case FUSE_READ: {
        ssize_t got =
            pread(program_fd, body, reading->size < READ_BYTES_MAX ? reading->size : READ_BYTES_MAX,
                  (off_t)reading->offset);
        return got < 0 ? 0 : (int)got;
    }
    case FUSE_FLUSH:
        (void)printf("flush %u\n", request->pid);
        return -1;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        return -1;
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
        return 0;
    default:
        *ret_error = -ENOSYS;
        return 0;
    }
}

static _Noreturn void serve(int fd)
{
    static _Alignas(8) char buffer[FUSE_MIN_READ_BUFFER * 2];
    static struct {
        struct fuse_out_header header;
        _Alignas(8) char body[READ_BYTES_MAX];
    } reply;
    for (;;) {
        const struct fuse_in_header *request = (const void *)buffer;
        ssize_t got = read(fd, buffer, sizeof buffer);
        if (got < (ssize_t)sizeof *request) {
            _exit(0);
        }
        int error = 0;
        int bytes = answer(request, request + 1, reply.body, &error);
        if (bytes < 0) {
            continue;
        }
        reply.header =
            (struct fuse_out_header){.len = (uint32_t)(sizeof reply.header) + (uint32_t)bytes,
                                     .error = error,
                                     .unique = request->unique};
        (void)!write(fd, &reply, reply.header.len);
    }
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0) {
        give_up(path);
    }
    (void)close(fd);
}

/* Root of a user namespace of its own, as any user may be. */
static void become_root_of_nothing(void)
{
    char map[64];
    uid_t uid = getuid();
    gid_t gid = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
        give_up("unshare");
    }
    write_file("/proc/self/setgroups", "deny");
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)uid);
    write_file("/proc/self/uid_map", map);
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)gid);
    write_file("/proc/self/gid_map", map);
}

/* Forks the process that runs in `folder`; this one serves the filesystem from before it is
 * mounted, since the overlay asks at once. */
static void mount_all(const char *folder, char *merged)
{
    char options[3 * PATH_BYTES];
    char lower[PATH_BYTES];
    char empty[PATH_BYTES];
    if (mount("none", folder, "tmpfs", 0, "mode=755") < 0) {
        give_up("tmpfs");
    }
    (void)snprintf(lower, sizeof lower, "%s/lower", folder);
    (void)snprintf(empty, sizeof empty, "%s/empty", folder);
    (void)snprintf(merged, PATH_BYTES, "%s/merged", folder);
    if (mkdir(lower, 0755) < 0 || mkdir(empty, 0755) < 0 || mkdir(merged, 0755) < 0) {
        give_up("mkdir");
    }
    int fd = open("/dev/fuse", O_RDWR);
    if (fd < 0) {
        give_up("/dev/fuse");
    }
    (void)snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
    if (mount("unclosable", lower, "fuse", 0, options) < 0) {
        give_up("fuse");
    }
    if (fork() != 0) {
        serve(fd);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)close(fd);
    (void)snprintf(options, sizeof options, "lowerdir=%s:%s,userxattr", lower, empty);
    if (mount("overlay", merged, "overlay", 0, options) < 0) {
        give_up("overlay");
    }
}

int main(int argc, char **argv)
{
    static char path[PATH_BYTES + 16];
    static char merged[PATH_BYTES];
    struct stat status;
    if (argc < 3) {
        (void)fprintf(stderr, "usage: unclosable FOLDER PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    program_fd = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (program_fd < 0 || fstat(program_fd, &status) < 0) {
        give_up(argv[2]);
    }
    program_bytes = (uint64_t)status.st_size;
    become_root_of_nothing();
    mount_all(argv[1], merged);
    (void)snprintf(path, sizeof path, "%s/file", merged);
    (void)execv(path, argv + 2);
    give_up(path);
}
