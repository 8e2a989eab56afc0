/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A list of segments, each with the definitions that remain of its forgotten pieces, and its pieces
 * as they came. A piece that is forgotten leaves its definitions behind, in their order; a segment
 * without pieces goes with them, unless more may follow. A stream without some of its samples is a
 * valid stream: definitions never refer to samples (docs/trace-format.md).
 */
#include "top_store.h"

#include "cleanup.h"
#include "fxt_format.h"
#include "grow.h"

#include <string.h>

struct bytes {
    uint8_t *bytes; /* owned */
    size_t capacity;
    size_t count;
};

struct piece {
    struct bytes records;
    uint64_t came_ns;
};

struct segment {
    struct bytes definitions;
    struct piece *pieces; /* owned; those from `first` on are there */
    size_t piece_capacity;
    size_t piece_count;
    size_t first;
    bool is_ended; /* its last piece is whole */
};

struct top_store {
    struct segment *segments; /* owned */
    size_t segment_capacity;
    size_t segment_count;
    uint64_t size_bytes;
    uint64_t bytes_max;
    uint64_t span_ns;
};

struct top_store *top_store_new(uint64_t bytes_max, uint64_t span_ns)
{
    struct top_store *store = calloc(1, sizeof *store);
    if (store != NULL) {
        store->bytes_max = bytes_max;
        store->span_ns = span_ns;
    }
    return store;
}

static void segment_done(struct segment *segment)
{
    for (size_t i = segment->first; i < segment->piece_count; i++) {
        free(segment->pieces[i].records.bytes);
    }
    free(segment->pieces);
    free(segment->definitions.bytes);
}

struct top_store *top_store_free(struct top_store *store)
{
    if (store != NULL) {
        for (size_t i = 0; i < store->segment_count; i++) {
            segment_done(&store->segments[i]);
        }
        free(store->segments);
        free(store);
    }
    return NULL;
}

uint64_t top_store_size_bytes(const struct top_store *store)
{
    return store->size_bytes;
}

uint64_t top_store_since_ns(const struct top_store *store)
{
    for (size_t i = 0; i < store->segment_count; i++) {
        const struct segment *segment = &store->segments[i];
        if (segment->first < segment->piece_count) {
            return segment->pieces[segment->first].came_ns;
        }
    }
    return 0;
}

static uint64_t header_of(const void *record)
{
    uint64_t header = 0;
    memcpy(&header, record, sizeof header);
    return header;
}

/* Samples, and events: those that tell of dropped samples. */
static bool is_of_samples(uint64_t header)
{
    uint64_t type = fxt_get(header, FXT_HEADER_TYPE);
    return type == FXT_TYPE_EVENT ||
           (type == FXT_TYPE_BLOB && fxt_get(header, FXT_BLOB_TYPE) == FXT_BLOB_SAMPLE);
}

static int append(struct bytes *into, const void *bytes, size_t count)
{
    int r = grow(into->bytes, into->capacity, into->count + count);
    if (r == 0) {
        memcpy(into->bytes + into->count, bytes, count);
        into->count += count;
    }
    return r;
}

static struct segment *last_segment(struct top_store *store)
{
    return store->segment_count == 0 ? NULL : &store->segments[store->segment_count - 1];
}

static int begin_segment(struct top_store *store)
{
    int r = grow(store->segments, store->segment_capacity, store->segment_count + 1);
    if (r == 0) {
        store->segments[store->segment_count++] = (struct segment){.is_ended = true};
    }
    return r;
}

/* Moves the pieces to the front, where forgotten ones have left room. */
static void close_up(struct segment *segment)
{
    size_t count = segment->piece_count - segment->first;
    if (segment->first > count) {
        memmove(segment->pieces, segment->pieces + segment->first, count * sizeof *segment->pieces);
        segment->first = 0;
        segment->piece_count = count;
    }
}

static int begin_piece(struct segment *segment)
{
    close_up(segment);
    int r = grow(segment->pieces, segment->piece_capacity, segment->piece_count + 1);
    if (r == 0) {
        segment->pieces[segment->piece_count++] = (struct piece){0};
        segment->is_ended = false;
    }
    return r;
}

int top_store_add(struct top_store *store, const void *record, size_t size_bytes)
{
    int r = 0;
    if (header_of(record) == FXT_MAGIC_WORD || store->segment_count == 0) {
        r = begin_segment(store);
    }
    struct segment *segment = last_segment(store);
    if (r == 0 && segment->is_ended) {
        r = begin_piece(segment);
    }
    if (r == 0) {
        r = append(&segment->pieces[segment->piece_count - 1].records, record, size_bytes);
    }
    store->size_bytes += r == 0 ? size_bytes : 0;
    return r;
}

/* Calls `on_bytes` for each record of `bytes` that is no sample. */
static int walk_definitions(const struct bytes *bytes, top_store_bytes_fn *on_bytes, void *userdata)
{
    int r = 0;
    size_t record_bytes = 0;
    for (size_t at = 0; at < bytes->count && r == 0; at += record_bytes) {
        uint64_t header = header_of(bytes->bytes + at);
        record_bytes = fxt_get(header, FXT_HEADER_WORDS) * FXT_WORD_BYTES;
        if (!is_of_samples(header)) {
            r = on_bytes(bytes->bytes + at, record_bytes, userdata);
        }
    }
    return r;
}

/* A top_store_bytes_fn. */
static int append_definition(const void *bytes, size_t size_bytes, void *userdata)
{
    return append(userdata, bytes, size_bytes);
}

/* Forgets the samples of the segment's first piece. */
static int forget_piece(struct top_store *store, struct segment *segment)
{
    struct piece *piece = &segment->pieces[segment->first];
    size_t before = segment->definitions.count;
    int r = walk_definitions(&piece->records, append_definition, &segment->definitions);
    if (r == 0) {
        store->size_bytes -= piece->records.count - (segment->definitions.count - before);
        free(piece->records.bytes);
        segment->first++;
    }
    return r;
}

static void forget_segment(struct top_store *store)
{
    store->size_bytes -= store->segments[0].definitions.count;
    segment_done(&store->segments[0]);
    store->segment_count--;
    memmove(store->segments, store->segments + 1, store->segment_count * sizeof *store->segments);
}

/* Gives the room back that will not be needed. */
static void give_back(struct bytes *bytes)
{
    uint8_t *smaller = realloc(bytes->bytes, bytes->count);
    if (smaller != NULL) {
        bytes->bytes = smaller;
        bytes->capacity = bytes->count;
    }
}

/* Notes when all pieces have come; the segments before the last one are whole too. */
static void note_times(struct top_store *store, uint64_t now_ns)
{
    for (size_t i = store->segment_count; i-- > 0 && !store->segments[i].is_ended;) {
        struct segment *segment = &store->segments[i];
        segment->pieces[segment->piece_count - 1].came_ns = now_ns;
        give_back(&segment->pieces[segment->piece_count - 1].records);
        segment->is_ended = true;
    }
}

int top_store_end_piece(struct top_store *store, uint64_t now_ns)
{
    int r = 0;
    note_times(store, now_ns);
    while (r == 0 && store->segment_count > 0) {
        struct segment *segment = &store->segments[0];
        bool has_pieces = segment->first < segment->piece_count;
        if (!has_pieces && store->segment_count > 1) {
            forget_segment(store);
        } else if (has_pieces &&
                   (store->size_bytes > store->bytes_max ||
                    segment->pieces[segment->first].came_ns + store->span_ns < now_ns)) {
            r = forget_piece(store, segment);
        } else {
            break;
        }
    }
    return r;
}

int top_store_walk(const struct top_store *store, top_store_bytes_fn *on_bytes, void *userdata)
{
    int r = 0;
    for (size_t i = 0; i < store->segment_count && r == 0; i++) {
        const struct segment *segment = &store->segments[i];
        if (segment->definitions.count > 0) {
            r = on_bytes(segment->definitions.bytes, segment->definitions.count, userdata);
        }
        for (size_t k = segment->first; k < segment->piece_count && r == 0; k++) {
            const struct bytes *records = &segment->pieces[k].records;
            r = on_bytes(records->bytes, records->count, userdata);
        }
    }
    return r;
}

int top_store_walk_definitions(const struct top_store *store, top_store_bytes_fn *on_bytes,
                               void *userdata)
{
    if (store->segment_count == 0) {
        return 0;
    }
    const struct segment *segment = &store->segments[store->segment_count - 1];
    int r = walk_definitions(&segment->definitions, on_bytes, userdata);
    for (size_t i = segment->first; i < segment->piece_count && r == 0; i++) {
        r = walk_definitions(&segment->pieces[i].records, on_bytes, userdata);
    }
    return r;
}
