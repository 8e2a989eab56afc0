/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The control groups that there are: a walk of the mounted hierarchy whose groups the kernel writes
 * into samples, which is that of the controller perf_event, or else the one hierarchy of version 2.
 * Only names are read, of a filesystem of the kernel.
 */

#include "proc_read.h"

#define PROC_CGROUPS_MAX       ((size_t)65536)
#define PROC_CGROUPS_BYTES_MAX ((size_t)8 << 20) /* of their paths */

/* A reading with ids and paths (returned: free()), for an asker of that urgency; NULL when there is
 * no memory. */
struct proc_reading *proc_cgroups_read(int urgency);
