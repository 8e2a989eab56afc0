/* SPDX-License-Identifier: Apache-2.0 */

/* See fake_proc_scan.h. */
#include "fake_proc_scan.h"

#include <errno.h>
#include <stdlib.h>

struct proc_scan {
    size_t read_count;
};

static fake_proc_scan_fn read_process;

void fake_proc_scan_set(fake_proc_scan_fn read)
{
    read_process = read;
}

struct proc_scan *proc_scan_new(void)
{
    return calloc(1, sizeof(struct proc_scan));
}

struct proc_scan *proc_scan_free(struct proc_scan *scan)
{
    free(scan);
    return NULL;
}

struct proc_reading *proc_reading_failed(enum proc_part part, int32_t pid, int urgency)
{
    struct proc_reading *reading = calloc(1, sizeof *reading);
    if (reading != NULL) {
        reading->bytes = sizeof *reading;
        reading->part = part;
        reading->urgency = urgency;
        reading->error = -ENOMEM;
        reading->scan.pid = pid;
    }
    return reading;
}

struct proc_reading *proc_scan_read(struct proc_scan *scan, const struct proc_request *request,
                                    proc_scan_guard_fn guard, void *userdata)
{
    struct proc_reading *reading =
        proc_reading_failed(request->part, request->pid, request->urgency);
    scan->read_count++;
    if (reading != NULL) {
        reading->error = read_process(request, guard, userdata, reading);
    }
    return reading;
}
