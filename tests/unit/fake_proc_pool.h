/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A /proc that the test makes up, and that answers at once or when it is let: who links
 * fake_proc_pool.c has it in place of proc_pool.c and its threads.
 */

#include "proc_pool.h"

/* What /proc says of `pid` now: fills `reading` (borrowed for the call), its times as well, and
 * returns 0, or -errno. NULL: it knows no process. */
typedef int (*fake_proc_read_fn)(int32_t pid, struct process_scan *reading, void *userdata);
void fake_proc_set(fake_proc_read_fn read, void *userdata);

/* Whose every process is. */
void fake_proc_set_uid(uint32_t uid);

/* How much memory each reading is said to take; 0 at first. */
void fake_proc_set_bytes(size_t bytes);

/* What a walk meets: one process, or an error. -ESRCH at first. */
void fake_proc_set_list(int error, int32_t pid);

/* What a walk through the control groups meets, borrowed: the ids, and their paths, each with its
 * NUL. None at first. */
void fake_proc_set_cgroups(const uint64_t *ids, size_t count, const char *paths);

/* How often somebody looked for an answer. */
size_t fake_proc_looked_count(void);

/* While it is delayed, what is read is not handed out. */
void fake_proc_delay(bool delayed);
