/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes on their way to a stream, for what prints millions of short pieces: a piece is a copy into
 * a buffer, and no call. What the buffer has stands behind what the stream was given before, and
 * is with it after byte_out_flush(). Errors are the stream's.
 */

#include "digits.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BYTE_OUT_BYTES ((size_t)16384)

/* All zero but `file` is an empty one. */
struct byte_out {
    FILE *file; /* borrowed */
    size_t used_bytes;
    char bytes[BYTE_OUT_BYTES];
};

static inline void byte_out_flush(struct byte_out *out)
{
    (void)fwrite_unlocked(out->bytes, 1, out->used_bytes, out->file);
    out->used_bytes = 0;
}

/* Where up to `count` (at most BYTE_OUT_BYTES) bytes may be put; `used_bytes` then tells how many
 * were. */
static inline char *byte_out_room(struct byte_out *out, size_t count)
{
    if (count > BYTE_OUT_BYTES - out->used_bytes) {
        byte_out_flush(out);
    }
    return out->bytes + out->used_bytes;
}

static inline void byte_out_put(struct byte_out *out, const void *bytes, size_t count)
{
    if (count > BYTE_OUT_BYTES) {
        byte_out_flush(out);
        (void)fwrite_unlocked(bytes, 1, count, out->file);
        return;
    }
    memcpy(byte_out_room(out, count), bytes, count);
    out->used_bytes += count;
}

static inline void byte_out_text(struct byte_out *out, const char *text)
{
    byte_out_put(out, text, strlen(text));
}

static inline void byte_out_decimal(struct byte_out *out, uint64_t value)
{
    char *into = byte_out_room(out, DIGITS_MAX);
    out->used_bytes += digits_decimal(value, into);
}

static inline void byte_out_hex(struct byte_out *out, uint64_t value)
{
    char *into = byte_out_room(out, DIGITS_MAX);
    out->used_bytes += digits_hex(value, into);
}
