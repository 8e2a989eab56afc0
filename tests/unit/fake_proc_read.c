/* SPDX-License-Identifier: Apache-2.0 */

/* See fake_proc_read.h. */
#include "fake_proc_read.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

struct proc_read {
    size_t read_count;
};

static fake_proc_read_fn read_process;
static atomic_bool is_short;

void fake_proc_read_set(fake_proc_read_fn read)
{
    read_process = read;
}

void fake_proc_read_be_short(bool short_now)
{
    atomic_store(&is_short, short_now);
}

struct proc_read *proc_read_new(void)
{
    return atomic_load(&is_short) ? NULL : calloc(1, sizeof(struct proc_read));
}

struct proc_read *proc_read_free(struct proc_read *scan)
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

struct proc_reading *proc_read_read(struct proc_read *scan, const struct proc_request *request,
                                    proc_read_guard_fn guard, void *userdata)
{
    struct proc_reading *reading =
        proc_reading_failed(request->part, request->pid, request->urgency);
    scan->read_count++;
    if (reading != NULL) {
        reading->error = read_process(request, guard, userdata, reading);
    }
    return reading;
}
