/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes packets of a stream of records, a batch at a time. A segment has a live profile and a
 * sequence of packets of its own, since nothing that a segment defines means anything in another.
 * Where the live profile forgets its stacks, the sequence begins anew.
 *
 * A blob has whole packets, as many as fit. The longest packet is that of a stack with new
 * names, which perfetto_packets.c keeps far below the length of a blob; a longer one would go on in
 * the next blob, which readers of packets put together.
 */
#include "packets.h"

#include "cleanup.h"
#include "extremes.h"
#include "live_profile.h"
#include "perfetto_packets.h"
#include "recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES       ((size_t)1 << 20) /* of records: then their packets are made */
#define BLOB_PERFETTO     3
#define PAYLOAD_BYTES_MAX ((FXT_RECORD_WORDS_MAX - 1) * FXT_WORD_BYTES)
#define MORE_FOLLOWS      0x80U /* in a byte of a number */
#define NUMBER_BITS       7

struct packets {
    packets_out_fn *out;
    void *userdata;
    struct fxt_reader *reader;       /* owned */
    struct live_profile *live;       /* owned; of the segment at hand, NULL before the first */
    struct perfetto_packets *writer; /* owned; as `live` */
    FILE *memory;                    /* owned; what the writer writes to */
    char *made;                      /* owned; that as bytes, after fflush() */
    size_t made_bytes;
    size_t passed_bytes; /* since packets were made */
    uint64_t session_ns; /* of the session's first sample; 0: not known */
    uint64_t last_ns;    /* of samples */
    bool begins_session; /* the session's first sample has not come */
    bool has_begun;      /* the sequence */
    bool has_books;      /* they came, and are no counters yet */
    int fault;           /* -errno: no packets are made any more */
    uint64_t blob[FXT_RECORD_WORDS_MAX];
};

struct packets *packets_new(packets_out_fn *out, void *userdata)
{
    struct packets *packets = calloc(1, sizeof *packets);
    if (packets == NULL) {
        return NULL;
    }
    packets->out = out;
    packets->userdata = userdata;
    packets->reader = fxt_reader_new();
    packets->memory = open_memstream(&packets->made, &packets->made_bytes);
    return packets->reader == NULL || packets->memory == NULL ? packets_free(packets) : packets;
}

struct packets *packets_free(struct packets *packets)
{
    if (packets != NULL) {
        packets->writer = perfetto_packets_free(packets->writer);
        packets->live = live_profile_free(packets->live);
        packets->reader = fxt_reader_free(packets->reader);
        if (packets->memory != NULL) {
            (void)fclose(packets->memory);
        }
        free(packets->made);
        free(packets);
    }
    return NULL;
}

void packets_begin_session(struct packets *packets)
{
    packets->begins_session = true;
}

bool packets_are_cut(const struct packets *packets)
{
    return packets->fault == -ENOMEM;
}

/* The bytes of the packet at `bytes`, with its head; at most `left`. */
static size_t packet_bytes(const uint8_t *bytes, size_t left)
{
    size_t count = 0;
    size_t at = 1; /* behind the field's number */
    unsigned shift = 0;
    while (at < left && (bytes[at] & MORE_FOLLOWS) != 0 && shift < 4 * NUMBER_BITS) {
        count |= (size_t)(bytes[at++] & ~MORE_FOLLOWS) << shift;
        shift += NUMBER_BITS;
    }
    if (at < left) {
        count |= (size_t)bytes[at++] << shift;
    }
    return count < left - at ? at + count : left;
}

static int write_blob(struct packets *packets, const uint8_t *payload, size_t payload_bytes)
{
    size_t words = (payload_bytes + FXT_WORD_BYTES - 1) / FXT_WORD_BYTES;
    packets->blob[0] =
        fxt_put(FXT_HEADER_TYPE, FXT_TYPE_BLOB) | fxt_put(FXT_HEADER_WORDS, 1 + words) |
        fxt_put(FXT_BLOB_PAYLOAD_BYTES, payload_bytes) | fxt_put(FXT_BLOB_TYPE, BLOB_PERFETTO);
    packets->blob[words] = 0;
    memcpy(&packets->blob[1], payload, payload_bytes);
    return packets->out(packets->blob, (1 + words) * FXT_WORD_BYTES, packets->userdata);
}

/* Writes the packets that were made as blobs. */
static int write_blobs(struct packets *packets)
{
    int r = 0;
    if (fflush(packets->memory) != 0) {
        packets->fault = -ENOMEM;
        return 0;
    }
    const uint8_t *bytes = (const uint8_t *)packets->made;
    size_t left = packets->made_bytes;
    while (left > 0 && r == 0) {
        size_t taken = packet_bytes(bytes, left);
        for (size_t next = taken; taken < left && next <= PAYLOAD_BYTES_MAX;
             next = taken + packet_bytes(bytes + taken, left - taken)) {
            taken = next;
        }
        taken = taken < PAYLOAD_BYTES_MAX ? taken : PAYLOAD_BYTES_MAX;
        r = write_blob(packets, bytes, taken);
        bytes += taken;
        left -= taken;
    }
    rewind(packets->memory);
    return r;
}

static int begin_segment(struct packets *packets)
{
    packets->writer = perfetto_packets_free(packets->writer);
    packets->live = live_profile_free(packets->live);
    packets->live = live_profile_new(PROFILE_NAMES_READABLE, false);
    packets->has_begun = false;
    packets->has_books = false;
    if (packets->live != NULL) {
        packets->writer =
            perfetto_packets_new(packets->memory, live_profile_get(packets->live), true);
    }
    return packets->writer == NULL ? -ENOMEM : 0;
}

/* Begins the sequence, if it has not begun. */
static int begin_sequence(struct packets *packets, uint64_t time_ns)
{
    int r = packets->has_begun ? 0 : perfetto_packets_begin(packets->writer, time_ns);
    packets->has_begun = r == 0;
    return r;
}

static int make_samples(struct packets *packets, const struct profile *profile)
{
    int r = profile->sample_count > 0 ? begin_sequence(packets, profile->samples[0].time_ns) : 0;
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        uint64_t time_ns = profile->samples[i].time_ns;
        if (packets->begins_session) {
            packets->begins_session = false;
            packets->session_ns = time_ns;
        }
        packets->session_ns = time_ns < packets->session_ns ? time_ns : packets->session_ns;
        packets->last_ns = max_u64(packets->last_ns, time_ns);
        r = perfetto_packets_sample(packets->writer, &profile->samples[i]);
    }
    return r;
}

/* Makes the packets of what has come. */
static int make_packets(struct packets *packets, bool has_ended)
{
    const struct profile *profile = live_profile_get(packets->live);
    int r = live_profile_resolve(packets->live, has_ended);
    if (r == 0) {
        r = make_samples(packets, profile);
    }
    if (r == 0 && packets->has_begun) {
        r = perfetto_packets_late_names(packets->writer, packets->last_ns);
    }
    if (r == 0 && packets->has_books && packets->last_ns > 0) {
        r = begin_sequence(packets, packets->last_ns);
        packets->has_books = false;
        if (r == 0) {
            r = perfetto_packets_books(packets->writer, packets->session_ns, packets->last_ns);
        }
    }
    if (r == 0) {
        r = live_profile_forget(packets->live);
    }
    if (r == 0 && live_profile_is_large(packets->live)) {
        packets->has_begun = false;
        r = live_profile_renumber(packets->live);
    }
    return r;
}

int packets_flush(struct packets *packets, bool has_ended)
{
    if (packets->fault != 0 || packets->live == NULL) {
        return 0;
    }
    packets->passed_bytes = 0;
    packets->fault = make_packets(packets, has_ended);
    return packets->fault == 0 ? write_blobs(packets) : 0; /* the last packet may be a part */
}

/* Takes a record that was not passed on yet. `before_bytes` of records before it were not either.
 * Returns 0, or what `out` did. */
static int take_record(struct packets *packets, const struct fxt_record *record,
                       const uint8_t *before, size_t before_bytes, bool *ret_is_passed)
{
    int r = 0;
    *ret_is_passed = record->kind == FXT_RECORD_MAGIC && packets->live != NULL;
    if (*ret_is_passed) {
        r = before_bytes > 0 ? packets->out(before, before_bytes, packets->userdata) : 0;
        if (r == 0) {
            r = packets_flush(packets, true);
        }
    }
    if (record->kind == FXT_RECORD_MAGIC && packets->fault == 0) {
        packets->fault = begin_segment(packets);
    }
    if (packets->fault == 0) {
        packets->fault = live_profile_add(packets->live, record);
    }
    packets->has_books = packets->has_books || (record->kind == FXT_RECORD_DATA &&
                                                data_is_named(&record->data, DATA_NAME_BOOKS));
    return r;
}

int packets_pass(struct packets *packets, const void *bytes, size_t size_bytes)
{
    const uint8_t *start = bytes;
    size_t passed = 0;
    size_t at = 0;
    int r = 0;
    while (r == 0 && at < size_bytes && packets->fault == 0) {
        struct fxt_record record;
        bool is_passed = false;
        int read = fxt_reader_next(packets->reader, start + at, size_bytes - at, &record);
        if (read <= 0) {
            packets->fault = read == -ENOMEM ? -ENOMEM : -EBADMSG;
            break;
        }
        r = take_record(packets, &record, start + passed, at - passed, &is_passed);
        passed = is_passed ? at : passed;
        at += record.size_bytes;
    }
    if (r == 0 && passed < size_bytes) {
        r = packets->out(start + passed, size_bytes - passed, packets->userdata);
    }
    packets->passed_bytes += size_bytes;
    return r == 0 && packets->passed_bytes >= BATCH_BYTES ? packets_flush(packets, false) : r;
}
