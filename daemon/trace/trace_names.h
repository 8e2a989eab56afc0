/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names of processes and threads on their way into the file: each name with the time from which it
 * holds, once in a log, before the first sample that can bear it. Belongs to the collector thread.
 */

#include "definition_log.h"
#include "process_table.h"

#include <stdbool.h>

struct trace_names;

/* Returned; NULL when there is no memory. `log` is borrowed. */
struct trace_names *trace_names_new(struct definition_log *log);
struct trace_names *trace_names_free(struct trace_names *names);

/*
 * Begins a log, in which nothing is written yet, with the names that belong to no
 * task: pid 0 is outside this pid namespace, -1 has exited. False: no room.
 */
bool trace_names_begin(struct trace_names *names);

/* Writes the names that the thread and its process have at a time. False: refused. */
bool trace_names_write(struct trace_names *names, struct process *process, int32_t tid,
                       uint64_t time_ns);

/* Writes the name of a process of which no sample may come, as far as there is room. */
void trace_names_write_parent(struct trace_names *names, struct process *parent, uint64_t time_ns);
