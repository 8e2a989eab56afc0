/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A walk level by level: the list of what was found is also the list of what is to be read. So the
 * groups near the root, which are the system's, come before the deep ones, which users make, and
 * however many these are, they are the ones that are left out. The number of an inode in such a
 * filesystem is the id of the group. The number of groups and the bytes of their paths are bounded;
 * what is beyond is left out, and the reading is cut. A group that ends meanwhile is none.
 */
#include "proc_cgroups.h"

#include "cleanup.h"
#include "clock.h"
#include "grow.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define PATH_BYTES_MAX ((size_t)4096)
#define PATHS_LEAST    ((size_t)16384)

struct walk {
    uint64_t *ids;
    size_t count;
    size_t capacity;
    char *paths; /* one behind the other, each with its NUL */
    size_t paths_bytes;
    size_t paths_capacity;
    bool is_full;
    bool cut;
    char path[PATH_BYTES_MAX]; /* of the group that is read, and then of one below */
};

/* Opens the root of the hierarchy, or returns -errno. */
static int open_root(void)
{
    static const struct {
        const char *path;
        long magic;
    } roots[] = {
        {"/sys/fs/cgroup/perf_event", CGROUP_SUPER_MAGIC},
        {"/sys/fs/cgroup", CGROUP2_SUPER_MAGIC},
        {"/sys/fs/cgroup/unified", CGROUP2_SUPER_MAGIC},
    };
    int error = -ENOENT;
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        cleanup_(closep) int fd = open(roots[i].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct statfs filesystem;
        if (fd < 0 || fstatfs(fd, &filesystem) < 0) {
            error = -errno;
        } else if (filesystem.f_type == roots[i].magic) {
            return take_fd(fd);
        }
    }
    return error;
}

/* Notes the group of walk->path. */
static int note(struct walk *walk, uint64_t id)
{
    size_t bytes = strlen(walk->path) + 1;
    if (walk->count == PROC_CGROUPS_MAX || walk->paths_bytes + bytes > PROC_CGROUPS_BYTES_MAX) {
        walk->is_full = true;
        walk->cut = true;
        return 0;
    }
    if (grow(walk->ids, walk->capacity, walk->count + 1) < 0 ||
        grow_from(walk->paths, walk->paths_capacity, walk->paths_bytes + bytes, PATHS_LEAST) < 0) {
        return -ENOMEM;
    }
    memcpy(walk->paths + walk->paths_bytes, walk->path, bytes);
    walk->paths_bytes += bytes;
    walk->ids[walk->count++] = id;
    return 0;
}

/* Takes an entry of the group whose path is the first `path_bytes` of walk->path. */
static int take(struct walk *walk, size_t path_bytes, const struct dirent *entry)
{
    const char *name = entry->d_name;
    size_t name_bytes = strlen(name);
    if (entry->d_type != DT_DIR || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return 0;
    }
    if (path_bytes + 1 + name_bytes >= sizeof walk->path) {
        walk->cut = true;
        return 0;
    }
    walk->path[path_bytes] = '/';
    memcpy(walk->path + path_bytes + 1, name, name_bytes + 1);
    return note(walk, entry->d_ino);
}

/* A group that has ended has nothing below it. */
static void note_failure(struct walk *walk, int error)
{
    walk->cut = walk->cut || (error != 0 && error != ENOENT && error != ENODEV);
}

/* Notes what is directly below a group of the list. */
static int read_group(struct walk *walk, int root_fd, const char *path)
{
    const bool is_root = path[1] == '\0';
    const size_t path_bytes = is_root ? 0 : strlen(path);
    int fd =
        openat(root_fd, is_root ? "." : path + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        note_failure(walk, errno);
        return 0;
    }
    DIR *folder = fdopendir(fd); /* which has it then */
    if (folder == NULL) {
        (void)close_fd(fd);
        return -ENOMEM;
    }
    memcpy(walk->path, path, path_bytes);
    const struct dirent *entry = NULL;
    int r = 0;
    while (r == 0 && !walk->is_full && (errno = 0, (entry = readdir(folder)) != NULL)) {
        r = take(walk, path_bytes, entry);
    }
    if (entry == NULL) {
        note_failure(walk, errno);
    }
    (void)closedir(folder);
    return r;
}

/* The root, and all below it. */
static int walk_all(struct walk *walk, int root_fd)
{
    struct stat root;
    if (fstat(root_fd, &root) < 0) {
        return -errno;
    }
    walk->path[0] = '/';
    int r = note(walk, root.st_ino);
    for (size_t at = 0; r == 0 && !walk->is_full && at < walk->paths_bytes;) {
        char path[PATH_BYTES_MAX]; /* the list may move */
        size_t bytes = strlen(walk->paths + at) + 1;
        memcpy(path, walk->paths + at, bytes);
        r = read_group(walk, root_fd, path);
        at += bytes;
    }
    return r;
}

static struct proc_reading *pack(const struct walk *walk)
{
    const size_t id_bytes = walk->count * sizeof *walk->ids;
    const size_t bytes = sizeof(struct proc_reading) + id_bytes + walk->paths_bytes;
    struct proc_reading *reading = walk->count == 0 ? NULL : malloc(bytes);
    if (reading != NULL) {
        uint64_t *ids = (uint64_t *)(reading + 1);
        char *paths = (char *)(ids + walk->count);
        memcpy(ids, walk->ids, id_bytes);
        memcpy(paths, walk->paths, walk->paths_bytes);
        *reading = (struct proc_reading){
            .bytes = bytes,
            .part = PROC_PART_CGROUPS,
            .cut = walk->cut,
            .cgroups = "",
            .cgroup_ids = ids,
            .cgroup_count = walk->count,
            .cgroup_paths = paths,
        };
    }
    return reading;
}

struct proc_reading *proc_cgroups_read(int urgency)
{
    const uint64_t begin_ns = clock_ns(CLOCK_BOOTTIME);
    struct proc_reading *reading = NULL;
    struct walk *walk = calloc(1, sizeof *walk);
    cleanup_(closep) int root_fd = walk == NULL ? -ENOMEM : open_root();
    int r = root_fd < 0 ? root_fd : walk_all(walk, root_fd);
    if (r == 0) {
        reading = pack(walk);
        r = reading == NULL ? -ENOMEM : 0;
    }
    if (walk != NULL) {
        free(walk->ids);
        free(walk->paths);
        free(walk);
    }
    if (reading == NULL) {
        reading = proc_reading_failed(PROC_PART_CGROUPS, 0, 0);
    }
    if (reading != NULL) {
        reading->error = r;
        reading->urgency = urgency;
        reading->scan.begin_ns = begin_ns;
        reading->scan.end_ns = clock_ns(CLOCK_BOOTTIME);
    }
    return reading;
}
