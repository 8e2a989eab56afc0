/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The texts of /proc that say what a process is, to values. Pure. Each text is NUL-terminated; the
 * names in it are any bytes that the process's user chooses.
 */

#include "process_table.h"
#include "thread_reading.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * One line of /proc/PID/maps, without its newline. Returns 1 for an executable mapping, 0 for any
 * other, of which `ret` has no path, or -EBADMSG for what is no such line. The path points into
 * `line`, where its escapes are undone; it is without " (deleted)", since the inode says which file
 * it is.
 */
int proc_parse_maps_line(char *line, struct mapping_description *ret);

/* Removes the " (deleted)" that the kernel writes behind the path of a file without a name. */
void proc_parse_undo_deleted(char *path);

/*
 * Whether the path of a mapping is that of a file, by a record or a line of maps. Else it is the
 * kernel's name for something else ("[heap]", "//anon"), or for memory that is shared under a name
 * like a path, in which runtimes put code: "/dev/zero", "/anon_hugepage", "/SYSV00000000" (System
 * V), and "/memfd:doublemapper", which .NET maps twice, to write and to execute. Any other memfd
 * counts as a file: programs are run from one.
 */
bool proc_parse_is_file(const char *path);

struct proc_stat {
    char state; /* 'R', 'S', 'Z', ... of the leader */
    int32_t parent_pid;
    bool kernel_thread; /* PF_KTHREAD */
    uint64_t thread_count;
    uint64_t start_time_ticks; /* since boot, in USER_HZ */
    uint64_t stack_start;      /* an exec changes it; 0 when we may not know */
};
/* /proc/PID/stat; the comm may hold anything, ')' and newlines too. 0 or -EBADMSG. */
int proc_parse_stat(const char *text, struct proc_stat *ret);
/* The time in ns after boot, to the precision of a clock tick. 0 or -EBADMSG: it is beyond. */
int proc_parse_start_time(const struct proc_stat *stat, uint64_t *ret_ns);

/* The effective uid from /proc/PID/status. 0 or -EBADMSG. */
int proc_parse_uid(const char *text, uint32_t *ret);
/* The real one. */
int proc_parse_real_uid(const char *text, uint32_t *ret);

/* The uid that a process has as its real, effective, saved and filesystem's one. 0; -EPERM: they
 * differ; or -EBADMSG. */
int proc_parse_only_uid(const char *text, uint32_t *ret);

/* A whole name in /proc as a pid or tid; -1: it is none. */
int32_t proc_parse_id(const char *name);

/* /proc/PID/task/TID/schedstat: sets the three counts of `ret`. 0 or -EBADMSG. */
int proc_parse_times(const char *text, struct thread_reading *ret);
