/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks for targets before anything is recorded, since a mistyped one records nothing. Processes
 * and threads are looked for by a signal that is not sent, which finds them where /proc hides those
 * of other users. A control group is a folder below a mounted hierarchy. Where none is mounted, any
 * path may be right. A unit that does not run is only noted.
 */
#include "target_check.h"

#include "cleanup.h"
#include "options.h"
#include "unit_names.h"

#include <errno.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define CGROUP_FOLDER "/sys/fs/cgroup"

static int complain_missing(const char *file, const char *member, const char *option, int32_t id,
                            const char *what)
{
    return file != NULL ? complain("%s: targets.%s: there is no %s %d", file, member, what, id)
                        : complain("%s %d: there is no such %s", option, id, what);
}

static bool is_missing(int32_t id)
{
    return kill(id, 0) < 0 && errno == ESRCH;
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Whether a hierarchy has the control group, or none is mounted that could have it. */
static bool has_cgroup(const char *path)
{
    size_t prefix = strlen(CGROUP_FOLDER);
    if (strncmp(path, CGROUP_FOLDER "/", prefix + 1) == 0) {
        if (is_folder(path)) {
            return true;
        }
        path += prefix; /* as the daemon does */
    }
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    bool is_mounted = false;
    bool is_found = false;
    const struct mntent *mount = NULL;
    while (mounts != NULL && !is_found && (mount = getmntent(mounts)) != NULL) {
        char folder[4096];
        if (strcmp(mount->mnt_type, "cgroup2") == 0 || strcmp(mount->mnt_type, "cgroup") == 0) {
            is_mounted = true;
            int length = snprintf(folder, sizeof folder, "%s%s", mount->mnt_dir, path);
            is_found = length > 0 && (size_t)length < sizeof folder && is_folder(folder);
        }
    }
    if (mounts != NULL) {
        (void)endmntent(mounts);
    }
    return is_found || !is_mounted;
}

/* A unit may begin while it is recorded, so that it is missing is no mistake for sure. */
static void note_missing_units(const struct session_targets *targets)
{
    for (size_t i = 0; i < targets->unit_count; i++) {
        cleanup_(freep) char *text =
            unit_names_describe_missing(UNIT_NAMES_CGROUPS, targets->units[i]);
        if (text != NULL) {
            (void)complain("note: %s", text);
        }
    }
}

int target_check(const struct session_targets *targets, const char *file, bool checks_cgroups)
{
    for (size_t i = 0; i < targets->pid_count; i++) {
        if (is_missing(targets->pids[i])) {
            return complain_missing(file, "pids", "-p", targets->pids[i], "process");
        }
    }
    for (size_t i = 0; i < targets->tid_count; i++) {
        if (is_missing(targets->tids[i])) {
            return complain_missing(file, "tids", "-t", targets->tids[i], "thread");
        }
    }
    for (size_t i = 0; i < targets->cgroup_count && checks_cgroups; i++) {
        if (!has_cgroup(targets->cgroups[i])) {
            return complain("-G %s: there is no such control group; systemd-cgls lists those that "
                            "there are",
                            targets->cgroups[i]);
        }
    }
    note_missing_units(targets);
    return EXIT_DONE;
}
