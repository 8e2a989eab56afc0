/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much memory this process may use: the machine's, or what its control group, or one above it,
 * allows. A process that takes more is killed.
 */

#include <stdint.h>

#define MEMORY_LIMIT_GROUPS "/proc/self/cgroup"
#define MEMORY_LIMIT_ROOT   "/sys/fs/cgroup"

/*
 * In bytes. `groups_path` names the file that says in which groups the process is, `root` the
 * folder below which they are: MEMORY_LIMIT_GROUPS and MEMORY_LIMIT_ROOT but in tests. What cannot
 * be read limits nothing.
 */
uint64_t memory_limit_bytes(const char *groups_path, const char *root);
