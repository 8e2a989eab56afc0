/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two sets of pids, one bit a pid: the targets and the excluded. A fork gives the new pid its
 * parent's place among the targets, and none among the excluded. Memory that no pid touches is
 * never paid.
 */
#include "filter.h"

#include <errno.h>
#include <stdlib.h>

#define WORD_BITS 64

struct filter {
    bool has_targets;
    bool kernel_threads;
    int32_t excluded_parent_pid;
    uint64_t targets[FILTER_PIDS_MAX / WORD_BITS];
    uint64_t excluded[FILTER_PIDS_MAX / WORD_BITS];
};

static bool contains(const uint64_t *set, int32_t pid)
{
    return pid > 0 && pid < FILTER_PIDS_MAX && (set[pid / WORD_BITS] >> (pid % WORD_BITS) & 1) != 0;
}

/* Changes nothing that is so already, so that a page of zeros stays untouched. */
static void put(uint64_t *set, int32_t pid, bool present)
{
    if (contains(set, pid) != present && pid > 0 && pid < FILTER_PIDS_MAX) {
        set[pid / WORD_BITS] ^= (uint64_t)1 << (pid % WORD_BITS);
    }
}

struct filter *filter_new(const struct filter_config *config)
{
    struct filter *filter = calloc(1, sizeof *filter);
    if (filter == NULL) {
        return NULL;
    }
    filter->has_targets = config->target_pid_count > 0;
    filter->kernel_threads = config->kernel_threads;
    filter->excluded_parent_pid = config->excluded_parent_pid;
    for (size_t i = 0; i < config->target_pid_count; i++) {
        put(filter->targets, config->target_pids[i], true);
    }
    for (size_t i = 0; i < config->excluded_pid_count; i++) {
        put(filter->excluded, config->excluded_pids[i], true);
    }
    return filter;
}

struct filter *filter_free(struct filter *filter)
{
    free(filter);
    return NULL;
}

int filter_fork(struct filter *filter, int32_t pid, int32_t parent_pid)
{
    if (pid >= FILTER_PIDS_MAX) {
        return -ENOSPC;
    }
    if (pid != parent_pid) {
        put(filter->targets, pid, contains(filter->targets, parent_pid));
        put(filter->excluded, pid, parent_pid == filter->excluded_parent_pid);
    }
    return 0;
}

bool filter_matches(const struct filter *filter, int32_t pid, bool kernel_thread)
{
    if ((kernel_thread && !filter->kernel_threads) || contains(filter->excluded, pid)) {
        return false;
    }
    return !filter->has_targets || contains(filter->targets, pid);
}
