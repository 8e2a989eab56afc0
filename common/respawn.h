/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Starts this program anew, as a child with nothing of ours but the descriptors it is given. */

#include <stddef.h>
#include <sys/types.h>

#define RESPAWN_FIRST_FD 3
#define RESPAWN_FDS_MAX  4

/*
 * Executes this program with `argument` as its only argument, `name` as its own name, and an empty
 * environment, in a process group of its own: no key of a terminal ends it. `fds` (borrowed, at
 * most RESPAWN_FDS_MAX) become its descriptors RESPAWN_FIRST_FD and so on; those below are
 * /dev/null. No signal is blocked or ignored there. Returns 0, or -errno.
 */
int respawn(const char *name, const char *argument, const int *fds, size_t fd_count,
            pid_t *ret_pid);
