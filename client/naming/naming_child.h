/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A child that may hang in the kernel, on a filesystem of another process that never answers. It is
 * given up then, and ends when it can.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The descriptors that a child may keep. */
#define NAMING_KEPT_MAX 80

/*
 * For the child, at its start: signals have their usual effect unless the caller ignores them, it
 * ends with its parent, and only these descriptors (borrowed, sorted here; NAMING_KEPT_MAX at most)
 * are left open. The caller's other files and connections must not stay open with a child that
 * hangs.
 */
void naming_child_begin(int *kept, size_t kept_count);

/* Kills the child, and waits for its end unless it may hang: then naming_child_reap() does. */
void naming_child_end(pid_t child, bool may_hang);

/* Takes the ends of children that were not waited for, as far as they have ended. */
void naming_child_reap(void);
