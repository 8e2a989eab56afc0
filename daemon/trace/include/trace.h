/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples on their way into the file: sees to it that what a sample refers to (names, modules,
 * mappings) is in the log before it, gathers the samples of a moment, and puts them as groups
 * (trace_groups.h) into their CPU's lane of the trace buffer (trace_lanes.h). Belongs to the
 * collector thread.
 */

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
    struct kernel_code *kernel; /* NULL: the kernel has what it had at first */
    const uint32_t *cpus;       /* ids, in the order of the buffer's lanes; copied */
    size_t cpu_count;
    const char
        *session_json; /* one line: what stands in the file as cpu-profilerd.session; copied */
    uint64_t hold_ns;  /* how long samples wait at the most for names of the files they fell in */
    uint64_t short_ns; /* how old a log is at least when it is left because somebody's share of it
                          is used up */
    size_t max_stack_depth; /* user frames of a sample */
};

/* Begins the first log. Returns 0 or -errno. */
int trace_new(const struct trace_config *config, struct trace **ret);
struct trace *trace_free(struct trace *trace);

/*
 * Takes a sample (copied). What becomes of it, kept or dropped, is counted when it is put into its
 * lane: at the next trace_poll() at the latest. `process` is whose sample it is, NULL when nobody
 * knows. `*ret_uncertain` is set when a frame fell into no mapping that is known.
 */
void trace_sample(struct trace *trace, size_t cpu_index, const struct sample *sample,
                  struct process *process, bool *ret_uncertain);

/*
 * A sample whose user stack is not known yet: it is written now, and counted, and its stack later,
 * with trace_complete(). `*id` is 0, or one of the same CPU that an earlier sample got and whose
 * stack is this one's too; it is changed where a new id is drawn. False: dropped, and counted.
 */
bool trace_open_partial(struct trace *trace, size_t cpu_index, const struct sample *sample,
                        struct process *process, uint64_t *id);
/*
 * Writes the user stack and the quality of `sample` for all partials of the id; the rest of it is
 * that of one of them. What `closed` says stands beside. False: they have no stack, since the id
 * was closed already, or what the stack needs has no room and it is closed as lost.
 */
bool trace_complete(struct trace *trace, size_t cpu_index, uint64_t id, const struct sample *sample,
                    struct process *process, enum stack_closed closed);
/* Closes without a stack every id that a sample of `time_ns` or before opened. */
void trace_close_partials(struct trace *trace, uint64_t time_ns, enum stack_closed closed);

/* What has become of a CPU's samples. After trace_poll() there are no others. */
struct trace_lane_counts trace_lane_counts(const struct trace *trace, size_t cpu_index);

/*
 * Puts what was gathered into the lanes, writes what has become known of modules since, and lets
 * the reader have the samples that have their names or have waited long enough. Call after every
 * drain.
 */
void trace_poll(struct trace *trace);

/* Whether functions that were sampled still wait for their file's symbols. */
bool trace_names_pending(const struct trace *trace);

/* No sample comes after this: what may have been said since of functions that have no name is asked
 * for once more, and is pending until then. */
void trace_ask_again(struct trace *trace);

/* Closes what is open, and writes the books (a JSON object in one line) and whatever else must not
 * be missing. False: there is no room; call it again. */
bool trace_finish(struct trace *trace, const char *books_json);

/* process_table's mapped_file_free_fn; userdata is the trace. */
void trace_file_gone(struct mapped_file *file, void *userdata);

struct counters trace_counters(const struct trace *trace);
