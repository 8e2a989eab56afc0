/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kernel's ids of control groups -> their paths, and whose processes these hold. A path comes
 * from a record of the kernel when a group is made, or from a walk of the mounted hierarchy
 * (proc_cgroups.h). Pure.
 *
 * What was told and never sampled is kept in a bounded memory in which the new takes the place of
 * the old: a user can make and remove groups as fast as the kernel lets him. A group that was
 * sampled stays, and is charged to an account (quota.h).
 */

#include "cgroup_owner.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cgroup {
    uint64_t id;
    const char *path; /* from the root of the hierarchy: "/", "/system.slice/cron.service" */
    struct cgroup_owner owner;
    uint64_t owner_key; /* equal for groups of one owner */
};

struct cgroup_table;

/* Returned; NULL when there is no memory. */
struct cgroup_table *cgroup_table_new(void);
struct cgroup_table *cgroup_table_free(struct cgroup_table *table);

/* An id never comes back, so a path that is known already stays. */
void cgroup_table_tell(struct cgroup_table *table, uint64_t id, const char *path);

/* Takes the groups that a walk has found (copied), in the place of those of the last one; `paths`
 * has the path of each id in the same order, each with its NUL. */
void cgroup_table_list(struct cgroup_table *table, const uint64_t *ids, size_t count,
                       const char *paths);

/* Whether a group's path is known. */
bool cgroup_table_knows(struct cgroup_table *table, uint64_t id);

/* The group of a sample of a process that is charged to `account`; valid until the table is freed.
 * NULL: it is not known, or the account has its share. */
const struct cgroup *cgroup_table_find(struct cgroup_table *table, uint64_t id, uint32_t account);
