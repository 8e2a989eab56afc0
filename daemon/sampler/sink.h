/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where samples go: of all that the sampler has, those that a filter wants, into one trace, and how
 * many of each CPU these are. Belongs to the collector thread.
 */

#include "books.h"
#include "command_right.h"
#include "counters.h"
#include "drain_limits.h"
#include "filter.h"
#include "perf_record.h"
#include "perf_source.h"
#include "process_table.h"
#include "sample.h"
#include "trace.h"
#include "user_stack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sink;

/* All of a sampler. A set of them is a bit for each, by its place. */
struct sinks {
    struct sink *all[DRAIN_SINKS_MAX];
    struct filter *filters[DRAIN_SINKS_MAX];
    struct command_right commands[DRAIN_SINKS_MAX];
    size_t count;
};

/* What has to be read for the rights of all of them; each trace holds to its own. */
struct command_right sinks_commands(const struct sinks *sinks);

/* All borrowed. */
struct sink_config {
    const struct perf_source *source;
    struct process_table *processes;
    struct filter *filter;
    struct trace *trace;
    const struct user_stack *stack; /* for chains that come later */
};

/* Returned; NULL when there is no memory. */
struct sink *sink_new(const struct sink_config *config);
struct sink *sink_free(struct sink *sink);

/* A process or thread was forked, at its place in the order of time. */
void sink_fork(struct sink *sink, const struct perf_record *record);
/* A user chain came whose sample is known already, or comes yet (PERF_KIND_DEFERRED_CALLCHAIN). */
void sink_add_chain(struct sink *sink, const struct perf_record *record);

/* Notes whose a sample is that is wanted, before it waits for its stack; `process` is borrowed
 * until the next call of sink_tell_owners(), which tells the trace in the order of time. */
void sink_note_owner(struct sink *sink, const struct sample *sample, struct process *process);
void sink_tell_owners(struct sink *sink);
/* Tells of a command line that has been read. */
void sink_tell_command(struct sink *sink, const struct process *process);

/* Whether the filter keeps a sample. `process` is NULL when it is unknown. */
bool sink_wants(const struct sink *sink, const struct sample *sample, struct process *process);

/* What writing a sample has shown. */
struct sink_doubts {
    bool uncertain; /* a frame fell into no known mapping */
    bool unmapped;  /* a chain that came later led to such an address */
};
/* Writes a sample that it wants, and one of each follower of its event that has counted since the
 * sample before. With `is_open` its stack is not known yet, and the record says which chain is to
 * be waited for. Without a record it has neither. */
struct sink_doubts sink_write(struct sink *sink, size_t cpu_index, const struct perf_record *record,
                              bool is_open, struct sample *sample, struct process *process);
/* Writes lines of JSON: trace_write_lines(). */
bool sink_write_lines(struct sink *sink, const char *name, const char *text, size_t text_bytes);
/* Counts a sample that it does not want, with those of followers. The record may be NULL. */
void sink_pass(struct sink *sink, size_t cpu_index, const struct perf_record *record,
               const struct sample *sample);

/* Once all samples up to the horizon are written: what waited for its chain is closed when that has
 * come, or has not for too long; all of it with UINT64_MAX. */
void sink_end_round(struct sink *sink, uint64_t horizon_ns);

/*
 * Adds to the books of a CPU, whose `held` is the number of samples of the clock, and `held_weight`
 * what those of an event stand for (of waits, only those that are held), what became of them:
 * received = kept + filtered + dropped, once the trace was polled; the others are held.
 */
void sink_count(const struct sink *sink, size_t cpu_index, struct books_cpu *books);
/* As of the last sink_end_round(). */
struct counters sink_counters(const struct sink *sink);
