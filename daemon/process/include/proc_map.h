/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Asks the kernel for one mapping of a process (PROCMAP_QUERY, Linux 6.11 and newer). The text of
 * /proc/PID/maps has no bound: a user can make a path of any length, folder by folder, and the
 * kernel prints all of it into its own memory on account of the reader: 500 MB for one line were
 * seen. An answer to a query has at most PROC_MAP_PATH_BYTES of it.
 */

#include "process_table.h"

#define PROC_MAP_PATH_BYTES ((size_t)4096)

/*
 * The first executable mapping of which a part lies at or behind `from`, by the open file
 * /proc/PID/maps. `ret->path` points into `path`; a path without room there is "//toolong", as in
 * the kernel's records. Returns 0; -ENOENT: there is none; -ENOTTY: this kernel answers no queries;
 * or another -errno: the process is gone, or may not be read.
 */
int proc_map_query(int maps_fd, uint64_t from, char path[PROC_MAP_PATH_BYTES],
                   struct mapping_description *ret);

/* The mapping that holds `address`, executable or not, without its path. Returns as the other. */
int proc_map_at(int maps_fd, uint64_t address, struct mapping_description *ret);
