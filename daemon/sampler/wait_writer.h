/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes what the wait_table hands out into the sinks that want it. A wait becomes a sample of the
 * event `off-cpu` or `preempted`, whose weight is its length in ns, and that of waits that it
 * stands for, with the stack of the switch that began it; the books of a thread become a line.
 * Belongs to the collector thread.
 */

#include "counters.h"
#include "perf_source.h"
#include "process_table.h"
#include "resolver.h"
#include "sideband_feed.h"
#include "sink.h"
#include "thread_line.h"
#include "wait_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All borrowed. */
struct wait_writer_config {
    const struct perf_source *source;
    struct process_table *processes;
    struct sideband_feed *feed;
    const struct sinks *sinks;
};

struct wait_stacks;

struct wait_writer {
    struct wait_writer_config config;
    struct wait_stacks *stacks; /* owned, as `text` */
    char *text;                 /* lines on their way into a trace */
    uint32_t line_place;
    bool has_line; /* `line` is still to be written */
    struct thread_line line;
    int32_t own_pid;          /* the daemon's */
    uint64_t uncertain_count; /* samples with a frame in no known mapping */
};

/* False: there is no memory; wait_writer_done() is due all the same. */
bool wait_writer_init(struct wait_writer *writer, const struct wait_writer_config *config);
void wait_writer_done(struct wait_writer *writer);

/* What the table asks, with a writer as `userdata`: wait_life_fn, wait_owner_fn,
 * wait_describe_fn. */
struct wait_life wait_writer_life(int32_t pid, int32_t tid, uint64_t time_ns, void *userdata);
struct wait_owner wait_writer_owner(int32_t pid, uint64_t time_ns, void *userdata);
void wait_writer_describe(struct thread_line *line, uint64_t time_ns, void *userdata);

/* Keeps the stack of a sample of a switch for the wait that began with it. */
void wait_writer_resolve(struct wait_writer *writer, struct wait_table *table,
                         const struct perf_record *record, const struct resolved *resolved);
/* Writes all waits that are due. */
void wait_writer_write(struct wait_writer *writer, struct wait_table *table);

/* Writes the lines of the threads that a sink wants into its trace. False: there is no room; call
 * it again. A new run begins with the first line. */
bool wait_writer_write_threads(struct wait_writer *writer, const struct wait_table *table,
                               size_t sink);
void wait_writer_rewind(struct wait_writer *writer);

void wait_writer_count(const struct wait_writer *writer, struct counters *sum);
