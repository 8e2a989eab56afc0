/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The account of a process, for shares. The folder /proc/PID belongs to the effective uid of the
 * process, dumpable or not, though the files in it are root's if it is not. A process of root may
 * be a program with the set-user-id bit, so its real uid counts. No process can delay either
 * answer.
 */
#include "process_owner.h"

#include "account.h"
#include "cleanup.h"
#include "proc_parse.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define STATUS_BYTES 1024 /* the uids stand in its first lines */

static uint32_t read_real_uid(int32_t pid)
{
    char path[32];
    char text[STATUS_BYTES];
    uint32_t uid = PROCESS_OWNER_UNKNOWN;
    (void)snprintf(path, sizeof path, "/proc/%" PRId32 "/status", pid);
    cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (bytes < 0) {
        return PROCESS_OWNER_UNKNOWN;
    }
    text[bytes] = '\0';
    return proc_parse_real_uid(text, &uid) < 0 ? PROCESS_OWNER_UNKNOWN : uid;
}

uint32_t process_owner(int32_t pid)
{
    char path[32];
    struct stat status;
    (void)snprintf(path, sizeof path, "/proc/%" PRId32, pid);
    if (pid <= 0 || stat(path, &status) < 0) {
        return PROCESS_OWNER_UNKNOWN;
    }
    uint32_t uid = status.st_uid == 0 ? read_real_uid(pid) : status.st_uid;
    return uid == PROCESS_OWNER_UNKNOWN ? uid : account_of(uid);
}
