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

/* Whether a file of that user is there. `inner` is the pid of the process in its own namespace. */
bool own_map_is_there(int process_folder, pid_t inner, uid_t uid);
