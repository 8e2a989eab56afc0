/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Readings that the test makes up, and that take as long as it likes: who links fake_proc_scan.c
 * has it in place of proc_scan.c.
 */

#include "proc_scan.h"

/* What one reading comes to. Called by the threads that read; returns 0 or -errno. */
typedef int (*fake_proc_scan_fn)(const struct proc_request *request, proc_scan_guard_fn guard,
                                 void *guard_userdata, struct proc_reading *reading);
void fake_proc_scan_set(fake_proc_scan_fn read);
