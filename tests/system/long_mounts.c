/* SPDX-License-Identifier: Apache-2.0 */

/*
 * long_mounts SECONDS, root of a user and mount namespace of its own: makes one mount whose
 * root lies FOLDERS folders down, and maps and runs files of which another one, on another
 * filesystem and with the same inode number, is at their path since. Prints how long the text of
 * its mounts is, and then "ready".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FOLDERS    40000
#define NAME_BYTES 255
#define FILES      20
#define PAGE_BYTES 4096

/* mov ecx, 1000000; the loop: dec ecx; jnz; ret */
static const uint8_t code[] = {0xb9, 0x40, 0x42, 0x0f, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int make_file(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    if (fd < 0 || pwrite(fd, code, sizeof code, 0) < 0 || ftruncate(fd, PAGE_BYTES) < 0) {
        die(name);
    }
    return fd;
}

/* The kernel writes each newline as four characters. */
static void mount_what_lies_deep(void)
{
    char name[NAME_BYTES + 1] = "";
    char path[64];
    memset(name, '\n', NAME_BYTES);
    (void)close(make_file("target"));
    if (mkdir("deep", 0755) < 0 || chdir("deep") < 0) {
        die("deep");
    }
    for (int i = 0; i < FOLDERS; i++) {
        if (mkdir(name, 0755) < 0 || chdir(name) < 0) {
            die("a folder in a folder");
        }
    }
    int fd = make_file("file");
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (mount(path, "/dev/shm/target", NULL, MS_BIND, NULL) < 0 || chdir("/dev/shm") < 0) {
        die("bind mount");
    }
}

/* The folder of a new filesystem at `code`, above the last one. */
static int mount_files(void)
{
    if (mount("none", "code", "tmpfs", 0, NULL) < 0 || chdir("code") < 0) {
        die("tmpfs");
    }
    for (int i = 0; i < FILES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%d", i);
        (void)close(make_file(name));
    }
    int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || chdir("..") < 0) {
        die("code");
    }
    return fd;
}

static size_t mounts_bytes(void)
{
    static char text[1 << 20];
    size_t bytes = 0;
    int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    for (ssize_t got; (got = read(fd, text, sizeof text)) > 0;) {
        bytes += (size_t)got;
    }
    (void)close(fd);
    return bytes;
}

static void run_file(int folder_fd, int number)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%d", number);
    int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
    void *mapping = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    (void)close(fd);
    if (fd < 0 || mapping == MAP_FAILED) {
        die(name);
    }
    for (double end_s = now_s() + 0.02; now_s() < end_s;) {
        ((void (*)(void))(uintptr_t)mapping)();
    }
    (void)munmap(mapping, PAGE_BYTES);
}

int main(int argc, char **argv)
{
    if (argc != 2 || mount("none", "/dev/shm", "tmpfs", 0, "nr_inodes=100000") < 0 ||
        chdir("/dev/shm") < 0 || mkdir("code", 0755) < 0) {
        die("a tmpfs at /dev/shm");
    }
    mount_what_lies_deep();
    int folder_fd = mount_files();
    (void)close(mount_files());
    printf("%zu\nready\n", mounts_bytes());
    (void)fflush(stdout);
    double end_s = now_s() + strtod(argv[1], NULL);
    for (int i = 0; now_s() < end_s; i++) {
        run_file(folder_fd, i % FILES);
    }
    return 0;
}
