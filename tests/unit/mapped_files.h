/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What processes have mapped, as questions for the module cache. */
#include "module.h"
#include "mount_table.h"
#include "unit_test.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PATH_BYTES   512
#define MAPPINGS_MAX 64

struct target {
    struct module_query query;
    char path[PATH_BYTES];
};

/* A file with the identity that it has now, by a path (borrowed) which a process that is gone (no
 * pid is that high) had mapped. */
static inline struct module_query query_of(const char *path)
{
    struct stat status = {0};
    (void)stat(path, &status);
    return (struct module_query){
        .pid = INT32_MAX,
        .parent_pid = INT32_MAX,
        .path = path,
        .device_major = major(status.st_dev),
        .device_minor = minor(status.st_dev),
        .inode = status.st_ino,
    };
}

/* Whether a path leads over a local filesystem from its beginning. If not, as in a machine whose
 * files another one shows, it is walked by no thread that is kept from filesystems that may hang.
 */
static inline bool root_is_local(void)
{
    struct statfs filesystem;
    struct stat status;
    assert_int_equal(statfs("/", &filesystem), 0);
    assert_int_equal(stat("/", &status), 0);
    return mount_table_is_local_type((uint64_t)filesystem.f_type, status.st_dev);
}

/* The executable file mappings of a process. */
static inline size_t read_mappings(pid_t pid, struct target *targets)
{
    static char line[8192];
    char path[64];
    size_t count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL && count < MAPPINGS_MAX) {
        struct target *target = &targets[count];
        memset(target, 0, sizeof *target);
        const char *name = strchr(line, '/');
        char *at = line;
        target->query.start = strtoull(at, &at, 16);
        target->query.end = strtoull(at + 1, &at, 16);
        if (name == NULL || at[3] != 'x') {
            continue;
        }
        target->query.file_offset = strtoull(at + 6, &at, 16);
        target->query.device_major = (uint32_t)strtoul(at, &at, 16);
        target->query.device_minor = (uint32_t)strtoul(at + 1, &at, 16);
        target->query.inode = strtoull(at, &at, 10);
        (void)snprintf(target->path, sizeof target->path, "%.*s", (int)strcspn(name, "\n"), name);
        target->query.path = target->path;
        target->query.pid = pid;
        count++;
    }
    (void)fclose(maps);
    return count;
}

static inline void find_mapping(pid_t pid, const char *name, struct target *ret)
{
    static struct target targets[MAPPINGS_MAX];
    size_t count = read_mappings(pid, targets);
    for (size_t i = 0; i < count; i++) {
        if (strstr(targets[i].path, name) != NULL) {
            *ret = targets[i];
            ret->query.path = ret->path;
            return;
        }
    }
    fail_msg("%s is not mapped", name);
}
