/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose each process is, on its way into the file: lines of `cpu-profilerd.processes`, each with
 * the time from which it holds, before the first sample that it is of. Belongs to the collector
 * thread.
 */

#include "cgroup_table.h"
#include "command_right.h"
#include "definition_log.h"
#include "process_table.h"

#include <stdbool.h>
#include <stdint.h>

/* Lines of a process in a log: then the unit and the container alone are told, and after as many
 * again nothing. */
#define TRACE_CGROUP_LINES_MAX 16
/* Lines of a process in a log that are about another command line alone; then that is not told. */
#define TRACE_COMMAND_LINES_MAX 16

struct trace_cgroups;

/* Returned; NULL when there is no memory. `log` is borrowed. Of command lines those are written
 * that the right covers. */
struct trace_cgroups *trace_cgroups_new(struct definition_log *log,
                                        const struct command_right *commands);
struct trace_cgroups *trace_cgroups_free(struct trace_cgroups *cgroups);

/* Begins a log, in which nothing is written yet. */
void trace_cgroups_begin(struct trace_cgroups *cgroups);

/* Notes that a process was in `cgroup` (borrowed; NULL: not known) at a time, and writes it unless
 * the log says so. To be called for each sample when it comes, before it waits for anything. */
void trace_cgroups_note(struct trace_cgroups *cgroups, const struct process *process,
                        const struct cgroup *cgroup, uint64_t time_ns);

/* Writes a line of a process of which no sample may come, since another one descends from it,
 * unless the log has one. Returns as the next. */
bool trace_cgroups_note_parent(struct trace_cgroups *cgroups, const struct process *parent);

/* Writes the command line of a process if the log has a line of it, which does not say it. */
void trace_cgroups_note_command(struct trace_cgroups *cgroups, const struct process *process);

/* Whether the log has nothing yet of what a process descends from: true once in each log. */
bool trace_cgroups_take_parents(struct trace_cgroups *cgroups, const struct process *process);

/* Whether the log has all that was noted of a process, which is written into a new log first.
 * False: something was refused. */
bool trace_cgroups_hold(struct trace_cgroups *cgroups, const struct process *process);
