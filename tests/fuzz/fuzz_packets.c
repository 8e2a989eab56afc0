/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes pass unchanged, in pieces of as many records as the first byte says. What is added are
 * blobs of type 3, each whole, and the packets in them, one behind the other, are a trace of whole
 * packets.
 */
#include "fuzz_target.h"
#include "fxt_format.h"
#include "packets.h"

#include <stdlib.h>
#include <string.h>

#define OUT_MAX       ((size_t)16 << 20)
#define BLOB_PERFETTO 3
#define PACKET_KEY    0x0a /* field 1, of bytes */

struct out {
    const uint8_t *expected; /* what is to pass */
    size_t expected_bytes;
    size_t passed_bytes;
    uint8_t *trace;
    size_t trace_bytes;
};

static void take_blob(struct out *out, uint64_t header, const uint8_t *payload, size_t size_bytes)
{
    size_t payload_bytes = (size_t)fxt_get(header, FXT_BLOB_PAYLOAD_BYTES);
    size_t words = (size_t)fxt_get(header, FXT_HEADER_WORDS);
    if (words * FXT_WORD_BYTES != size_bytes || payload_bytes == 0 ||
        payload_bytes > size_bytes - FXT_WORD_BYTES ||
        size_bytes - FXT_WORD_BYTES - payload_bytes >= FXT_WORD_BYTES ||
        payload_bytes > OUT_MAX - out->trace_bytes) {
        abort();
    }
    memcpy(out->trace + out->trace_bytes, payload, payload_bytes);
    out->trace_bytes += payload_bytes;
}

/* A packets_out_fn. A call is bytes of the input, where they stand, or one blob. */
static int take_bytes(const void *bytes, size_t size_bytes, void *userdata)
{
    struct out *out = userdata;
    uint64_t header = 0;
    const uint8_t *at = bytes;
    if (at >= out->expected && at < out->expected + out->expected_bytes) {
        if (at != out->expected + out->passed_bytes ||
            size_bytes > out->expected_bytes - out->passed_bytes) {
            abort();
        }
        out->passed_bytes += size_bytes;
        return 0;
    }
    if (size_bytes < sizeof header) {
        abort();
    }
    memcpy(&header, bytes, sizeof header);
    if (fxt_get(header, FXT_HEADER_TYPE) != FXT_TYPE_BLOB ||
        fxt_get(header, FXT_BLOB_TYPE) != BLOB_PERFETTO) {
        abort();
    }
    take_blob(out, header, (const uint8_t *)bytes + sizeof header, size_bytes);
    return 0;
}

/* Whether the trace is whole packets. */
static bool is_whole(const uint8_t *trace, size_t left)
{
    while (left > 0) {
        size_t packet_bytes = 0;
        size_t at = 1;
        unsigned shift = 0;
        if (trace[0] != PACKET_KEY) {
            return false;
        }
        do {
            if (at == left || shift > 28) {
                return false;
            }
            packet_bytes |= (size_t)(trace[at] & 0x7f) << shift;
            shift += 7;
        } while ((trace[at++] & 0x80) != 0);
        if (packet_bytes > left - at) {
            return false;
        }
        trace += at + packet_bytes;
        left -= at + packet_bytes;
    }
    return true;
}

/* The bytes of so many records, or all that are left. */
static size_t piece_bytes(const uint8_t *bytes, size_t left, size_t record_count)
{
    size_t at = 0;
    for (size_t i = 0; i < record_count && left - at >= sizeof(uint64_t); i++) {
        uint64_t header = 0;
        memcpy(&header, bytes + at, sizeof header);
        size_t record_bytes = (size_t)fxt_get(header, FXT_HEADER_WORDS) * FXT_WORD_BYTES;
        if (record_bytes == 0 || record_bytes > left - at) {
            return left;
        }
        at += record_bytes;
    }
    return at > 0 ? at : left;
}

static void pass(const uint8_t *bytes, size_t size_bytes, size_t record_count, struct out *out)
{
    struct packets *packets = packets_new(take_bytes, out);
    if (packets == NULL) {
        return;
    }
    packets_begin_session(packets);
    for (size_t at = 0, part = 0; at < size_bytes; at += part) {
        part = piece_bytes(bytes + at, size_bytes - at, record_count);
        if (packets_pass(packets, bytes + at, part) < 0 || packets_flush(packets, false) < 0) {
            abort();
        }
    }
    if (packets_flush(packets, true) < 0 || out->passed_bytes != size_bytes ||
        (!packets_are_cut(packets) && !is_whole(out->trace, out->trace_bytes))) {
        abort();
    }
    (void)packets_free(packets);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static uint8_t trace[OUT_MAX];
    if (size == 0) {
        return 0;
    }
    uint8_t *aligned = aligned_alloc(FXT_WORD_BYTES, (size / FXT_WORD_BYTES + 1) * FXT_WORD_BYTES);
    struct out out = {.expected = aligned, .expected_bytes = size - 1, .trace = trace};
    if (aligned != NULL) {
        memcpy(aligned, bytes + 1, size - 1);
        pass(aligned, size - 1, bytes[0], &out);
    }
    free(aligned);
    return 0;
}
