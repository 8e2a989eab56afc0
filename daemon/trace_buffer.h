/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was recorded and not yet read: one lane for the definitions (names, modules, symbols, books)
 * and one for each CPU's samples, each a ring of whole groups of records in memory that is touched
 * only as it fills. One writer (the collector), one reader (the main thread), no lock. A full lane
 * refuses what is new; it never overwrites.
 *
 * Order: the reader takes note of the CPU lanes before the definitions lane and hands out
 * definitions first, so whatever a sample refers to has been handed out before it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_LANE_DEFINITIONS ((size_t)0)
#define TRACE_LANE_CPU(index)  ((size_t)1 + (index))

struct trace_buffer;

/* Returned; NULL when there is no address space. `definitions_bytes` and `cpu_bytes` are rounded up
 * to pages. */
struct trace_buffer *trace_buffer_new(size_t cpu_count, size_t definitions_bytes, size_t cpu_bytes);
struct trace_buffer *trace_buffer_free(struct trace_buffer *buffer);

/* Writer: whether a group of this size would be taken. Space only grows until the writer's next
 * put. */
bool trace_buffer_has_room(const struct trace_buffer *buffer, size_t lane, size_t group_bytes);
/* Writer: publishes one group (a multiple of 8 bytes) whole, or returns false and changes nothing.
 */
bool trace_buffer_put(struct trace_buffer *buffer, size_t lane, const void *group,
                      size_t group_bytes);

/* Reader: moves whole groups into `bytes`, as many as fit. Returns their size, 0 when nothing is
 * ready. */
size_t trace_buffer_take(struct trace_buffer *buffer, void *bytes, size_t capacity_bytes);

/* Reader: bytes that wait, their groups' headers included. */
size_t trace_buffer_used_bytes(const struct trace_buffer *buffer);
/* Either side. */
size_t trace_buffer_capacity_bytes(const struct trace_buffer *buffer);
