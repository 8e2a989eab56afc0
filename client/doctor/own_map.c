/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks for the map of a process. What it finds is a name and an owner: the file is the daemon's to
 * read. A filesystem of the process may never answer, so this is a child's.
 */
#include "own_map.h"

#include "cleanup.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int own_map_open_tmp(int process_folder)
{
    struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    cleanup_(closep) int root = openat(process_folder, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? -1 : (int)syscall(SYS_openat2, root, "tmp", &how, sizeof how);
}

bool own_map_is_there(int process_folder, pid_t inner, uid_t uid)
{
    char name[48];
    struct stat status;
    cleanup_(closep) int tmp = own_map_open_tmp(process_folder);
    (void)snprintf(name, sizeof name, "perf-%d.map", (int)inner);
    return tmp >= 0 && fstatat(tmp, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode) && status.st_uid == uid;
}
