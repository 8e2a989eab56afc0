/* SPDX-License-Identifier: Apache-2.0 */

/* See fake_proc_scan.h. A process that is gone is not told: no time is known here. */
#include "fake_proc_scan.h"

#include <errno.h>
#include <stdlib.h>

struct proc_scan {
    size_t read_count;
};

static struct {
    fake_proc_read_fn read;
    void *userdata;
} proc;

void fake_proc_scan_set(fake_proc_read_fn read, void *userdata)
{
    proc.read = read;
    proc.userdata = userdata;
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

void proc_scan_judge_by(struct proc_scan *scan, const struct filter *filter)
{
    (void)scan;
    (void)filter;
}

int proc_scan_read(struct proc_scan *scan, int32_t pid, struct process_scan *ret)
{
    scan->read_count++;
    *ret = (struct process_scan){.pid = pid};
    return proc.read == NULL ? -ESRCH : proc.read(pid, ret, proc.userdata);
}

int proc_scan_process(struct proc_scan *scan, struct process_table *table, int32_t pid)
{
    struct process_scan reading;
    int r = proc_scan_read(scan, pid, &reading);
    if (r == 0) {
        process_table_scan(table, &reading);
    }
    return r;
}

void proc_scan_identity(struct proc_scan *scan, struct process *process, uint64_t time_ns)
{
    (void)scan;
    process->identity_ns = time_ns;
}
