/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program whose mmap lock is held for writing for as long as it lives, while it goes on running:
 * a reader of /proc/PID/maps waits as long. It mounts a filesystem (FUSE) whose READs are never
 * answered. A page that is read ahead stays locked; to map the file through a descriptor without a
 * cache, in the place of another mapping, the kernel waits for that page under the lock. ps and
 * pgrep wait as well.
 *
 * stuck_process FOLDER UID COPY: says "stuck" when it is, and runs stuck_spin() until the process
 * that was started is killed; the one that is stuck is its child. 77: it cannot be done here.
 * COPY is a copy of this program, out of which stuck_spin() runs: a profiler meets that file in no
 * process but the one that is stuck.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NODE  2
#define FILE_BYTES 4096
#define STUCK_USEC 300000 /* what takes longer does not come back */

static struct fuse_attr attributes_of(uint64_t node)
{
    bool root = node == FUSE_ROOT_ID;
    return (struct fuse_attr){.ino = node,
                              .size = root ? 0 : FILE_BYTES,
                              .blocks = 8,
                              .nlink = 1,
                              .mode = root ? S_IFDIR | 0755 : S_IFREG | 0755};
}

/* Fills the answer to a request. Returns its size, or -1 for what is not answered. */
static int answer(const struct fuse_in_header *request, void *body, int *ret_error)
{
    static unsigned open_count;
    switch (request->opcode) {
    case FUSE_INIT:
        *(struct fuse_init_out *)body = (struct fuse_init_out){.major = FUSE_KERNEL_VERSION,
                                                               .minor = FUSE_KERNEL_MINOR_VERSION,
                                                               .max_readahead = 65536,
                                                               .flags = FUSE_ASYNC_READ,
                                                               .max_background = 12,
                                                               .max_write = 4096};
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
        *(struct fuse_open_out *)body = (struct fuse_open_out){
            .fh = open_count,
            .open_flags = FOPEN_KEEP_CACHE | (open_count == 0 ? 0 : FOPEN_DIRECT_IO)};
        open_count++;
        return sizeof(struct fuse_open_out);
    case FUSE_READ:
        return -1;
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
        uint64_t body[32];
    } reply;
    for (;;) {
        const struct fuse_in_header *request = (const void *)buffer;
        ssize_t got = read(fd, buffer, sizeof buffer);
        if (got < (ssize_t)sizeof *request) {
            _exit(0);
        }
        int error = 0;
        int bytes = answer(request, reply.body, &error);
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

static _Noreturn void give_up(const char *what)
{
    (void)printf("%s: %s\n", what, strerror(errno));
    exit(77);
}

/*
 * In a mount namespace of its own, so that nothing is left behind. Returns in a child: the process
 * that was started serves, since one that is stuck does not even die. When it does, the filesystem
 * fails, and the child goes on to its own end.
 */
static void mount_filesystem(const char *folder, uid_t uid)
{
    char options[128];
    int fd = open("/dev/fuse", O_RDWR);
    if (fd < 0) {
        give_up("/dev/fuse");
    }
    (void)snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fd,
                   (unsigned)uid, (unsigned)uid);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("stuck", folder, "fuse", 0, options) < 0) {
        give_up("mount");
    }
    if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0) {
        give_up("setresuid");
    }
    pid_t child = fork();
    if (child != 0) {
        serve(fd);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)close(fd);
}

static atomic_bool mapped;

static void *map_the_file(void *path)
{
    void *place = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int cached_fd = open(path, O_RDONLY);
    (void)posix_fadvise(cached_fd, 0, FILE_BYTES, POSIX_FADV_WILLNEED);
    int direct_fd = open(path, O_RDONLY);
    if (cached_fd >= 0 && direct_fd >= 0) {
        (void)mmap(place, FILE_BYTES, PROT_READ, MAP_PRIVATE | MAP_FIXED, direct_fd, 0);
    }
    mapped = true;
    return NULL;
}

__attribute__((noinline)) static void stuck_spin(void)
{
    for (volatile uint64_t turns = 0;; turns++) {
    }
}

extern const char __executable_start[];

/* stuck_spin() in the code of another file that holds this program. */
static void (*map_spin(const char *copy))(void)
{
    uintptr_t offset = (uintptr_t)stuck_spin - (uintptr_t)__executable_start;
    uintptr_t in_page = offset % (uintptr_t)getpagesize();
    int fd = open(copy, O_RDONLY | O_CLOEXEC);
    char *pages = fd < 0 ? MAP_FAILED
                         : mmap(NULL, 2 * (size_t)getpagesize(), PROT_READ | PROT_EXEC, MAP_PRIVATE,
                                fd, (off_t)(offset - in_page));
    if (pages == MAP_FAILED ||
        memcmp(pages + in_page, (const void *)(uintptr_t)stuck_spin, 16) != 0) {
        give_up(copy);
    }
    return (void (*)(void))(uintptr_t)(pages + in_page);
}

int main(int argc, char **argv)
{
    static const char tried[] = "trying\n";
    static char said[32];
    static char path[4096];
    pthread_t thread;
    if (argc != 4) {
        (void)fprintf(stderr, "usage: stuck_process FOLDER UID COPY\n");
        return 2;
    }
    mount_filesystem(argv[1], (uid_t)strtoul(argv[2], NULL, 10));
    (void)snprintf(path, sizeof path, "%s/file", argv[1]);
    void (*spin)(void) = map_spin(argv[3]);
    /* What is touched later must be there: a page fault may wait for the lock as well. */
    (void)snprintf(said, sizeof said, "stuck %d\n", (int)getpid());
    (void)!write(STDOUT_FILENO, tried, sizeof tried - 1);
    if (pthread_create(&thread, NULL, map_the_file, path) != 0) {
        give_up("pthread_create");
    }
    (void)usleep(STUCK_USEC);
    if (mapped) {
        (void)printf("this kernel maps the file without waiting\n");
        return 77;
    }
    (void)!write(STDOUT_FILENO, said, strlen(said));
    spin();
}
