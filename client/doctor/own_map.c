/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks for the map of a process. What it finds is a name and an owner: the file is the daemon's to
 * read. A filesystem of the process may never answer, so this is a child's.
 *
 * A runtime that is asked for its map opens that name, and writes. Where another user was there
 * first, with a link or a FIFO, it would overwrite a file of its own user, or wait for ever. So the
 * file is made before it is asked. In a folder with the sticky bit no other user can move it away.
 */
#include "own_map.h"

#include "cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define NAME_BYTES ((size_t)48)

int own_map_open_tmp(int process_folder)
{
    struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    cleanup_(closep) int root = openat(process_folder, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? -1 : (int)syscall(SYS_openat2, root, "tmp", &how, sizeof how);
}

static const char *name_of(pid_t inner, char *into)
{
    (void)snprintf(into, NAME_BYTES, "perf-%d.map", (int)inner);
    return into;
}

int own_map_make(int tmp, pid_t inner, uid_t uid, bool *ret_is_new)
{
    char name[NAME_BYTES];
    struct stat status;
    struct stat above;
    *ret_is_new = false;
    if (fstat(tmp, &status) < 0 || fstatat(tmp, "..", &above, AT_SYMLINK_NOFOLLOW) < 0) {
        return -errno;
    }
    /* The owner of the folder above, as root of a container, could replace all of it anyway. */
    const bool is_shared = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    const bool is_foreign =
        status.st_uid != 0 && status.st_uid != uid && status.st_uid != above.st_uid;
    if (is_foreign || (is_shared && (status.st_mode & S_ISVTX) == 0)) {
        return -EPERM;
    }
    cleanup_(closep) int fd = openat(tmp, name_of(inner, name),
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    *ret_is_new = fd >= 0;
    if (fd >= 0 || errno != EEXIST) {
        return fd >= 0 ? 0 : -errno;
    }
    return fstatat(tmp, name, &status, AT_SYMLINK_NOFOLLOW) < 0                      ? -errno
           : S_ISREG(status.st_mode) && status.st_uid == uid && status.st_nlink == 1 ? 0
                                                                                     : -EEXIST;
}

void own_map_drop_empty(int tmp, pid_t inner)
{
    char name[NAME_BYTES];
    struct stat status;
    if (fstatat(tmp, name_of(inner, name), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode) && status.st_size == 0) {
        (void)unlinkat(tmp, name, 0);
    }
}

bool own_map_is_there(int process_folder, pid_t inner, uid_t uid)
{
    char name[NAME_BYTES];
    struct stat status;
    cleanup_(closep) int tmp = own_map_open_tmp(process_folder);
    (void)name_of(inner, name);
    return tmp >= 0 && fstatat(tmp, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode) && status.st_uid == uid && status.st_size > 0;
}
