/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes samples into the trace buffer. The names, modules and mappings that a sample refers to are
 * in the log before it. The samples of a moment are grouped (trace_groups.h) and put into their
 * CPU's lane (trace_lanes.h). Belongs to the collector thread.
 */

#include "address_cache.h"
#include "command_right.h"
#include "counters.h"
#include "kernel_code.h"
#include "module_cache.h"
#include "process_table.h"
#include "sample.h"
#include "trace_buffer.h"
#include "trace_lanes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace;

#define TRACE_JSON_BYTES_MAX ((size_t)32000)

struct trace_config {
    struct trace_buffer *buffer; /* borrowed, as are all below */
    struct module_cache *cache;
    struct address_cache *addresses; /* whose frames are this trace's */
    struct kernel_code *kernel;      /* NULL: the kernel has what it had at first */
    const uint32_t *cpus;            /* ids, in the order of the buffer's lanes; copied */
    size_t cpu_count;
    const char
        *session_json; /* one line: what stands in the file as cpu-profilerd.session; copied */
    uint64_t hold_ns;  /* how long samples wait at the most for names of the files they fell in */
    uint64_t short_ns; /* how old a log is at least when it is left because an account's share of
                          it is used up */
    size_t max_stack_depth;        /* user frames of a sample */
    struct command_right commands; /* that may be written */
};

/* Begins the first log. Returns 0 or -errno. */
int trace_new(const struct trace_config *config, struct trace **ret);
struct trace *trace_free(struct trace *trace);

/* Notes the control group of a sample of `process` (NULL: not known), in the order of time as far
 * as that is possible: trace_sample() may come before or long after it. Where it came before, there
 * must be no new log between them. */
void trace_note(struct trace *trace, struct process *process, const struct cgroup *cgroup,
                uint64_t time_ns);

/* Whether the log has nothing yet of what a process descends from: true once in each log. */
bool trace_take_parents(struct trace *trace, const struct process *process);
/* Writes what a process was called and which one made it, at the time at which it made another that
 * has been noted, as far as there is room. Returns as trace_take_parents(), of the parent. */
bool trace_note_parent(struct trace *trace, struct process *parent, uint64_t time_ns);

/* Writes the command line of a process if the log has a line of it, which does not say it. */
void trace_note_command(struct trace *trace, const struct process *process);

/* Whether the next sample begins a new log: what has been written must be noted before. */
bool trace_is_full(const struct trace *trace);

/*
 * Takes a sample (copied). It counts as kept or dropped when it is put into its lane, at the next
 * trace_poll() at the latest. `process` is the sample's, NULL when it is unknown. `*ret_uncertain`
 * is set when a frame fell into no known mapping.
 */
void trace_sample(struct trace *trace, size_t cpu_index, const struct sample *sample,
                  struct process *process, bool *ret_uncertain);

/*
 * Writes a partial: a sample whose user stack trace_complete() writes later. The partial is counted
 * now. `*id` is 0, or the id of an earlier partial of the same CPU with the same stack; it changes
 * when a new id is drawn. False: dropped, and counted.
 */
bool trace_open_partial(struct trace *trace, size_t cpu_index, const struct sample *sample,
                        struct process *process, uint64_t *id);
/*
 * Writes the completion of an id: the user stack and quality of `sample` for all its partials, and
 * `closed` beside them. The other members of `sample` are those of one partial. False: the partials
 * have no stack, since the id was closed before, or its definitions had no room and it is closed as
 * lost.
 */
bool trace_complete(struct trace *trace, size_t cpu_index, uint64_t id, const struct sample *sample,
                    struct process *process, enum stack_closed closed);
/* Closes without a stack every id that a sample of `time_ns` or before opened. */
void trace_close_partials(struct trace *trace, uint64_t time_ns, enum stack_closed closed);

/* The counts of a CPU's samples of one event; complete after trace_poll(). */
struct trace_lane_counts trace_lane_counts(const struct trace *trace, size_t cpu_index,
                                           uint32_t event);

/*
 * Puts gathered samples into the lanes, writes new definitions of modules, and publishes the
 * samples that have their names or have waited long enough. Call it after every drain.
 */
void trace_poll(struct trace *trace);

/* Writes whole lines of JSON (at most FXT_DATA_BYTES_MAX bytes) as a Data blob of a name. False:
 * there is no room; call it again. Not between trace_sample() and trace_note() of one sample. */
bool trace_write_lines(struct trace *trace, const char *name, const char *text, size_t text_bytes);

/* True while sampled functions wait for their file's symbols. */
bool trace_names_pending(const struct trace *trace);

/* Notes the end of sampling: perf maps and jitdumps are read once more for functions without a
 * name, which are pending until then. */
void trace_ask_again(struct trace *trace);

/* Closes what is open, and writes the books (a JSON object in one line) and whatever else must not
 * be missing. False: there is no room; call it again. Once it is true, trace_poll() opens no other
 * log until trace_resume(): a later reader would skip the one with the books, if its samples are
 * acknowledged. */
bool trace_finish(struct trace *trace, const char *books_json);
/* Samples follow a trace_finish() after all, and other books. */
void trace_resume(struct trace *trace);

/* process_table's mapped_file_free_fn; userdata is the trace. */
void trace_file_gone(struct mapped_file *file, void *userdata);

struct counters trace_counters(const struct trace *trace);
