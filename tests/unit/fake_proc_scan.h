/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A /proc that the test makes up: who links fake_proc_scan.c has it in place of proc_scan.c.
 */

#include "proc_scan.h"

/* What /proc says of `pid` now: fills `reading` (borrowed until it is asked again for the same
 * pid) and returns 0, or -errno. NULL: it knows nobody. Every scanner reads it. */
typedef int (*fake_proc_read_fn)(int32_t pid, struct process_scan *reading, void *userdata);
void fake_proc_scan_set(fake_proc_read_fn read, void *userdata);
