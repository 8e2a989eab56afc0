/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The map in which a process names the code that it makes, where the daemon looks for it:
 * /tmp/perf-PID.map in the process's own root. Processes are given by their folder in /proc
 * (borrowed). The root of a container is its user's: no link in it leads out of it.
 */

#include <stdbool.h>
#include <sys/types.h>

/* Opens the /tmp of a process, to find names in and not to list. Returns a descriptor: close(); or
 * -1 with errno. */
int own_map_open_tmp(int process_folder);

/* Whether a file of that user is there, with something in it. `inner` is the pid of the process in
 * its own namespace. */
bool own_map_is_there(int process_folder, pid_t inner, uid_t uid);

/*
 * Makes the map of a process in `tmp`, empty, as the user that the caller is, unless that user has
 * one there already. Returns 0; -EEXIST: something else has its name; -EPERM: the folder lets other
 * users replace it; or -errno. `*ret_is_new` is whether it was made.
 */
int own_map_make(int tmp, pid_t inner, uid_t uid, bool *ret_is_new);

/* Removes it if nothing was written to it. */
void own_map_drop_empty(int tmp, pid_t inner);
