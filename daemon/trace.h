/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples -> FXT: encodes each sample for its CPU's lane of the trace buffer, and sees to it that
 * what the sample refers to (names, modules, mappings) is in the log before. Belongs to the
 * collector thread. The only module that knows both `struct sample` and FXT's records of
 * samples.
 */

#include "module_cache.h"
#include "process_table.h"
#include "sample.h"
#include "trace_buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace;

#define TRACE_JSON_BYTES_MAX ((size_t)32000)

struct trace_config {
    struct trace_buffer *buffer; /* borrowed, as are all below */
    struct module_cache *cache;
    const uint32_t *cpus; /* ids, in the order of the buffer's lanes; copied */
    size_t cpu_count;
    const char
        *session_json; /* one line: what stands in the file as cpu-profilerd.session; copied */
    uint64_t hold_ns;  /* how long samples wait at the most for names of the files they fell in */
};

/* Begins the first log. Returns 0 or -errno. */
int trace_new(const struct trace_config *config, struct trace **ret);
struct trace *trace_free(struct trace *trace);

enum trace_outcome {
    TRACE_KEPT,
    TRACE_DROPPED, /* the CPU's lane or the log is full; counted, and told in the file when there is
                      room again */
};

/*
 * `process` is whose sample it is, NULL when nobody knows. `*ret_uncertain` is set when a frame
 * fell into no mapping that is known.
 */
enum trace_outcome trace_sample(struct trace *trace, size_t cpu_index, const struct sample *sample,
                                struct process *process, bool *ret_uncertain);

/*
 * Writes what has become known of modules since, and lets the reader have the samples that have
 * their names or have waited long enough. Call after every drain.
 */
void trace_poll(struct trace *trace);

/* Whether functions that were sampled still wait for their file's symbols. */
bool trace_names_pending(const struct trace *trace);

/* No sample comes after this: what may have been said since of functions that have no name is asked
 * for once more, and is pending until then. */
void trace_ask_again(struct trace *trace);

/* Writes the books (a JSON object in one line) and whatever else must not be missing. Tries until
 * it fits. */
bool trace_finish(struct trace *trace, const char *books_json);

/* process_table's mapped_file_free_fn; userdata is the trace. */
void trace_file_gone(struct mapped_file *file, void *userdata);

struct trace_counts {
    uint64_t modules_unread; /* files whose functions stay without names */
};
struct trace_counts trace_counts(const struct trace *trace);
