/* SPDX-License-Identifier: Apache-2.0 */

/*
 * forged_overlay PROGRAM FORGED: a user that starts PROGRAM, of root and with the set-user-id bit,
 * as children from outside its user namespace. Inside it an overlay shows FORGED under the path and
 * the inode number of PROGRAM: the tmpfs below counts its inodes up from 1. Says "ready", and runs
 * the children once a line comes in.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_COUNT 100
#define FOLDER         "/mnt"

static int die(const char *what)
{
    perror(what);
    exit(1);
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0) {
        die(path);
    }
    (void)close(fd);
}

static void enter_namespace(uid_t uid)
{
    char map[64];
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        die("unshare");
    }
    (void)snprintf(map, sizeof map, "0 %u 1", uid);
    write_text("/proc/self/setgroups", "deny");
    write_text("/proc/self/uid_map", map);
    write_text("/proc/self/gid_map", map);
}

/* Copies the open file `from_fd` into a file whose inode number is `inode`. */
static void forge(int from_fd, const char *name, ino_t inode)
{
    char path[512];
    char bytes[65536];
    struct stat status = {0};
    int fd = -1;
    (void)snprintf(path, sizeof path, FOLDER "/a/%s", name);
    while (status.st_ino < inode) {
        (void)close(fd);
        (void)unlink(path);
        fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0755);
        if (fd < 0 || fstat(fd, &status) != 0) {
            die(path);
        }
    }
    if (status.st_ino != inode) {
        die("the inode number has passed");
    }
    for (ssize_t got; (got = read(from_fd, bytes, sizeof bytes)) > 0;) {
        if (write(fd, bytes, (size_t)got) != got) {
            die("write");
        }
    }
    (void)close(fd);
}

int main(int argc, char **argv)
{
    struct stat status;
    int start[2];
    pid_t children[CHILDREN_COUNT];
    if (argc != 3 || stat(argv[1], &status) != 0 || pipe2(start, O_CLOEXEC) != 0) {
        die("start");
    }
    for (size_t i = 0; i < CHILDREN_COUNT; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            char byte;
            (void)close(start[1]);
            if (read(start[0], &byte, 1) == 1) {
                (void)execl(argv[1], argv[1], (char *)NULL);
            }
            _exit(1);
        }
    }
    int forged_fd = open(argv[2], O_RDONLY | O_CLOEXEC);
    enter_namespace(getuid());
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", FOLDER, "tmpfs", 0, "inode64") != 0 || mkdir(FOLDER "/a", 0755) != 0 ||
        mkdir(FOLDER "/b", 0755) != 0) {
        die("tmpfs");
    }
    char *name = strrchr(argv[1], '/');
    forge(forged_fd, name + 1, status.st_ino);
    *name = '\0';
    if (mount("none", argv[1], "overlay", MS_RDONLY, "lowerdir=" FOLDER "/a:" FOLDER "/b") != 0) {
        die("overlay");
    }
    (void)printf("ready\n");
    (void)fflush(stdout);
    (void)getchar();
    for (size_t i = 0; i < CHILDREN_COUNT; i++) {
        (void)!write(start[1], "", 1);
        (void)waitpid(-1, NULL, 0);
    }
    return 0;
}
