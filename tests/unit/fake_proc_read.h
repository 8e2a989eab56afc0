/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Readings that the test makes up, and that take as long as it likes: who links fake_proc_read.c
 * has it in place of proc_read.c.
 */

#include "proc_read.h"

/* What one reading comes to. Called by the threads that read; returns 0 or -errno. */
typedef int (*fake_proc_read_fn)(const struct proc_request *request, proc_read_guard_fn guard,
                                 void *guard_userdata, struct proc_reading *reading);
void fake_proc_read_set(fake_proc_read_fn read);

/* While it is short of memory or descriptors, no reader can be made. */
void fake_proc_read_be_short(bool short_now);
