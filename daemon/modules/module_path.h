/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Paths inside a process's root, walked so that no filesystem is touched that is known to hang. May
 * hang itself: for opener threads only.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where a step leads, as the kernel knows it without asking the filesystem. */
struct module_place {
    uint64_t device;
    uint64_t inode;    /* 0: not known */
    uint64_t mount_id; /* 0: not known */
};

/* Asked before each step that may wait for the filesystem of that place; false: do not touch it. */
typedef bool (*module_path_guard_fn)(const struct module_place *place, void *userdata);

/*
 * Opens with O_PATH (returned: close) what the absolute `path` means inside `root_fd` (borrowed),
 * symbolic links included, which lead nowhere else. Returns a descriptor or -errno; -EBUSY when the
 * guard said no.
 */
int module_path_open(int root_fd, const char *path, module_path_guard_fn guard, void *userdata);

/* The place of what `fd` (borrowed, O_PATH is enough) stands for, and its type. Returns 0, or
 * -errno.
 */
int module_path_place(int fd, struct module_place *ret, mode_t *ret_mode);
