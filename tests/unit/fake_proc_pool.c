/* SPDX-License-Identifier: Apache-2.0 */

/* See fake_proc_pool.h. */
#include "fake_proc_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FAR_NS (UINT64_MAX / 2)

struct proc_pool {
    struct proc_reading *first;
    struct proc_reading **end;
};

static struct {
    fake_proc_read_fn read;
    void *userdata;
    uint32_t uid;
    size_t bytes;
    size_t looked_count;
    int list_error;
    int32_t list_pid;
    const uint64_t *cgroup_ids;
    size_t cgroup_count;
    const char *cgroup_paths;
    bool delayed;
} proc;

void fake_proc_set(fake_proc_read_fn read, void *userdata)
{
    proc.read = read;
    proc.userdata = userdata;
    proc.delayed = false;
    proc.bytes = 0;
    proc.list_error = -ESRCH;
    fake_proc_set_cgroups(NULL, 0, NULL);
}

void fake_proc_set_uid(uint32_t uid)
{
    proc.uid = uid;
}

void fake_proc_set_bytes(size_t bytes)
{
    proc.bytes = bytes;
}

void fake_proc_set_list(int error, int32_t pid)
{
    proc.list_error = error;
    proc.list_pid = pid;
}

void fake_proc_set_cgroups(const uint64_t *ids, size_t count, const char *paths)
{
    proc.cgroup_ids = ids;
    proc.cgroup_count = count;
    proc.cgroup_paths = paths;
}

size_t fake_proc_looked_count(void)
{
    return proc.looked_count;
}

void fake_proc_delay(bool delayed)
{
    proc.delayed = delayed;
}

int proc_pool_new(bool cgroups, uint64_t hang_ns, struct proc_pool **ret)
{
    (void)cgroups;
    (void)hang_ns;
    *ret = calloc(1, sizeof **ret);
    if (*ret == NULL) {
        return -ENOMEM;
    }
    (*ret)->end = &(*ret)->first;
    return 0;
}

void proc_pool_read_commands(struct proc_pool *reader, const struct command_right *right)
{
    (void)reader;
    (void)right;
}

static struct proc_reading *take(struct proc_pool *reader)
{
    struct proc_reading *reading = reader->first;
    if (reading != NULL) {
        reader->first = reading->next;
        reader->end = reader->first == NULL ? &reader->first : reader->end;
    }
    return reading;
}

struct proc_pool *proc_pool_free(struct proc_pool *reader)
{
    while (reader != NULL && reader->first != NULL) {
        free(take(reader));
    }
    free(reader);
    return NULL;
}

int proc_pool_ask(struct proc_pool *reader, enum proc_urgency urgency, enum proc_part part,
                  int32_t pid)
{
    struct process_scan scan = {.pid = pid, .begin_ns = FAR_NS, .end_ns = FAR_NS};
    bool process = part != PROC_PART_PIDS && part != PROC_PART_CGROUPS && proc.read != NULL;
    int error = process ? proc.read(pid, &scan, proc.userdata) : -ESRCH;
    size_t threads = error == 0 ? scan.thread_count : 0;
    size_t mappings = error == 0 ? scan.mapping_count : 0;
    struct proc_reading *reading =
        malloc(sizeof *reading + mappings * sizeof *scan.mappings + threads * sizeof *scan.threads);
    if (reading == NULL) {
        return -EAGAIN;
    }
    *reading = (struct proc_reading){.bytes = proc.bytes,
                                     .part = part,
                                     .urgency = (int)urgency,
                                     .error = error,
                                     .uid = proc.uid,
                                     .cgroups = "",
                                     .scan = scan};
    if (part == PROC_PART_PIDS) {
        reading->error = proc.list_error;
        reading->pids = &proc.list_pid;
        reading->pid_count = 1;
    }
    if (part == PROC_PART_CGROUPS) {
        reading->error = 0;
        reading->cgroup_ids = proc.cgroup_ids;
        reading->cgroup_count = proc.cgroup_count;
        reading->cgroup_paths = proc.cgroup_paths;
    }
    struct mapping_description *kept_mappings = (void *)(reading + 1);
    struct scanned_thread *kept_threads = (void *)(kept_mappings + mappings);
    if (mappings > 0) {
        memcpy(kept_mappings, scan.mappings, mappings * sizeof *kept_mappings);
    }
    if (threads > 0) {
        memcpy(kept_threads, scan.threads, threads * sizeof *kept_threads);
    }
    reading->scan.mappings = kept_mappings;
    reading->scan.threads = kept_threads;
    *reader->end = reading;
    reader->end = &reading->next;
    return 0;
}

struct proc_reading *proc_pool_next(struct proc_pool *reader)
{
    proc.looked_count++;
    return proc.delayed ? NULL : take(reader);
}

struct proc_pool_counts proc_pool_counts(struct proc_pool *reader)
{
    (void)reader;
    return (struct proc_pool_counts){0};
}
