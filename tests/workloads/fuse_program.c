/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program that runs from a file of which a user says all that there is to say. Any user can make
 * one: it mounts a filesystem (FUSE) in a user namespace of its own. The kernel keeps processes
 * outside the namespace away from that filesystem. But an overlay above it reads with the rights of
 * the user who mounted it, and is open to every process.
 *
 * fuse_program FOLDER PROGRAM [ARGUMENT...]: runs a copy of PROGRAM from FOLDER, until the process
 * that was started is killed. The file cannot be closed: its FLUSHes are never answered. A line
 * "flush TID" names each thread that tries to close it, and waits. The file's time of change is
 * FUSE_PROGRAM_MTIME_S.
 *
 * fuse_program --as FILE FOLDER PROGRAM [ARGUMENT...]: the copy has FILE's inode number and times,
 * and can be closed. A line "device MAJOR:MINOR" is the overlay's, and a line "gone" follows when
 * the program has ended and the overlay is unmounted, so that its device number is free. FUSE stays
 * mounted until the process is killed.
 *
 * fuse_program --silent FOLDER PROGRAM [ARGUMENT...]: as the first, but the file can be closed.
 * Of others, each thread is answered one question for the file's attributes; its next one, and each
 * for those of the filesystem's root, is not, and a line "stat TID" says so.
 *
 * fuse_program --root FOLDER PROGRAM [ARGUMENT...]: the same filesystem is the root of a program
 * that is PROGRAM itself, which needs no other file.
 *
 * fuse_program --hold FOLDER PROGRAM HELD: nothing runs. HELD, a folder of any filesystem, is being
 * listed into a page of the file that is never read, and a file is being made there, which waits
 * for that: so does each lookup of a name in HELD that the kernel does not remember. A line "held"
 * says so.
 *
 * Status 77: it cannot be done here.
 */
#include "fuse_program.h"

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
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILE_NODE      2
#define READ_BYTES_MAX 65536
#define PATH_BYTES     4096
#define PAGE_BYTES     ((size_t)4096)
#define THREADS_MAX    64

static int program_fd;
static uint64_t program_bytes;
static struct stat shown; /* of the file that the copy is to be taken for; all 0: of none */
static bool is_silent;
static bool is_holding;
static uint32_t program_pid;
static uint32_t asked[THREADS_MAX]; /* the threads that have had their answer */

static _Noreturn void give_up(const char *what)
{
    (void)printf("%s: %s\n", what, strerror(errno));
    exit(77);
}

static struct fuse_attr attributes_of(uint64_t node)
{
    bool root = node == FUSE_ROOT_ID;
    return (struct fuse_attr){.ino = root || shown.st_ino == 0 ? node : shown.st_ino,
                              .size = root ? 0 : program_bytes,
                              .blocks = program_bytes / 512,
                              .mtime = (uint64_t)shown.st_mtim.tv_sec,
                              .mtimensec = (uint32_t)shown.st_mtim.tv_nsec,
                              .ctime = (uint64_t)shown.st_ctim.tv_sec,
                              .ctimensec = (uint32_t)shown.st_ctim.tv_nsec,
                              .nlink = 1,
                              .mode = root ? S_IFDIR | 0755 : S_IFREG | 0755};
}

/* Whether that question for attributes has no answer. */
static bool is_withheld(const struct fuse_in_header *request)
{
    if (!is_silent || request->pid == program_pid) {
        return false;
    }
    for (size_t i = 0; request->nodeid == FILE_NODE && i < THREADS_MAX; i++) {
        if (asked[i] == 0) {
            asked[i] = request->pid;
            return false;
        }
        if (asked[i] == request->pid) {
            break;
        }
    }
    (void)printf("stat %u\n", request->pid);
    return true;
}

/* Fills the answer to a request. Returns its size, or -1 for what is not answered. */
static int answer(const struct fuse_in_header *request, const void *arguments, void *body,
                  int *ret_error)
{
    const struct fuse_read_in *reading = arguments;
    const uint64_t valid_s = is_silent ? 0 : 1000;
    switch (request->opcode) {
    case FUSE_INIT:
        *(struct fuse_init_out *)body = (struct fuse_init_out){
            .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
        return sizeof(struct fuse_init_out);
    case FUSE_LOOKUP:
        *(struct fuse_entry_out *)body = (struct fuse_entry_out){.nodeid = FILE_NODE,
                                                                 .entry_valid = 1000,
                                                                 .attr_valid = valid_s,
                                                                 .attr = attributes_of(FILE_NODE)};
        return sizeof(struct fuse_entry_out);
    case FUSE_GETATTR:
        if (is_withheld(request)) {
            return -1;
        }
        *(struct fuse_attr_out *)body =
            (struct fuse_attr_out){.attr_valid = valid_s, .attr = attributes_of(request->nodeid)};
        return sizeof(struct fuse_attr_out);
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        *(struct fuse_open_out *)body = (struct fuse_open_out){.open_flags = FOPEN_KEEP_CACHE};
        return sizeof(struct fuse_open_out);
    case FUSE_STATFS:
        *(struct fuse_statfs_out *)body = (struct fuse_statfs_out){.st = {.namelen = 255}};
        return sizeof(struct fuse_statfs_out);
    case FUSE_READ: {
        if (is_holding) {
            return -1;
        }
        ssize_t got =
            pread(program_fd, body, reading->size < READ_BYTES_MAX ? reading->size : READ_BYTES_MAX,
                  (off_t)reading->offset);
        return got < 0 ? 0 : (int)got;
    }
    case FUSE_FLUSH:
        if (shown.st_ino != 0 || is_silent) {
            return 0;
        }
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
    if (mount("fuse_program", lower, "fuse", 0, options) < 0) {
        give_up("fuse");
    }
    pid_t pid = fork();
    if (pid != 0) {
        program_pid = (uint32_t)pid;
        serve(fd);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)close(fd);
    (void)snprintf(options, sizeof options, "lowerdir=%s:%s,userxattr", lower, empty);
    if (mount("overlay", merged, "overlay", 0, options) < 0) {
        give_up("overlay");
    }
}

/* Never returns: the list of what is in `held` is written to a page of `path`. */
static _Noreturn void hold(const char *path, const char *held)
{
    char made[PATH_BYTES];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    int held_fd = open(held, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    void *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || held_fd < 0 || page == MAP_FAILED) {
        give_up("hold");
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)syscall(SYS_getdents64, held_fd, page, PAGE_BYTES);
        give_up("getdents64");
    }
    (void)nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    (void)printf("held\n");
    (void)snprintf(made, sizeof made, "%s/made", held);
    (void)open(made, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    give_up(made);
}

/* Runs the program to its end, and gives the overlay's device number back. */
static _Noreturn void run_and_unmount(const char *merged, const char *path, char **arguments)
{
    struct stat status;
    if (stat(path, &status) < 0) {
        give_up(path);
    }
    (void)printf("device %u:%u\n", major(status.st_dev), minor(status.st_dev));
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execv(path, arguments);
        give_up(path);
    }
    (void)waitpid(pid, NULL, 0);
    /* A profiler has the program's file open for as long as it reads that. */
    while (umount(merged) < 0) {
        if (errno != EBUSY) {
            give_up("umount");
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    (void)printf("gone\n");
    for (;;) {
        (void)pause();
    }
}

int main(int argc, char **argv)
{
    static char path[PATH_BYTES + 16];
    static char merged[PATH_BYTES];
    struct stat status;
    bool is_as = argc >= 2 && strcmp(argv[1], "--as") == 0;
    bool is_root = argc >= 2 && strcmp(argv[1], "--root") == 0;
    is_holding = argc >= 5 && strcmp(argv[1], "--hold") == 0;
    is_silent = is_root || (argc >= 2 && strcmp(argv[1], "--silent") == 0);
    int option_count = is_as ? 2 : is_silent || is_holding ? 1 : 0;
    if (argc < option_count + 3) {
        (void)fprintf(stderr, "usage: fuse_program [--as FILE | --silent | --root | --hold] FOLDER "
                              "PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    shown.st_mtim.tv_sec = FUSE_PROGRAM_MTIME_S;
    if (is_as && stat(argv[2], &shown) < 0) {
        give_up(argv[2]);
    }
    argv += option_count;
    program_fd = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (program_fd < 0 || fstat(program_fd, &status) < 0) {
        give_up(argv[2]);
    }
    program_bytes = (uint64_t)status.st_size;
    become_root_of_nothing();
    mount_all(argv[1], merged);
    (void)snprintf(path, sizeof path, "%s/file", merged);
    if (is_holding) {
        (void)snprintf(path, sizeof path, "%s/lower/file", argv[1]);
        hold(path, argv[3]);
    }
    if (is_as) {
        run_and_unmount(merged, path, argv + 2);
    }
    if (is_root) {
        if (chroot(merged) < 0 || chdir("/") < 0) {
            give_up("chroot");
        }
        (void)fexecve(program_fd, argv + 2, environ);
    } else {
        (void)execv(path, argv + 2);
    }
    give_up(path);
}
