/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is known of a process that may be asked: from /proc, by one descriptor of its folder there,
 * so that all of it is of one process even if the pid is used again.
 */

#include "session_targets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct runtime_mappings;

#define NAMING_COMM_BYTES ((size_t)16)

struct naming_process {
    int folder; /* of /proc/PID; owned; -1: none */
    pid_t pid;
    pid_t parent;
    pid_t inner; /* in its own namespace */
    uid_t real_uid;
    uid_t uid; /* effective, as the next */
    gid_t gid;
    uint64_t caught; /* signals, bit 0 is signal 1 */
    char comm[NAMING_COMM_BYTES];
};

/* Opens a process and reads what /proc says. False: there is none, or the caller may not see it. */
bool naming_process_open(pid_t pid, struct naming_process *ret);
void naming_process_close(struct naming_process *process);

/* Whether there is nothing of it any more, not even its status for its parent. */
bool naming_process_has_ended(const struct naming_process *process);

/*
 * Reads again what /proc says of the process, which the second argument then has, with the same
 * folder (borrowed). True: its users and its group are those of before. A process that was root
 * when it was first looked at may run a user's program by now, so this comes last before a look or
 * an act is relied on.
 */
bool naming_process_confirm(const struct naming_process *process, struct naming_process *ret_now);

/* Opens the folder in which the process works, to find names in and not to list. Its /tmp is
 * own_map.h's. Returns a descriptor: close(); or -1 with errno. */
int naming_process_open_cwd(const struct naming_process *process);

/* Takes the members above from the text of /proc/PID/status. False: one is missing. Pure.
 */
bool naming_process_parse(const char *status, struct naming_process *ret);

/* Whether the session records the process; all do where there are no targets. Without the pids of
 * children. */
bool naming_process_is_target(const struct naming_process *process,
                              const struct session_targets *targets);

/* Whether the text of /proc/PID/cgroup is of a group that is named, or below one, or of a unit.
 * Pure, but for the text (changed). */
bool naming_cgroup_matches(char *text, const struct session_targets *targets);

/* Reads a file of the process, NULs for what ends in none. Returns the bytes, or -errno. */
ssize_t naming_process_read(const struct naming_process *process, const char *name, char *into,
                            size_t capacity_bytes);

/* The runtime in it (runtimes.h), or RUNTIME_NONE, also where its user has changed meanwhile.
 * `*ret_is_old_python` is of a Python that cannot name what it runs. */
size_t naming_process_runtime(const struct naming_process *process,
                              struct runtime_mappings *ret_mappings, bool *ret_is_old_python);
