/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * /proc -> the process table: what was running before the sideband began, and what it lost. Reads
 * only what the kernel itself writes (stat, comm, maps, status, cgroup), never a file of a user.
 * The text parsers are pure.
 */

#include "filter.h"
#include "process_table.h"

struct proc_scan;

/* Returned; release with proc_scan_free(). NULL when there is no memory or no /proc. */
struct proc_scan *proc_scan_new(void);
struct proc_scan *proc_scan_free(struct proc_scan *scan);

/*
 * Reads one process; `*ret` is borrowed until the next call. Returns 0; -ESRCH when it is gone, a
 * zombie, or was replaced while it was read; -EAGAIN when an exec cut the reading in two; or
 * another -errno. Mappings that we may not read are left out, names are still taken.
 */
int proc_scan_read(struct proc_scan *scan, int32_t pid, struct process_scan *ret);
/* The same, told to the table at once, which is told as well of a process that is gone. */
int proc_scan_process(struct proc_scan *scan, struct process_table *table, int32_t pid);

/*
 * From now on each reading says as well whether the process's effective uid or its cgroups are a
 * target's of `filter` (borrowed; it outlives the scan).
 */
void proc_scan_judge_by(struct proc_scan *scan, const struct filter *filter);
/*
 * Reads these two alone, and no more, as they are now; `time_ns` says when that is. A process of
 * which they cannot be read stays as it was judged last.
 */
void proc_scan_identity(struct proc_scan *scan, struct process *process, uint64_t time_ns);

/*
 * Walks all of /proc in pieces: reads processes for about `budget_ns`, then returns 1 while there
 * are more, 0 when the walk is complete, or -errno. The next call after 0 begins a new walk. A
 * complete one has ended the processes that were known before it and that /proc did not list.
 */
int proc_scan_walk(struct proc_scan *scan, struct process_table *table, uint64_t budget_ns);

/*
 * One line of /proc/PID/maps, without its newline, NUL-terminated. Returns 1 and fills `ret` for an
 * executable mapping, 0 for any other, -EBADMSG for what is no such line. The path points into
 * `line`, where its escapes are undone; it is without " (deleted)", since the inode says which file
 * it is.
 */
int proc_scan_parse_maps_line(char *line, struct mapping_description *ret);

struct proc_stat {
    char state; /* 'R', 'S', 'Z', ... of the leader */
    int32_t parent_pid;
    bool kernel_thread; /* PF_KTHREAD */
    uint64_t thread_count;
    uint64_t start_time_ticks; /* since boot, in USER_HZ */
    uint64_t stack_start;      /* an exec changes it; 0 when we may not know */
};
/* /proc/PID/stat, NUL-terminated; the comm may hold anything, ')' and newlines too. 0 or -EBADMSG.
 */
int proc_scan_parse_stat(const char *text, struct proc_stat *ret);

/* The effective uid from the text of /proc/PID/status, NUL-terminated. 0 or -EBADMSG. */
int proc_scan_parse_uid(const char *text, uint32_t *ret);
