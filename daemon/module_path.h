/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Paths inside a process's root, walked so that no filesystem is touched that is known to hang. May
 * hang itself: for opener threads only.
 */

#include <stdbool.h>
#include <stdint.h>

/* Asked before each step that may wait for the filesystem `device`; false: do not touch it. */
typedef bool (*module_file_guard_fn)(uint64_t device, void *userdata);

/*
 * Opens with O_PATH (returned: close) what the absolute `path` means inside `root_fd` (borrowed),
 * symbolic links included, which lead nowhere else. Returns a descriptor or -errno; -EBUSY when the
 * guard said no.
 */
int module_path_open(int root_fd, const char *path, module_file_guard_fn guard, void *userdata);
