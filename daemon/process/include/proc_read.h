/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads what /proc says of a process: only texts that the kernel writes (stat, comm, maps, status,
 * cgroup) and, where the request has a right to it, the command line; never a file of a user. The
 * process can block the reading of its maps for as long as it likes; proc_pool.h is for callers
 * that may not wait. A reading that is too large is cut and marked.
 */

#include "command_right.h"
#include "process_table.h"
#include "thread_reading.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROC_READ_THREADS_MAX    8192 /* whose names, or times, are read of one process */
#define PROC_READ_MAPS_BYTES_MAX ((size_t)16 << 20) /* of its maps */
#define PROC_READ_PIDS_MAX       ((size_t)262144)
#define PROC_READ_TIMES_FEW      ((size_t)512) /* with so many a reading of times ends */

enum proc_part {
    PROC_PART_ALL,      /* of a process: names of threads, mappings, whose it is */
    PROC_PART_MAPPINGS, /* these alone */
    PROC_PART_COMMAND,  /* its command line alone */
    PROC_PART_IDENTITY, /* whose it is alone: effective uid and, where asked for, cgroups */
    PROC_PART_PIDS,     /* the pids of all processes; `pid` is 0 */
    PROC_PART_CGROUPS,  /* the control groups that there are: proc_cgroups.h */
    PROC_PART_TIMES,    /* of threads; of some processes, from the pid of the request on */
};

/* One reading, in one piece of memory: free(). */
struct proc_reading {
    struct proc_reading *next; /* its holder's own */
    size_t bytes;              /* that it takes */
    enum proc_part part;
    int urgency;        /* the asker's own, as the next two */
    size_t told_count;  /* of its mappings */
    bool told_anything; /* that was new */
    bool is_last;       /* of times: as a run ends */
    /* 0; -ESRCH: it is gone, a zombie, or was replaced while it was read; -EAGAIN: an exec cut the
     * reading in two; or another -errno. Without 0 nothing below holds but `scan.pid` and its
     * times. */
    int error;
    bool cut;        /* there was more than is read */
    bool has_failed; /* something that may be there could not be read: mappings, or times of a
                      * thread; not mappings that we have no right to read */
    uint32_t uid;
    const char *cgroups; /* the text of /proc/PID/cgroup, or "" */
    const int32_t *pids;
    size_t pid_count;
    const struct thread_reading *times; /* in the order in which they were read */
    size_t time_count;
    int32_t next_pid;           /* with which a next reading of times goes on; 0: that is all */
    const uint64_t *cgroup_ids; /* of the control groups that there are, */
    size_t cgroup_count;
    const char *cgroup_paths; /* and their paths in the same order, each with its NUL */
    struct process_scan scan; /* the caller fills in whether the identity matches */
};

struct proc_request {
    enum proc_part part;
    int32_t pid;
    int urgency;
    bool cgroups;
    struct command_right commands; /* which of them are read */
};

struct proc_read;

/* Returned; release with proc_read_free(). NULL when there is no memory or no /proc. */
struct proc_read *proc_read_new(void);
struct proc_read *proc_read_free(struct proc_read *scan);

/* Asked before anything that can hang: whether the mappings of a process, which is charged to that
 * account, may be read. Without, the rest is. */
typedef bool (*proc_read_guard_fn)(int32_t pid, uint64_t start_time_ns, uint32_t account,
                                   void *userdata);

/* Returned (proc_reading_free()); NULL when there is no memory. Mappings that could
 * not be read are missing: `scan.mappings_missing`. */
struct proc_reading *proc_read_read(struct proc_read *scan, const struct proc_request *request,
                                    proc_read_guard_fn guard, void *userdata);

/* A reading that has failed, with -ENOMEM and as of now. Returned; NULL when there is no memory. */
struct proc_reading *proc_reading_failed(enum proc_part part, int32_t pid, int urgency);

/* Leaves a reading (taken) to the next thread that reads, since it was allocated there. Waits for
 * nothing. */
void proc_reading_free(struct proc_reading *reading);
