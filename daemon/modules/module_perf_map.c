/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opens perf maps, and jitdumps, which have the same contents with times.
 *
 * A process maps its jitdump so that profilers find it, so its identity is proved as that of each
 * mapped file. It is valid only for the process whose pid is in its name, not for its children.
 *
 * A perf map is found by its name alone, in a folder in which any user may take that name first. So
 * it must belong to the process: a regular file, not a link, of the uid with which the process
 * makes files, and that no other user may write: with a rename, such a user could make it the
 * process's map. After a process has exited its map is read once more, for the functions that were
 * added since, if it is still the file whose owner was proved.
 */
#include "module_search.h"

#include "cleanup.h"
#include "clock.h"
#include "jitdump.h"
#include "perf_map.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAPS_FOLDER   "/tmp"
#define PERF_MAP_MARK (UINT64_C(1) << 63) /* no device's number has it */
#define JITDUMP_MARK  (UINT64_C(1) << 62)
#define YOUNG_SHIFT   20 /* no other times come near */

/* The pid of a process in its own namespace, and the owner of the files that it makes. */
struct self {
    int32_t pid; /* the innermost */
    uid_t uid;   /* effective, as the next */
    gid_t gid;
};

/* Reads the second number of a line of ids, if `name` begins the line. */
static bool take_effective(const char *line, const char *name, uint32_t *ret)
{
    if (strncmp(line, name, strlen(name)) != 0) {
        return false;
    }
    char *effective = NULL;
    (void)strtoul(line + strlen(name), &effective, 10);
    *ret = (uint32_t)strtoul(effective, NULL, 10);
    return true;
}

static bool read_status(int process_fd, struct self *ret)
{
    static const char pids[] = "NSpid:\t";
    int fd = openat(process_fd, "status", O_RDONLY | O_CLOEXEC);
    cleanup_(fclosep) FILE *status = fd < 0 ? NULL : fdopen(fd, "re");
    cleanup_(freep) char *line = NULL; /* the one of groups has up to 720 KB */
    size_t capacity = 0;
    bool has_uid = false;
    bool has_gid = false;
    unsigned long pid = 0;
    if (status == NULL) {
        close_fd(fd);
        return false;
    }
    while (pid == 0 && getline(&line, &capacity, status) > 0) {
        has_uid = has_uid || take_effective(line, "Uid:\t", &ret->uid);
        has_gid = has_gid || take_effective(line, "Gid:\t", &ret->gid);
        if (strncmp(line, pids, strlen(pids)) == 0) {
            pid = strtoul(strrchr(line, '\t'), NULL, 10);
        }
    }
    ret->pid = (int32_t)pid;
    return has_uid && has_gid && pid > 0 && pid <= INT32_MAX;
}

/* Whether no other user can have written the file. */
static bool is_word_of(const struct self *self, const struct module_file *file)
{
    return file->owner == self->uid && (file->mode & S_IWOTH) == 0 &&
           ((file->mode & S_IWGRP) == 0 || file->group == self->gid);
}

/* Opens with O_PATH (returned: close) what has that name in the folder in which runtimes leave
 * their maps, inside that root (borrowed). Returns a descriptor or -errno. */
static int open_in_folder(struct module_search *search, int root_fd, const char *name)
{
    if (root_fd < 0) {
        return -EBADF;
    }
    cleanup_(closep) int folder_fd =
        module_path_open(root_fd, MAPS_FOLDER, module_search_may_touch, search);
    if (folder_fd < 0) {
        return folder_fd;
    }
    int fd = openat(folder_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* NOT_FOUND says that there was no map: only ENOENT does. */
static enum module_failure failure_of(int error)
{
    enum module_failure failure = module_search_failure_of(error);
    return failure == MODULE_FAILURE_NOT_FOUND && error != ENOENT ? MODULE_FAILURE_UNREADABLE
                                                                  : failure;
}

/* Whether it may be changed once more without a sign of it: then no reading of it is another's. */
static bool is_young(const struct file_identity *identity)
{
    int64_t now_ns = (int64_t)clock_ns(CLOCK_REALTIME);
    int64_t changed_ns = 0;
    return __builtin_mul_overflow(identity->changed_s, (int64_t)NS_PER_S, &changed_ns) ||
           changed_ns > now_ns - (int64_t)PERF_MAP_SLACK_NS - (int64_t)NS_PER_S;
}

/* Gives a young file an identity of this opening alone. */
static void tell_young_apart(struct file_identity *identity)
{
    if (is_young(identity)) {
        identity->changed_s ^= (int64_t)(clock_ns(CLOCK_BOOTTIME) << YOUNG_SHIFT);
    }
}

/* The file of that name in the folder for maps of the root (borrowed), and no link to one. */
static enum module_failure open_map(struct module_search *search, int root_fd, int32_t pid,
                                    struct module_file *ret)
{
    struct statfs filesystem;
    char name[32];
    char path[sizeof MAPS_FOLDER + sizeof name];
    (void)snprintf(name, sizeof name, "perf-%" PRId32 ".map", pid);
    (void)snprintf(path, sizeof path, "%s/%s", MAPS_FOLDER, name);
    cleanup_(closep) int path_fd = open_in_folder(search, root_fd, name);
    if (path_fd < 0) {
        return failure_of(-path_fd);
    }
    enum module_failure failure =
        module_search_open_regular(search, path_fd, NULL, ret, &filesystem);
    if (failure == MODULE_FAILURE_NONE) {
        ret->author = module_search_author(search, ret->fd, path);
        ret->identity.device ^= PERF_MAP_MARK;
        tell_young_apart(&ret->identity);
    }
    return failure;
}

/* The map of a process that is gone: only the file that was its own when it lived. */
static enum module_failure open_left_map(const struct module_query *query,
                                         const struct module_guard *guard, struct module_file *ret)
{
    if (query->map_device == 0) {
        return MODULE_FAILURE_IDENTITY;
    }
    cleanup_(closep) int process_fd = -1;
    cleanup_(closep) int root_fd = module_search_machine_root(&process_fd);
    struct module_search search = {.query = query, .guard = guard, .process_fd = process_fd};
    enum module_failure failure = open_map(&search, root_fd, query->pid, ret);
    const struct file_identity *found = &ret->identity;
    bool is_known = failure == MODULE_FAILURE_NONE && found->device == query->map_device &&
                    found->inode == query->inode &&
                    found->generation == (uint32_t)query->inode_generation;
    return failure != MODULE_FAILURE_NONE || is_known ? failure : MODULE_FAILURE_IDENTITY;
}

static enum module_failure open_own_map(const struct module_query *query,
                                        const struct module_guard *guard, int process_fd,
                                        struct module_file *ret)
{
    struct module_search search = {.query = query, .guard = guard, .process_fd = process_fd};
    struct self self = {0};
    cleanup_(closep) int root_fd = openat(process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0 || !read_status(process_fd, &self)) {
        return open_left_map(query, guard, ret);
    }
    enum module_failure failure = open_map(&search, root_fd, self.pid, ret);
    return failure == MODULE_FAILURE_NONE && !is_word_of(&self, ret) ? MODULE_FAILURE_IDENTITY
                                                                     : failure;
}

enum module_failure module_file_open_perf_map(const struct module_query *query,
                                              const struct module_guard *guard,
                                              struct module_file *ret)
{
    struct module_file file = {.fd = -1};
    cleanup_(closep) int process_fd = module_search_process(query);
    enum module_failure failure = process_fd < 0 ? open_left_map(query, guard, &file)
                                                 : open_own_map(query, guard, process_fd, &file);
    cleanup_(closep) int fd = file.fd;
    if (failure != MODULE_FAILURE_NONE) {
        return failure;
    }
    /* Another user, who cannot read the file, may have made a second name of it. */
    if (file.link_count > 1) {
        return MODULE_FAILURE_IDENTITY;
    }
    if (file.identity.size_bytes > PERF_MAP_BYTES_MAX) {
        return MODULE_FAILURE_UNREADABLE;
    }
    *ret = file;
    ret->fd = take_fd(fd);
    return MODULE_FAILURE_NONE;
}

/* Whether the process (its folder is borrowed) calls itself by the pid that is in the file's name,
 * and no other user can have written the file. */
static bool is_own_jitdump(const struct module_query *query, int process_fd,
                           const struct module_file *file)
{
    char name[32];
    struct self self = {0};
    const char *last = strrchr(query->path, '/');
    if (last == NULL || !read_status(process_fd, &self)) {
        return false;
    }
    (void)snprintf(name, sizeof name, "/jit-%" PRId32 ".dump", self.pid);
    return strcmp(last, name) == 0 && is_word_of(&self, file);
}

enum module_failure module_file_open_jitdump(const struct module_query *query,
                                             const struct module_guard *guard,
                                             struct module_file *ret)
{
    struct module_file file = {.fd = -1};
    cleanup_(closep) int process_fd = module_search_process(query);
    if (process_fd < 0 && query->map_device == 0) {
        return MODULE_FAILURE_NOT_FOUND;
    }
    struct module_query growing = *query;
    growing.mapped_ns = 0;
    enum module_failure failure = module_file_open(&growing, guard, &file);
    cleanup_(closep) int fd = file.fd;
    if (failure != MODULE_FAILURE_NONE) {
        return failure;
    }
    if (file.link_count > 1 ||
        (query->map_device == 0 && !is_own_jitdump(query, process_fd, &file))) {
        return MODULE_FAILURE_IDENTITY;
    }
    if (file.identity.size_bytes > JITDUMP_BYTES_MAX) {
        return MODULE_FAILURE_UNREADABLE;
    }
    file.identity.device ^= JITDUMP_MARK;
    tell_young_apart(&file.identity);
    *ret = file;
    ret->fd = take_fd(fd);
    return MODULE_FAILURE_NONE;
}
