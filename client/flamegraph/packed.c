/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes columns into a page. A browser has the other direction of zlib and base64 itself.
 */
#include "packed.h"

#include "cleanup.h"
#include "grow.h"

#include <endian.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#define VARINT_BYTES_MAX 10
#define LINE_GROUPS      ((size_t)19) /* of three bytes, in a line of text */
#define GROUP_BYTES      ((size_t)3)
#define GROUP_LETTERS    ((size_t)4)
#define PIECE_BYTES      (1024 * LINE_GROUPS * GROUP_BYTES) /* whole lines */

struct packed {
    FILE *file; /* borrowed */
    z_stream deflate;
    uint8_t piece[PIECE_BYTES];
};

void column_done(struct column *column)
{
    free(column->bytes);
    *column = (struct column){0};
}

int column_put(struct column *column, uint64_t value)
{
    if (grow_from(column->bytes, column->capacity, column->size_bytes + VARINT_BYTES_MAX, 4096) <
        0) {
        return -ENOMEM;
    }
    for (; value >= 0x80; value >>= 7) {
        column->bytes[column->size_bytes++] = (uint8_t)(value | 0x80);
    }
    column->bytes[column->size_bytes++] = (uint8_t)value;
    return 0;
}

int column_put_signed(struct column *column, int64_t value)
{
    uint64_t twice = (uint64_t)value << 1;
    return column_put(column, value < 0 ? ~twice : twice);
}

struct packed *packed_new(FILE *file)
{
    struct packed *packed = calloc(1, sizeof *packed);
    if (packed == NULL || deflateInit(&packed->deflate, Z_BEST_SPEED) != Z_OK) {
        free(packed);
        return NULL;
    }
    packed->file = file;
    packed->deflate.next_out = packed->piece;
    packed->deflate.avail_out = PIECE_BYTES;
    return packed;
}

void packed_freep(struct packed **packed)
{
    if (*packed != NULL) {
        (void)deflateEnd(&(*packed)->deflate);
        free(*packed);
        *packed = NULL;
    }
}

/* Writes up to three bytes as four letters. */
static void write_group(char *text, const uint8_t *bytes, size_t count)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = (uint32_t)bytes[0] << 16;
    bits |= count > 1 ? (uint32_t)bytes[1] << 8 : 0;
    bits |= count > 2 ? bytes[2] : 0;
    text[0] = letters[bits >> 18];
    text[1] = letters[bits >> 12 & 63];
    text[2] = letters[bits >> 6 & 63];
    text[3] = letters[bits & 63];
    memset(text + 1 + count, '=', count < GROUP_BYTES ? GROUP_BYTES - count : 0);
}

/* Prints the piece and begins the next one. */
static void print_piece(struct packed *packed)
{
    size_t size_bytes = PIECE_BYTES - packed->deflate.avail_out;
    for (size_t at = 0; at < size_bytes;) {
        char line[LINE_GROUPS * GROUP_LETTERS + 1];
        size_t length = 0;
        for (; at < size_bytes && length < sizeof line - 1; at += GROUP_BYTES) {
            write_group(line + length, packed->piece + at, size_bytes - at);
            length += GROUP_LETTERS;
        }
        if (length == sizeof line - 1) {
            line[length++] = '\n';
        }
        (void)fwrite(line, 1, length, packed->file);
    }
    packed->deflate.next_out = packed->piece;
    packed->deflate.avail_out = PIECE_BYTES;
}

static void put_bytes(struct packed *packed, const void *bytes, size_t size_bytes)
{
    const uint8_t *at = bytes;
    while (size_bytes > 0) {
        uInt part = size_bytes < PIECE_BYTES ? (uInt)size_bytes : (uInt)PIECE_BYTES;
        packed->deflate.next_in = at;
        packed->deflate.avail_in = part;
        (void)deflate(&packed->deflate, Z_NO_FLUSH);
        size_t taken = part - packed->deflate.avail_in;
        at += taken;
        size_bytes -= taken;
        if (packed->deflate.avail_out == 0) {
            print_piece(packed);
        }
    }
}

void packed_put(struct packed *packed, const void *bytes, size_t size_bytes)
{
    uint64_t length = htole64(size_bytes);
    put_bytes(packed, &length, sizeof length);
    put_bytes(packed, bytes, size_bytes);
}

void packed_end(struct packed *packed)
{
    while (deflate(&packed->deflate, Z_FINISH) == Z_OK) {
        print_piece(packed);
    }
    print_piece(packed);
}
