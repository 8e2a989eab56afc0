/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A library that stands for a worker which a hostile file took over. /etc/ld.so.preload loads it
 * into the daemon and the worker; it changes the worker alone. When a question brings the file of
 * `fuse_program` (tests/workloads), the worker sends it back over its socket, as often as the
 * socket takes it. Other questions are answered as ever. The build with WITHOUT_FILTER also runs
 * without the system call filter, as after an attack on the kernel.
 *
 * worker.log, in the library's folder, gets a line "sends PID" before the first such message.
 */
#include "fuse_program.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKER_ARGUMENT "--elf-worker"
#define SENT_MAX        4096 /* more than a socket's queue holds */

static bool is_worker;
static int log_fd = -1;

static pid_t own_pid; /* the filter knows no getpid() */

static void say(const char *word)
{
    char line[32];
    int bytes = snprintf(line, sizeof line, "%s %d\n", word, (int)own_pid);
    (void)!write(log_fd, line, (size_t)bytes);
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
    Dl_info library;
    char path[4096];
    own_pid = getpid();
    is_worker = argc == 2 && strcmp(argv[1], WORKER_ARGUMENT) == 0;
    if (is_worker && dladdr(&log_fd, &library) != 0) {
        int folder_bytes = (int)(strrchr(library.dli_fname, '/') - library.dli_fname);
        (void)snprintf(path, sizeof path, "%.*s/worker.log", folder_bytes, library.dli_fname);
        log_fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    }
}

#ifdef WITHOUT_FILTER
int seccomp_load(void *filter)
{
    int (*real)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "seccomp_load");
    return is_worker ? 0 : real(filter);
}
#endif

/* Whether `fuse_program`'s file is in a message. */
static bool has_file(const struct msghdr *message)
{
    struct stat status;
    int fd = -1;
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);
    if (header == NULL || header->cmsg_type != SCM_RIGHTS) {
        return false;
    }
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fstat(fd, &status) == 0 && status.st_mtime == FUSE_PROGRAM_MTIME_S;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    static ssize_t (*real)(int, struct msghdr *, int);
    if (real == NULL) {
        real = (ssize_t(*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
    }
    ssize_t got = real(fd, message, flags);
    if (is_worker && got > 0 && has_file(message)) {
        say("sends");
        for (int i = 0; i < SENT_MAX && sendmsg(fd, message, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
             i++) {
        }
    }
    return got;
}
