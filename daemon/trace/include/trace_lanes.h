/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples -> SAMPLE blobs, each group of them whole into its CPU's lane of the trace buffer, or not
 * at all. Draws the continuation ids, and counts what was kept and what was dropped; the count of
 * the latter goes into the file as soon as a record fits again, in front of that record. Belongs to
 * the collector thread.
 */

#include "sample.h"
#include "trace_buffer.h"
#include "trace_groups.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_OPEN_MAX 256 /* continuations of one CPU that wait for their completion */

struct trace_lanes;

struct trace_lanes_config {
    struct trace_buffer *buffer; /* borrowed */
    const uint32_t *cpus;        /* ids, in the order of the buffer's lanes; copied */
    size_t cpu_count;
    size_t stack_count_max; /* entries of the longest stack that completes a continuation; at most
                               2,000 */
};

/* Returned; NULL when there is no memory. */
struct trace_lanes *trace_lanes_new(const struct trace_lanes_config *config);
struct trace_lanes *trace_lanes_free(struct trace_lanes *lanes);

void trace_lanes_put(struct trace_lanes *lanes, size_t cpu_index, const struct trace_group *group);
/* Counts a sample that cannot be written. */
void trace_lanes_drop(struct trace_lanes *lanes, size_t cpu_index, const struct sample *sample);
/* Tells what was dropped and has not been told. False: a lane still has no room. */
bool trace_lanes_settle(struct trace_lanes *lanes);

/*
 * Writes the sample without its user stack, and keeps room in the lane for the completion. `*id` is
 * 0, or one of this CPU that an earlier sample got and whose stack is this one's too; where it is
 * closed by now, as where it is 0, another is drawn. When too many are open the oldest is closed
 * without a stack. False: dropped, and counted; `*id` is unchanged.
 */
bool trace_lanes_open(struct trace_lanes *lanes, size_t cpu_index, const struct sample *sample,
                      uint64_t *id);
/* Writes the completion: the user stack and the quality of `sample`. False: the id is not open. */
bool trace_lanes_complete(struct trace_lanes *lanes, size_t cpu_index, uint64_t id,
                          const struct sample *sample, enum stack_closed closed);
/* Completes without a stack all that were opened by samples not later than `time_ns`. */
void trace_lanes_close(struct trace_lanes *lanes, uint64_t time_ns, enum stack_closed closed);

/* Of one event. */
struct trace_lane_counts {
    uint64_t kept; /* samples; a completion is none */
    uint64_t dropped;
};
struct trace_lane_counts trace_lanes_counts(const struct trace_lanes *lanes, size_t cpu_index,
                                            uint32_t event);
