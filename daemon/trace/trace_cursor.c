/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The trace buffer hands out definitions and samples; what makes a segment of them, its beginning,
 * is written here, since only here it is known where one begins: with each reader, and where the
 * trace opened a new log. A chunk is a copy, so that it is the same however often it is read.
 *
 * An acknowledgement counts by its number, from any connection: a reader that got all and went
 * may have left the last one to its successor.
 */
#include "trace_cursor.h"

#include "cleanup.h"
#include "fxt_writer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define PROVIDER_NAME       "cpu-profilerd"
#define SEGMENT_BEGIN_BYTES ((size_t)1024)

struct trace_cursor {
    struct trace_buffer *buffer;
    uint32_t provider_id; /* of the last segment; odd */
    bool segment_wanted;
    uint64_t sequence;  /* of the last chunk */
    size_t chunk_bytes; /* 0: it is acknowledged */
    uint8_t *chunk;     /* owned; TRACE_CHUNK_BYTES_MAX */
};

int trace_cursor_new(struct trace_buffer *buffer, struct trace_cursor **ret)
{
    uint32_t provider_id = 0;
    if (getrandom(&provider_id, sizeof provider_id, 0) != (ssize_t)sizeof provider_id) {
        return -EIO;
    }
    struct trace_cursor *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return -ENOMEM;
    }
    reader->buffer = buffer;
    reader->provider_id = provider_id | 1U;
    reader->chunk = malloc(TRACE_CHUNK_BYTES_MAX);
    if (reader->chunk == NULL) {
        (void)trace_cursor_free(reader);
        return -ENOMEM;
    }
    *ret = reader;
    return 0;
}

struct trace_cursor *trace_cursor_free(struct trace_cursor *reader)
{
    if (reader != NULL) {
        free(reader->chunk);
        free(reader);
    }
    return NULL;
}

void trace_cursor_begin_segment(struct trace_cursor *reader)
{
    reader->segment_wanted = true;
}

bool trace_cursor_acknowledge(struct trace_cursor *reader, uint64_t sequence)
{
    if (sequence > reader->sequence) {
        return false;
    }
    if (sequence == reader->sequence && reader->chunk_bytes > 0) {
        reader->chunk_bytes = 0;
        trace_buffer_acknowledge(reader->buffer);
    }
    return true;
}

void trace_cursor_acknowledge_all(struct trace_cursor *reader)
{
    (void)trace_cursor_acknowledge(reader, reader->sequence);
}

static void begin_segment(struct trace_cursor *reader)
{
    uint64_t words[SEGMENT_BEGIN_BYTES / sizeof(uint64_t)];
    struct fxt_writer writer;
    reader->provider_id += 2;
    fxt_writer_init(&writer, words, sizeof words);
    fxt_write_segment_begin(&writer, reader->provider_id, PROVIDER_NAME);
    assert(fxt_writer_ok(&writer));
    memcpy(reader->chunk + reader->chunk_bytes, words, writer.used_bytes);
    reader->chunk_bytes += writer.used_bytes;
}

/* A chunk that holds the end of a segment goes on with the next one. */
static void fill_chunk(struct trace_cursor *reader, size_t capacity_bytes)
{
    while (capacity_bytes - reader->chunk_bytes >= SEGMENT_BEGIN_BYTES) {
        if (trace_buffer_begins_segment(reader->buffer)) {
            begin_segment(reader);
        }
        size_t taken = trace_buffer_take(reader->buffer, reader->chunk + reader->chunk_bytes,
                                         capacity_bytes - reader->chunk_bytes);
        reader->chunk_bytes += taken;
        if (taken == 0) {
            break;
        }
    }
    reader->sequence += reader->chunk_bytes > 0;
}

void trace_cursor_read(struct trace_cursor *reader, size_t capacity_bytes, struct trace_chunk *ret)
{
    if (reader->segment_wanted) {
        reader->segment_wanted = false;
        reader->chunk_bytes = 0;
        trace_buffer_rewind(reader->buffer);
    }
    if (reader->chunk_bytes == 0) {
        fill_chunk(reader,
                   capacity_bytes < TRACE_CHUNK_BYTES_MAX ? capacity_bytes : TRACE_CHUNK_BYTES_MAX);
    }
    bool is_ready = reader->chunk_bytes > 0 && reader->chunk_bytes <= capacity_bytes;
    *ret = (struct trace_chunk){
        .bytes = reader->chunk,
        .size_bytes = is_ready ? reader->chunk_bytes : 0,
        .sequence = is_ready ? reader->sequence : 0,
    };
}

size_t trace_cursor_unread_bytes(const struct trace_cursor *reader)
{
    return trace_buffer_waiting_bytes(reader->buffer) + reader->chunk_bytes;
}

uint64_t trace_cursor_unread_samples(const struct trace_cursor *reader)
{
    return trace_buffer_unread_samples(reader->buffer);
}
