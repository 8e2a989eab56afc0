/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The search for a file, shared by module_file.c and module_perf_map.c: ways to the file, and
 * proofs of its identity. Each call may hang, as module_file.h says.
 */

#include "module_file.h"

#include <sys/vfs.h>

/* One search: the query, and the guard that may refuse a step. */
struct module_search {
    const struct module_query *query;
    const struct module_guard *guard;
    int process_fd;        /* borrowed: /proc/PID of whose paths are walked now */
    bool is_own;           /* which is the process that mapped it */
    uint64_t local_device; /* known to be of a local filesystem; 0: none */
    uint64_t met_mount_id; /* of the mount where a step met the query's device; 0: none */
};

/* Asks the search's guard for a step to that place: a module_path_guard_fn; `userdata` is a
 * search. */
bool module_search_may_touch(const struct module_place *place, void *userdata);

/* The folder (returned: close) of the process that is meant, and not of one that has its pid since;
 * or -1. */
int module_search_process(const struct module_query *query);

/* The machine's root (returned: close, as the other), as of the process that is returned with it;
 * or -1. */
int module_search_machine_root(int *ret_process_fd);

/* What an errno of opening says: LIMIT, or NOT_FOUND. */
enum module_failure module_search_failure_of(int error);

/* Opens for reading what `path_fd` (borrowed) stands for, if it is a regular file of a filesystem
 * that is not the kernel's own and, unless `mapped` is NULL, can be that of this mapping. */
enum module_failure module_search_open_regular(struct module_search *search, int path_fd,
                                               const struct module_query *mapped,
                                               struct module_file *ret,
                                               struct statfs *ret_filesystem);

/* The author of the file that `fd` (borrowed) stands for, and that a process with the root of
 * `search->process_fd` calls `path`; or MODULE_AUTHOR_UNKNOWN. */
uid_t module_search_author(struct module_search *search, int fd, const char *path);
