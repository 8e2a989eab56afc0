/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which samples a session keeps: target pids with the children that they fork, less the excluded
 * pids. Pure; the collector tells it of forks in the order of their time. With no target,
 * everything matches. Kernel threads (by the caller's knowledge) match unless the session leaves
 * them out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct filter;

struct filter_config {
    const int32_t *target_pids; /* borrowed; none: everything is a target */
    size_t target_pid_count;
    const int32_t *excluded_pids; /* borrowed; for exclude_self */
    size_t excluded_pid_count;
    int32_t excluded_parent_pid; /* whose later children are excluded too; 0: nobody's */
    bool kernel_threads;         /* false: their samples are filtered */
};

/* Returned; NULL when there is no memory. */
struct filter *filter_new(const struct filter_config *config);
struct filter *filter_free(struct filter *filter);

/*
 * A process came into being: a target's child is a target, and nobody else's is, whatever its pid
 * stood for before. Returns 0, or -ENOSPC for a pid beyond FILTER_PIDS_MAX, the kernel's own limit:
 * a set of all pids is small enough that no child is ever turned away, and no exit need be told. A
 * new thread (pid and parent_pid equal) changes nothing.
 */
#define FILTER_PIDS_MAX 4194304
int filter_fork(struct filter *filter, int32_t pid, int32_t parent_pid);

/* pids 0 and -1 (outside, exited) are kept unless there are targets, which they never match. */
bool filter_matches(const struct filter *filter, int32_t pid, bool kernel_thread);
