/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads /proc. What a process says of itself there (its name, its mappings) is any text; at worst
 * it is asked for nothing, or in vain.
 */
#include "naming_process.h"

#include "cleanup.h"
#include "runtimes.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STATUS_BYTES  ((size_t)16 << 10)
#define CGROUP_BYTES  ((size_t)16 << 10)
#define CGROUP_FOLDER "/sys/fs/cgroup/"

ssize_t naming_process_read(const struct naming_process *process, const char *name, char *into,
                            size_t capacity_bytes)
{
    cleanup_(closep) int fd = openat(process->folder, name, O_RDONLY | O_CLOEXEC);
    size_t bytes = 0;
    ssize_t got = 1;
    into[0] = '\0';
    if (fd < 0) {
        return -errno;
    }
    while (got > 0 && bytes < capacity_bytes - 1) {
        got = read(fd, into + bytes, capacity_bytes - 1 - bytes);
        if (got < 0) {
            return -errno;
        }
        bytes += (size_t)got;
    }
    into[bytes] = '\0';
    return (ssize_t)bytes;
}

/* The values of a line of /proc/PID/status; NULL: it is not there. */
static const char *line_of(const char *status, const char *name)
{
    size_t length = strlen(name);
    while (status != NULL && strncmp(status, name, length) != 0) {
        status = strchr(status, '\n');
        status = status == NULL ? NULL : status + 1;
    }
    return status == NULL ? NULL : status + length;
}

bool naming_process_parse(const char *status, struct naming_process *ret)
{
    const char *comm = line_of(status, "Name:\t");
    const char *parent = line_of(status, "PPid:\t");
    const char *uids = line_of(status, "Uid:\t");
    const char *gids = line_of(status, "Gid:\t");
    const char *caught = line_of(status, "SigCgt:\t");
    const char *pids = line_of(status, "NSpid:\t");
    char *rest = NULL;
    if (comm == NULL || parent == NULL || uids == NULL || gids == NULL || caught == NULL ||
        pids == NULL) {
        return false;
    }
    ret->parent = (pid_t)strtol(parent, NULL, 10);
    ret->real_uid = (uid_t)strtoul(uids, &rest, 10);
    ret->uid = (uid_t)strtoul(rest, NULL, 10);
    (void)strtoul(gids, &rest, 10);
    ret->gid = (gid_t)strtoul(rest, NULL, 10);
    ret->caught = strtoull(caught, NULL, 16);
    (void)snprintf(ret->comm, sizeof ret->comm, "%.*s", (int)strcspn(comm, "\n"), comm);
    const char *last = pids + strcspn(pids, "\n");
    while (last > pids && last[-1] != '\t') {
        last--;
    }
    ret->inner = (pid_t)strtol(last, NULL, 10);
    return ret->inner > 0;
}

bool naming_process_open(pid_t pid, struct naming_process *ret)
{
    char path[32];
    char status[STATUS_BYTES];
    (void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
    *ret = (struct naming_process){.pid = pid};
    ret->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ret->folder >= 0 && naming_process_read(ret, "status", status, sizeof status) > 0 &&
        naming_process_parse(status, ret)) {
        return true;
    }
    naming_process_close(ret);
    return false;
}

bool naming_process_confirm(const struct naming_process *process, struct naming_process *ret_now)
{
    char status[STATUS_BYTES];
    *ret_now = *process;
    return naming_process_read(process, "status", status, sizeof status) > 0 &&
           naming_process_parse(status, ret_now) && ret_now->real_uid == process->real_uid &&
           ret_now->uid == process->uid && ret_now->gid == process->gid;
}

int naming_process_open_cwd(const struct naming_process *process)
{
    return openat(process->folder, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void naming_process_close(struct naming_process *process)
{
    process->folder = close_fd(process->folder);
}

bool naming_process_has_ended(const struct naming_process *process)
{
    return faccessat(process->folder, "exe", F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

static bool is_below(const char *path, const char *group)
{
    size_t prefix = strlen(CGROUP_FOLDER) - 1;
    if (strncmp(group, CGROUP_FOLDER, prefix + 1) == 0) {
        group += prefix; /* as the daemon takes it */
    }
    size_t length = strlen(group);
    while (length > 0 && group[length - 1] == '/') {
        length--;
    }
    return strncmp(path, group, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static bool is_of_unit(const char *path, const char *glob)
{
    while (*path != '\0') {
        size_t length = strcspn(path, "/");
        if (length > 0 && unit_glob_matches(glob, path, length)) {
            return true;
        }
        path += length + (path[length] == '/');
    }
    return false;
}

static bool path_matches(const char *path, const struct session_targets *targets)
{
    for (size_t i = 0; i < targets->cgroup_count; i++) {
        if (is_below(path, targets->cgroups[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < targets->unit_count; i++) {
        if (is_of_unit(path, targets->units[i])) {
            return true;
        }
    }
    return false;
}

bool naming_cgroup_matches(char *text, const struct session_targets *targets)
{
    char *line = NULL;
    while ((line = strsep(&text, "\n")) != NULL) {
        const char *path = strchr(line, ':'); /* "0::/system.slice/nginx.service" */
        path = path == NULL ? NULL : strchr(path + 1, ':');
        if (path != NULL && path_matches(path + 1, targets)) {
            return true;
        }
    }
    return false;
}

static bool has_thread(const struct naming_process *process, int32_t tid)
{
    char name[32];
    (void)snprintf(name, sizeof name, "task/%" PRId32, tid);
    return faccessat(process->folder, name, F_OK, 0) == 0;
}

bool naming_process_is_target(const struct naming_process *process,
                              const struct session_targets *targets)
{
    char cgroup[CGROUP_BYTES];
    bool is_found = session_targets_empty(targets);
    for (size_t i = 0; i < targets->pid_count && !is_found; i++) {
        is_found = targets->pids[i] == process->pid;
    }
    for (size_t i = 0; i < targets->uid_count && !is_found; i++) {
        is_found = targets->uids[i] == process->real_uid || targets->uids[i] == process->uid;
    }
    for (size_t i = 0; i < targets->comm_count && !is_found; i++) {
        is_found = fnmatch(targets->comms[i], process->comm, 0) == 0;
    }
    for (size_t i = 0; i < targets->tid_count && !is_found; i++) {
        is_found = has_thread(process, targets->tids[i]);
    }
    if (!is_found && targets->cgroup_count + targets->unit_count > 0) {
        is_found = naming_process_read(process, "cgroup", cgroup, sizeof cgroup) > 0 &&
                   naming_cgroup_matches(cgroup, targets);
    }
    return is_found;
}

size_t naming_process_runtime(const struct naming_process *process,
                              struct runtime_mappings *ret_mappings, bool *ret_is_old_python)
{
    char program[512];
    struct naming_process now;
    cleanup_(closep) int maps = openat(process->folder, "maps", O_RDONLY | O_CLOEXEC);
    ssize_t length = readlinkat(process->folder, "exe", program, sizeof program - 1);
    *ret_is_old_python = false;
    *ret_mappings = (struct runtime_mappings){0};
    if (maps < 0 || length <= 0 || runtime_mappings_read(maps, process->inner, ret_mappings) < 0 ||
        !naming_process_confirm(process, &now)) {
        return RUNTIME_NONE;
    }
    program[length] = '\0';
    const char *slash = strrchr(program, '/');
    const char *base = slash == NULL ? program : slash + 1;
    size_t runtime = runtime_of_process(base, ret_mappings);
    *ret_is_old_python = runtime == RUNTIME_NONE && strncmp(base, "python3.", 8) == 0;
    return runtime;
}
