/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The kernel's vDSO for 32-bit tasks, which no file of the machine holds and no 64-bit process
 * maps. The kernel maps the image on request (ARCH_MAP_VDSO_32), but only once a process has given
 * up its own vDSO. So a child of this process does, copies the image, and ends. It runs no program,
 * opens nothing, and calls nothing but the system: other threads may have held locks when it was
 * forked.
 */
#include "module_file.h"

#include "cleanup.h"
#include "proc_parse.h"
#include "seals.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAP_VDSO_32BIT 0x2002 /* ARCH_MAP_VDSO_32 of <asm/prctl.h>, for arch_prctl() */
#define PAGE_BYTES     ((size_t)4096)
#define ROOM_BYTES     ((size_t)1 << 20) /* for the image and the kernel's data before it */
#define OWN_RANGES_MAX 8
#define MAPS_LINES_MAX 65536

struct range {
    void *start;
    size_t size_bytes;
};

/* What the kernel has mapped into this process: "[vdso]", and its data, "[vvar]" and the like. */
struct own_ranges {
    struct range ranges[OWN_RANGES_MAX];
    size_t count;
};

/* False: they are not known. */
static bool find_own_ranges(struct own_ranges *ret)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) {
        return false;
    }
    cleanup_(freep) char *text = NULL;
    size_t capacity = 0;
    ret->count = 0;
    for (size_t i = 0; i < MAPS_LINES_MAX && getline(&text, &capacity, maps) > 0; i++) {
        struct mapping_description line;
        const char *name = strrchr(text, ' ');
        bool is_own =
            name != NULL && (strncmp(name, " [vdso]", 7) == 0 || strncmp(name, " [vvar", 6) == 0);
        if (is_own && ret->count < OWN_RANGES_MAX && proc_parse_maps_line(text, &line) >= 0) {
            ret->ranges[ret->count++] =
                (struct range){(void *)(uintptr_t)line.start, (size_t)(line.end - line.start)};
        }
    }
    (void)fclose(maps);
    return ret->count > 0;
}

/* In the child. The image is at a page of `room`, behind data that may not be readable: only the
 * kernel looks there. Never returns; the status is 0 if `fd` has the image. */
__attribute__((noreturn)) static void copy_image(const struct own_ranges *own, uint8_t *room,
                                                 int fd)
{
    for (size_t i = 0; i < own->count; i++) {
        (void)munmap(own->ranges[i].start, own->ranges[i].size_bytes);
    }
    (void)munmap(room, ROOM_BYTES);
    long size_bytes = syscall(SYS_arch_prctl, MAP_VDSO_32BIT, room);
    for (size_t offset = 0; size_bytes > 0 && offset < ROOM_BYTES; offset += PAGE_BYTES) {
        char magic[SELFMAG] = {0};
        if (pwrite(fd, room + offset, SELFMAG, 0) == SELFMAG &&
            pread(fd, magic, SELFMAG, 0) == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0) {
            _exit(pwrite(fd, room + offset, (size_t)size_bytes, 0) == size_bytes ? 0 : 1);
        }
    }
    _exit(1);
}

/* Not fork(): a child with a table of descriptors of its own closes them as it ends, and to close a
 * file of a user may block for ever. */
static pid_t fork_with_descriptors(void)
{
    return (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
}

/* Whether a child has written the image to `fd`. */
static bool fetch_image(int fd)
{
    struct own_ranges own;
    int status = -1;
    if (!find_own_ranges(&own)) {
        return false;
    }
    void *room = mmap(NULL, ROOM_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        return false;
    }
    pid_t pid = fork_with_descriptors();
    if (pid == 0) {
        copy_image(&own, room, fd);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    (void)munmap(room, ROOM_BYTES);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

enum module_failure module_file_open_vdso_32bit(struct module_file *ret)
{
    cleanup_(closep) int fd = memfd_create("vdso32", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return MODULE_FAILURE_LIMIT;
    }
    if (!fetch_image(fd)) {
        return MODULE_FAILURE_NOT_FOUND;
    }
    off_t size_bytes = lseek(fd, 0, SEEK_END);
    if (size_bytes <= 0 || seals_add(fd) < 0) {
        return MODULE_FAILURE_LIMIT;
    }
    *ret = (struct module_file){
        .fd = take_fd(fd),
        .identity = {.device = MODULE_VDSO_DEVICE,
                     .inode = MODULE_VDSO_INODE_32BIT,
                     .size_bytes = (uint64_t)size_bytes},
        .is_local = true,
    };
    return MODULE_FAILURE_NONE;
}
