/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opens a path one component at a time. Before each component is looked up, the guard is asked
 * about the filesystem of its folder, which is known by then. So a path that crosses a dead mount
 * is given up before the mount, and a thread that hangs is known to hang on that filesystem.
 *
 * The path so far is also kept as text without links, for "..", which must not leave the root.
 */
#include "module_path.h"

#include "cleanup.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define DETOURS_MAX 40 /* links and ".." on the way */

struct walk {
    int root_fd; /* borrowed */
    module_path_guard_fn guard;
    void *userdata;
    int fd;               /* where we are */
    char done[PATH_MAX];  /* how to get there from the root, without links */
    char rest[PATH_MAX];  /* what is to be walked, */
    size_t at;            /* from here on */
    char spare[PATH_MAX]; /* where a link's target is put together */
    unsigned detour_count;
};

static int move_to(struct walk *walk, int fd)
{
    if (fd < 0) {
        return fd;
    }
    close_fd(walk->fd);
    walk->fd = fd;
    return 0;
}

static int move_to_root(struct walk *walk)
{
    walk->done[0] = '\0';
    int fd = fcntl(walk->root_fd, F_DUPFD_CLOEXEC, 0);
    return move_to(walk, fd < 0 ? -errno : fd);
}

/* Puts the first `bytes` bytes of `spare` in front of what is to be walked. */
static int prepend(struct walk *walk, size_t bytes)
{
    const char *rest = walk->rest + walk->at;
    size_t rest_bytes = strlen(rest);
    if (++walk->detour_count > DETOURS_MAX) {
        return -ELOOP;
    }
    if (bytes + 1 + rest_bytes >= sizeof walk->spare) {
        return -ENAMETOOLONG;
    }
    walk->spare[bytes] = '/';
    memcpy(walk->spare + bytes + 1, rest, rest_bytes + 1);
    memcpy(walk->rest, walk->spare, bytes + 1 + rest_bytes + 1);
    walk->at = 0;
    return 0;
}

/* From the root to the folder above: ".." itself could lead elsewhere by the time it is opened. */
static int move_up(struct walk *walk)
{
    const char *last = strrchr(walk->done, '/');
    size_t bytes = last == NULL ? 0 : (size_t)(last - walk->done);
    memcpy(walk->spare, walk->done, bytes);
    int r = prepend(walk, bytes);
    return r < 0 ? r : move_to_root(walk);
}

int module_path_place(int fd, struct module_place *ret, mode_t *ret_mode)
{
    struct statx known;
    unsigned wanted = STATX_TYPE | STATX_INO | STATX_MNT_ID;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, wanted, &known) < 0) {
        return -errno;
    }
    *ret_mode = known.stx_mode;
    *ret = (struct module_place){
        .device = makedev(known.stx_dev_major, known.stx_dev_minor),
        .inode = (known.stx_mask & STATX_INO) != 0 ? known.stx_ino : 0,
        .mount_id = (known.stx_mask & STATX_MNT_ID) != 0 ? known.stx_mnt_id : 0,
    };
    return 0;
}

/* Asks for the filesystem of `fd`; what the kernel knows of it without waiting is enough. */
static int ask(const struct walk *walk, int fd, mode_t *ret_mode)
{
    struct module_place place;
    int r = module_path_place(fd, &place, ret_mode);
    if (r < 0) {
        return r;
    }
    return walk->guard(&place, walk->userdata) ? 0 : -EBUSY;
}

/* Puts a link's target in front of the rest. */
static int follow(struct walk *walk, int link_fd)
{
    ssize_t bytes = readlinkat(link_fd, "", walk->spare, sizeof walk->spare - 1);
    if (bytes < 0) {
        return -errno;
    }
    bool absolute = walk->spare[0] == '/';
    int r = prepend(walk, (size_t)bytes);
    return r == 0 && absolute ? move_to_root(walk) : r;
}

static int enter(struct walk *walk, const char *name)
{
    mode_t mode = 0;
    int r = ask(walk, walk->fd, &mode);
    if (r < 0) {
        return r;
    }
    cleanup_(closep) int fd = openat(walk->fd, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return -errno;
    }
    r = ask(walk, fd, &mode);
    if (r < 0) {
        return r;
    }
    if (S_ISLNK(mode)) {
        return follow(walk, fd);
    }
    size_t done_bytes = strlen(walk->done);
    int bytes = snprintf(walk->done + done_bytes, sizeof walk->done - done_bytes, "/%s", name);
    if ((size_t)bytes >= sizeof walk->done - done_bytes) {
        return -ENAMETOOLONG;
    }
    return move_to(walk, take_fd(fd));
}

/* Takes the first component off the rest; false: there is none. */
static bool take_component(struct walk *walk, char name[NAME_MAX + 1])
{
    const char *begin = walk->rest + walk->at + strspn(walk->rest + walk->at, "/");
    size_t bytes = strcspn(begin, "/");
    if (bytes == 0 || bytes > NAME_MAX) {
        return false;
    }
    memcpy(name, begin, bytes);
    name[bytes] = '\0';
    walk->at = (size_t)(begin - walk->rest) + bytes;
    return true;
}

int module_path_open(int root_fd, const char *path, module_path_guard_fn guard, void *userdata)
{
    struct walk walk = {.root_fd = root_fd, .guard = guard, .userdata = userdata, .fd = -1};
    char name[NAME_MAX + 1];
    if (strlen(path) >= sizeof walk.rest) {
        return -ENAMETOOLONG;
    }
    memcpy(walk.rest, path, strlen(path) + 1);
    int r = move_to_root(&walk);
    while (r == 0 && take_component(&walk, name)) {
        if (strcmp(name, "..") == 0) {
            r = move_up(&walk);
        } else if (strcmp(name, ".") != 0) {
            r = enter(&walk, name);
        }
    }
    if (r == 0 && walk.rest[walk.at + strspn(walk.rest + walk.at, "/")] != '\0') {
        r = -ENAMETOOLONG;
    }
    if (r < 0) {
        close_fd(walk.fd);
        return r;
    }
    return walk.fd;
}
