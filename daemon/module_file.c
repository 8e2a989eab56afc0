/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The ways to the file of a mapping, best first: /proc/PID/map_files, which leads to the inode
 * itself whatever has become of its name; the path inside the process's own root; once the process
 * is gone, the path inside its parent's root, then inside ours.
 *
 * Every way ends in a descriptor that grants nothing (O_PATH). Only when that is known to be a
 * regular file is it opened for reading, through itself, so that no pipe, device or directory is
 * ever opened and nothing can be exchanged in between. Paths are resolved inside the root that they
 * belong to, whatever symbolic links say.
 */
#include "module_file.h"

#include "cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define MAPS_LINES_MAX 1048576

struct maps_line {
    uint64_t start;
    uint64_t end;
    uint64_t device_major;
    uint64_t device_minor;
    uint64_t inode;
};

/* One search: what is wanted, and what stands in its way. */
struct search {
    const struct module_query *query;
    module_file_guard_fn guard;
    void *userdata;
    bool line_agrees; /* a fresh line of /proc/PID/maps shows the query's device and inode */
};

static bool has_suffix(const char *text, const char *suffix)
{
    size_t text_bytes = strlen(text);
    size_t suffix_bytes = strlen(suffix);
    return text_bytes >= suffix_bytes && strcmp(text + text_bytes - suffix_bytes, suffix) == 0;
}

/* What the kernel shows like a path although it is memory. */
static bool is_memory(const char *path)
{
    return path[0] != '/' || path[1] == '/' || strcmp(path, "/dev/zero (deleted)") == 0 ||
           strncmp(path, "/SYSV", 5) == 0;
}

/* Whether the path may still lead to the file; else only the mapping does. */
static bool is_reachable(const char *path)
{
    return !has_suffix(path, " (deleted)") && strncmp(path, "/memfd:", 7) != 0;
}

static bool has_parent_component(const char *path)
{
    return strstr(path, "/../") != NULL || has_suffix(path, "/..");
}

static enum module_failure failure_of(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM ? MODULE_FAILURE_LIMIT
                                                                 : MODULE_FAILURE_NOT_FOUND;
}

/* The worse news of two ways: the one that says most about what is there. */
static enum module_failure worse(enum module_failure a, enum module_failure b)
{
    if (a == MODULE_FAILURE_IDENTITY || b == MODULE_FAILURE_IDENTITY) {
        return MODULE_FAILURE_IDENTITY;
    }
    return a == MODULE_FAILURE_NOT_FOUND ? b : a;
}

/* Takes one number and the character after it off `*text`. */
static bool take_number(char **text, int base, char after, uint64_t *ret)
{
    char *end = NULL;
    errno = 0;
    *ret = strtoull(*text, &end, base);
    if (end == *text || errno != 0 || *end != after) {
        return false;
    }
    *text = end + 1;
    return true;
}

/* "START-END rwxp OFFSET MAJOR:MINOR INODE  PATH" */
static bool parse_maps_line(char *text, struct maps_line *ret)
{
    uint64_t offset = 0;
    if (!take_number(&text, 16, '-', &ret->start) || !take_number(&text, 16, ' ', &ret->end)) {
        return false;
    }
    text = strchr(text, ' ');
    if (text == NULL) {
        return false;
    }
    text++;
    if (!take_number(&text, 16, ' ', &offset) || !take_number(&text, 16, ':', &ret->device_major) ||
        !take_number(&text, 16, ' ', &ret->device_minor)) {
        return false;
    }
    char *end = NULL;
    ret->inode = strtoull(text, &end, 10);
    return end != text;
}

/* The line of /proc/PID/maps that holds `address` now. */
static bool find_maps_line(int process_fd, uint64_t address, struct maps_line *ret)
{
    int fd = openat(process_fd, "maps", O_RDONLY | O_CLOEXEC);
    FILE *maps = fd < 0 ? NULL : fdopen(fd, "re");
    if (maps == NULL) {
        close_fd(fd);
        return false;
    }
    cleanup_(freep) char *text = NULL;
    size_t capacity = 0;
    bool found = false;
    for (size_t i = 0; !found && i < MAPS_LINES_MAX && getline(&text, &capacity, maps) > 0; i++) {
        struct maps_line line;
        if (!parse_maps_line(text, &line) || line.start > address) {
            break;
        }
        if (address < line.end) {
            *ret = line;
            found = true;
        }
    }
    (void)fclose(maps);
    return found;
}

static bool is_line_of(const struct maps_line *line, const struct module_query *query)
{
    return line->device_major == query->device_major && line->device_minor == query->device_minor &&
           line->inode == query->inode && query->inode != 0;
}

static int open_map_file(int process_fd, uint64_t start, uint64_t end)
{
    char path[64];
    (void)snprintf(path, sizeof path, "map_files/%" PRIx64 "-%" PRIx64, start, end);
    return openat(process_fd, path, O_PATH | O_CLOEXEC);
}

/* The inode of the mapping itself, or -1. */
static int open_mapping(struct search *search, int process_fd)
{
    const struct module_query *query = search->query;
    if (query->has_build_id) {
        int fd = open_map_file(process_fd, query->start, query->end);
        if (fd >= 0) {
            return fd;
        }
    }
    struct maps_line line;
    if (!find_maps_line(process_fd, query->start, &line)) {
        return -1;
    }
    search->line_agrees = is_line_of(&line, query);
    return query->has_build_id || search->line_agrees
               ? open_map_file(process_fd, line.start, line.end)
               : -1;
}

static int open_inside(int root_fd, const char *path)
{
    const struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
}

/* Whether what was reached by a path has the device and inode that were mapped. */
static bool is_mapped_inode(const struct search *search, const struct stat *status)
{
    const struct module_query *query = search->query;
    bool same_device = major(status->st_dev) == query->device_major &&
                       minor(status->st_dev) == query->device_minor;
    /* Some filesystems show another device in maps than in stat(), but the same inode. */
    return status->st_ino == query->inode && (same_device || search->line_agrees);
}

/* Opens for reading what `path_fd` (borrowed) stands for. */
static enum module_failure open_for_reading(const struct search *search, int path_fd, bool by_path,
                                            struct module_file *ret)
{
    struct statx known;
    if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &known) < 0) {
        return failure_of(errno);
    }
    if (!S_ISREG(known.stx_mode)) {
        return MODULE_FAILURE_NOT_FILE;
    }
    if (!search->guard(makedev(known.stx_dev_major, known.stx_dev_minor), search->userdata)) {
        return MODULE_FAILURE_NOT_FOUND;
    }

    char path[64];
    struct stat status;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", path_fd);
    cleanup_(closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &status) < 0) {
        return failure_of(errno);
    }
    if (by_path && !search->query->has_build_id && !is_mapped_inode(search, &status)) {
        return MODULE_FAILURE_IDENTITY;
    }
    *ret = (struct module_file){
        .fd = take_fd(fd),
        .identity =
            {
                .device = status.st_dev,
                .inode = status.st_ino,
                .size_bytes = (uint64_t)status.st_size,
                .changed_s = status.st_ctim.tv_sec,
                .changed_ns = status.st_ctim.tv_nsec,
            },
    };
    return MODULE_FAILURE_NONE;
}

/* Goes by the path inside one root (borrowed; negative: there is none). */
static enum module_failure open_by_path(const struct search *search, int root_fd,
                                        struct module_file *ret)
{
    const struct module_query *query = search->query;
    if (root_fd < 0 || !is_reachable(query->path)) {
        return MODULE_FAILURE_NOT_FOUND;
    }
    if (query->inode != 0 &&
        !search->guard(makedev(query->device_major, query->device_minor), search->userdata)) {
        return MODULE_FAILURE_NOT_FOUND;
    }
    cleanup_(closep) int path_fd = open_inside(root_fd, query->path);
    return path_fd < 0 ? failure_of(errno) : open_for_reading(search, path_fd, true, ret);
}

static int open_process(int32_t pid)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%" PRId32, pid);
    return pid > 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

static int open_root(int process_fd)
{
    return process_fd < 0 ? -1 : openat(process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* While the process lives; `*ret_gone` when there is nothing left of it to go by. */
static enum module_failure open_of_process(struct search *search, struct module_file *ret,
                                           bool *ret_gone)
{
    cleanup_(closep) int process_fd = open_process(search->query->pid);
    cleanup_(closep) int mapping_fd = process_fd < 0 ? -1 : open_mapping(search, process_fd);
    if (mapping_fd >= 0) {
        return open_for_reading(search, mapping_fd, false, ret);
    }
    cleanup_(closep) int root_fd = open_root(process_fd);
    *ret_gone = root_fd < 0;
    return open_by_path(search, root_fd, ret);
}

enum module_failure module_file_open(const struct module_query *query, module_file_guard_fn guard,
                                     void *userdata, struct module_file *ret)
{
    struct search search = {.query = query, .guard = guard, .userdata = userdata};
    bool gone = false;
    if (is_memory(query->path)) {
        return MODULE_FAILURE_NOT_FILE;
    }
    if (has_parent_component(query->path) || strlen(query->path) >= PATH_MAX) {
        return MODULE_FAILURE_NOT_FOUND;
    }
    enum module_failure failure = open_of_process(&search, ret, &gone);
    if (!gone) {
        return failure;
    }

    cleanup_(closep) int parent_fd = open_process(query->parent_pid);
    cleanup_(closep) int parent_root_fd = open_root(parent_fd);
    failure = open_by_path(&search, parent_root_fd, ret);
    if (failure == MODULE_FAILURE_NONE) {
        return failure;
    }
    cleanup_(closep) int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    enum module_failure last = open_by_path(&search, root_fd, ret);
    return last == MODULE_FAILURE_NONE ? last : worse(failure, last);
}

enum module_failure module_file_open_kernel(struct module_file *ret)
{
    int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return failure_of(errno);
    }
    *ret = (struct module_file){.fd = fd};
    return MODULE_FAILURE_NONE;
}

uid_t module_file_owner(int32_t pid)
{
    struct stat status;
    cleanup_(closep) int process_fd = open_process(pid);
    return process_fd >= 0 && fstat(process_fd, &status) == 0 ? status.st_uid : (uid_t)-1;
}
