/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Three sets of pids, one bit a pid: the target pids, the target tids and the excluded. A fork
 * gives the new pid its parent's place among the target pids, and none among the others. Memory
 * that no pid touches is never paid.
 *
 * Globs are matched once for each name that a thread has, and once for each control group, and the
 * verdict is kept until another name or group takes its place. Cgroups are matched once for each
 * reading of /proc, and the process table keeps what came of it. So a sample costs no comparison of
 * texts. But a thread may have another name at each sample, so globs are compiled (comm_glob.h).
 */
#include "filter.h"

#include "cgroup_prefix.h"
#include "comm_glob.h"

#include <errno.h>
#include <stdlib.h>

#define WORD_BITS 64
#define VERDICTS  4096

struct verdict {
    uint64_t number; /* of a name or a group; 0: of none */
    bool matches;
};

struct filter {
    unsigned number;
    struct session_targets targets;
    struct comm_glob *globs;  /* owned; of the targets */
    struct verdict *verdicts; /* owned; a place for each number */
    struct verdict *units;    /* owned; the same for ids of control groups */
    bool has_targets;
    bool kernel_threads;
    int32_t excluded_parent_pid;
    uint64_t pids[FILTER_PIDS_MAX / WORD_BITS];
    uint64_t tids[FILTER_PIDS_MAX / WORD_BITS];
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

static void put_all(uint64_t *set, const int32_t *pids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(set, pids[i], true);
    }
}

struct filter *filter_new(const struct filter_config *config)
{
    struct filter *filter = calloc(1, sizeof *filter);
    if (filter == NULL) {
        return NULL;
    }
    if (config->targets != NULL) {
        filter->targets = *config->targets;
    }
    filter->number = config->number;
    filter->has_targets = !session_targets_empty(&filter->targets);
    filter->kernel_threads = config->kernel_threads;
    filter->excluded_parent_pid = config->excluded_parent_pid;
    put_all(filter->pids, filter->targets.pids, filter->targets.pid_count);
    put_all(filter->tids, filter->targets.tids, filter->targets.tid_count);
    put_all(filter->excluded, config->excluded_pids, config->excluded_pid_count);
    filter->globs = calloc(filter->targets.comm_count + 1, sizeof *filter->globs);
    filter->verdicts = calloc(VERDICTS, sizeof *filter->verdicts);
    filter->units = calloc(VERDICTS, sizeof *filter->units);
    if (filter->globs == NULL || filter->verdicts == NULL || filter->units == NULL) {
        return filter_free(filter);
    }
    for (size_t i = 0; i < filter->targets.comm_count; i++) {
        comm_glob_compile(filter->targets.comms[i], &filter->globs[i]);
    }
    return filter;
}

struct filter *filter_free(struct filter *filter)
{
    if (filter != NULL) {
        free(filter->globs);
        free(filter->verdicts);
        free(filter->units);
        free(filter);
    }
    return NULL;
}

int filter_fork(struct filter *filter, int32_t pid, int32_t parent_pid, int32_t tid)
{
    if (pid >= FILTER_PIDS_MAX || tid >= FILTER_PIDS_MAX) {
        return -ENOSPC;
    }
    put(filter->tids, tid, false);
    if (pid != parent_pid) {
        put(filter->pids, pid, contains(filter->pids, parent_pid));
        put(filter->excluded, pid, parent_pid == filter->excluded_parent_pid);
    }
    return 0;
}

bool filter_wants_identity(const struct filter *filter)
{
    return filter->targets.uid_count > 0 || filter->targets.cgroup_count > 0;
}

bool filter_matches_identity(const struct filter *filter, uint32_t uid, const char *cgroups)
{
    const struct session_targets *targets = &filter->targets;
    for (size_t i = 0; i < targets->uid_count; i++) {
        if (targets->uids[i] == uid) {
            return true;
        }
    }
    for (size_t i = 0; i < targets->cgroup_count; i++) {
        if (cgroup_has_prefix(cgroups, targets->cgroups[i])) {
            return true;
        }
    }
    return false;
}

static bool matches_a_glob(const struct filter *filter, const char *name)
{
    for (size_t i = 0; i < filter->targets.comm_count; i++) {
        if (comm_glob_matches(&filter->globs[i], name)) {
            return true;
        }
    }
    return false;
}

/* By the name that the thread had at the time. */
static bool is_named(const struct filter *filter, struct process *process, int32_t tid,
                     uint64_t time_ns)
{
    struct thread *thread = process_find_thread(process, tid, time_ns);
    const struct name *name = thread == NULL ? NULL : process_thread_name(thread, time_ns);
    if (name == NULL || name->text[0] == '\0') {
        return false;
    }
    struct verdict *verdict = &filter->verdicts[name->number % VERDICTS];
    if (verdict->number != name->number || name->number == 0) {
        *verdict = (struct verdict){name->number, matches_a_glob(filter, name->text)};
    }
    return verdict->matches;
}

static bool matches_a_unit(const struct filter *filter, const struct cgroup *cgroup)
{
    const struct cgroup_part parts[] = {cgroup->owner.unit, cgroup->owner.user_unit};
    for (size_t i = 0; i < filter->targets.unit_count; i++) {
        for (size_t part = 0; part < sizeof parts / sizeof parts[0]; part++) {
            if (parts[part].bytes > 0 &&
                unit_glob_matches(filter->targets.units[i], parts[part].text, parts[part].bytes)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_of_unit(const struct filter *filter, const struct cgroup *cgroup)
{
    struct verdict *verdict = &filter->units[cgroup->id % VERDICTS];
    if (verdict->number != cgroup->id) {
        *verdict = (struct verdict){cgroup->id, matches_a_unit(filter, cgroup)};
    }
    return verdict->matches;
}

static bool is_target(const struct filter *filter, struct process *process,
                      const struct cgroup *cgroup, int32_t pid, int32_t tid, uint64_t time_ns)
{
    if (contains(filter->pids, pid) || contains(filter->tids, tid)) {
        return true;
    }
    if (process == NULL) {
        return false;
    }
    if ((process->identity_matches >> filter->number & 1) != 0 ||
        (filter->targets.unit_count > 0 && cgroup != NULL && is_of_unit(filter, cgroup))) {
        return true;
    }
    return filter->targets.comm_count > 0 &&
           (is_named(filter, process, tid, time_ns) ||
            (tid != pid && is_named(filter, process, pid, time_ns)));
}

bool filter_matches(const struct filter *filter, struct process *process,
                    const struct cgroup *cgroup, int32_t pid, int32_t tid, uint64_t time_ns)
{
    bool kernel_thread = process != NULL && process->kernel_thread;
    if ((kernel_thread && !filter->kernel_threads) || contains(filter->excluded, pid)) {
        return false;
    }
    return !filter->has_targets ||
           (pid > 0 && is_target(filter, process, cgroup, pid, tid, time_ns));
}
