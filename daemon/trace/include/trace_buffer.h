/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Keeps the recording until it is read. The samples of each CPU lie in a ring until the reader has
 * acknowledged them. The definitions that they refer to (names, modules, symbols) and the books lie
 * in a log, which is kept as long as the samples that were put beside it. Each reader gets the log
 * from its beginning. A log is bounded: the writer opens a new one for the samples that follow.
 *
 * One writer (the collector), one reader (the main thread), no lock. Groups of records are handed
 * out whole, and memory is touched only as it fills. A full ring or log refuses new groups; nothing
 * is overwritten.
 *
 * Order: the reader notes the positions of the CPU lanes before that of the log and hands out
 * definitions first, so every definition is handed out before the samples that refer to it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_LANE_DEFINITIONS ((size_t)0)
#define TRACE_LANE_CPU(index)  ((size_t)1 + (index))
#define DEFINITION_LOG_COUNT   2 /* logs that are needed at the same time */

#define TRACE_GROUP_HEADER_BYTES ((size_t)8) /* what a group takes besides its own bytes */

struct trace_buffer;

/* Returned; NULL when there is no address space. `log_bytes` (of each log) and `cpu_bytes` are
 * rounded up to pages. */
struct trace_buffer *trace_buffer_new(size_t cpu_count, size_t log_bytes, size_t cpu_bytes);
struct trace_buffer *trace_buffer_free(struct trace_buffer *buffer);

/* Writer: true when there is room for a group of this size. */
bool trace_buffer_has_room(const struct trace_buffer *buffer, size_t lane, size_t group_bytes);
/*
 * Writer: puts one group (a multiple of 8 bytes) whole, or returns false and changes nothing. A
 * definition can be taken at once, a sample when it is shown.
 */
bool trace_buffer_put(struct trace_buffer *buffer, size_t lane, const void *group,
                      size_t group_bytes);
/* The same, for a CPU's lane, with a group of which so many records count as samples. */
bool trace_buffer_put_samples(struct trace_buffer *buffer, size_t lane, const void *group,
                              size_t group_bytes, uint32_t sample_count);

/*
 * Writer: reserves room in a CPU's lane for one group of up to this size, or returns false. No
 * other group gets that room: a put right after the release succeeds.
 */
bool trace_buffer_reserve(struct trace_buffer *buffer, size_t lane, size_t group_bytes);
void trace_buffer_release(struct trace_buffer *buffer, size_t lane, size_t group_bytes);

/* Writer: notes how far the lanes are filled. */
void trace_buffer_mark(struct trace_buffer *buffer);
/* Writer: publishes all samples up to the last mark. */
void trace_buffer_show(struct trace_buffer *buffer);

/* Writer: whether trace_buffer_next_log() may be called. False while all logs are needed. */
bool trace_buffer_has_log(const struct trace_buffer *buffer);
/* Writer: closes the log and opens an empty one. What was put before is shown. */
void trace_buffer_next_log(struct trace_buffer *buffer);

/*
 * Reader: true, once, when the next group begins a segment, since its log is another one or begins
 * anew. The caller then writes the segment's beginning.
 */
bool trace_buffer_begins_segment(struct trace_buffer *buffer);
/* Reader: copies whole groups of the present segment into `bytes`, as many as fit. Returns their
 * size, 0 when nothing is ready. */
size_t trace_buffer_take(struct trace_buffer *buffer, void *bytes, size_t capacity_bytes);
/* Reader: acknowledges the groups that were taken; their memory goes back to the system. */
void trace_buffer_acknowledge(struct trace_buffer *buffer);
/* Reader: begins a segment with the samples that were not acknowledged. */
void trace_buffer_rewind(struct trace_buffer *buffer);

/* Reader: samples that have been put and not acknowledged. */
uint64_t trace_buffer_unread_samples(const struct trace_buffer *buffer);
/* Reader: bytes that were not taken, their groups' headers included. */
size_t trace_buffer_waiting_bytes(const struct trace_buffer *buffer);
/* Either side: of one log, and of all there is. */
size_t trace_buffer_log_bytes(const struct trace_buffer *buffer);
size_t trace_buffer_capacity_bytes(const struct trace_buffer *buffer);
