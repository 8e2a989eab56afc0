/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which samples a session keeps: those of its targets, less the excluded pids. Any match is enough:
 * a target pid or a child that one forks, a tid, a name of the thread or of its leader at the time
 * of the sample, the uid or a cgroup of the process as they were last read, the systemd unit of the
 * sample's own control group. With no target, everything matches. Kernel threads match unless the
 * session leaves them out. Pure; the collector reports forks in the order of their time.
 */

#include "cgroup_table.h"
#include "process_table.h"
#include "session_targets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct filter;

#define FILTERS_MAX 8 /* of one process table, by their numbers */

struct filter_config {
    unsigned number;                       /* from 0 to FILTERS_MAX - 1 */
    const struct session_targets *targets; /* borrowed; NULL or empty: everything is a target */
    const int32_t *excluded_pids;          /* borrowed; for exclude_self */
    size_t excluded_pid_count;
    int32_t excluded_parent_pid; /* its later children are excluded, too; 0: none */
    bool kernel_threads;         /* false: their samples are filtered */
};

/* Returned; NULL when there is no memory. */
struct filter *filter_new(const struct filter_config *config);
struct filter *filter_free(struct filter *filter);

/*
 * Notes a new process or, where pid and parent_pid are equal, a new thread. The child of a target
 * is a target; any other new process is none, whatever its pid was before; a new tid is none.
 * Returns 0, or -ENOSPC for a pid or tid beyond FILTER_PIDS_MAX, the kernel's own limit. The set
 * has room for all pids, so no child is refused, and exits need not be reported.
 */
#define FILTER_PIDS_MAX 4194304
int filter_fork(struct filter *filter, int32_t pid, int32_t parent_pid, int32_t tid);

/* True when uids or cgroups are targets, so that each process's own must be read. */
bool filter_wants_identity(const struct filter *filter);
/* True when the effective uid or the text of /proc/PID/cgroup is a target's. */
bool filter_matches_identity(const struct filter *filter, uint32_t uid, const char *cgroups);

/*
 * Whether a sample is kept. `process` is the one that had the pid then, `cgroup` the group that it
 * was in; NULL where nothing is known of them. pids 0 and -1 (outside, exited) are kept unless
 * there are targets, which they never match.
 */
bool filter_matches(const struct filter *filter, struct process *process,
                    const struct cgroup *cgroup, int32_t pid, int32_t tid, uint64_t time_ns);
