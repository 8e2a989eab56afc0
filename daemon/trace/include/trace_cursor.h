/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What Read hands out: chunks of whole records, numbered, each again and again until it is
 * acknowledged. Every reader's chunks, one after the other, are segments that stand for themselves;
 * what one reader did not acknowledge the next one gets in a segment of its own. So over all chunks
 * that were acknowledged each sample is there once. Belongs to the main thread.
 */

#include "trace_buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_CHUNK_BYTES_MAX ((size_t)1 << 20)

struct trace_cursor;

/* Returned: trace_cursor_free(). `buffer` is borrowed. Returns 0, -ENOMEM, or -EIO without random
 * numbers. */
int trace_cursor_new(struct trace_buffer *buffer, struct trace_cursor **ret);
struct trace_cursor *trace_cursor_free(struct trace_cursor *reader);

/* Another reader has come: it gets a new segment, which begins with what is not acknowledged when
 * it reads for the first time. */
void trace_cursor_begin_segment(struct trace_cursor *reader);

/* The chunk of this number and all before it have arrived; 0: none. False: no such chunk has been
 * handed out. */
bool trace_cursor_acknowledge(struct trace_cursor *reader, uint64_t sequence);
/* All that was handed out has arrived. */
void trace_cursor_acknowledge_all(struct trace_cursor *reader);

struct trace_chunk {
    const void *bytes; /* borrowed until the next call */
    size_t size_bytes; /* 0: nothing is ready, or what is to be read again does not fit */
    uint64_t sequence; /* from 1; 0 with no bytes */
};
/* The chunk that was not acknowledged, else a new one of at most `capacity_bytes`, which must have
 * room for the longest record (32 KiB) and a segment's beginning (1 KiB). */
void trace_cursor_read(struct trace_cursor *reader, size_t capacity_bytes, struct trace_chunk *ret);

/* What has not been acknowledged. What was read of the definitions does not count, though the next
 * reader gets it as well. */
size_t trace_cursor_unread_bytes(const struct trace_cursor *reader);
uint64_t trace_cursor_unread_samples(const struct trace_cursor *reader);
