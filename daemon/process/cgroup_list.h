/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The control groups that one walk has found, by their ids. What is told later displaces none of
 * them. Pure.
 */

#include <stddef.h>
#include <stdint.h>

struct cgroup_list;

/* `paths` has the path of each id in the same order, each with its NUL; all is copied. Returned;
 * NULL when there is no memory. */
struct cgroup_list *cgroup_list_new(const uint64_t *ids, size_t count, const char *paths);
struct cgroup_list *cgroup_list_free(struct cgroup_list *list);

/* The path of a group (borrowed), or NULL. */
const char *cgroup_list_find(const struct cgroup_list *list, uint64_t id);
