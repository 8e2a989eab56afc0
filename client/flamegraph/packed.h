/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Columns of numbers, and the stream in which they stand in a page: sections, each with its length
 * before it, compressed as zlib does, in base64.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Numbers as LEB128: seven bits a byte, the lowest first, and bit 7 where more follow. All zero is
 * an empty column. */
struct column {
    uint8_t *bytes; /* owned */
    size_t capacity;
    size_t size_bytes;
};

void column_done(struct column *column);
/* Returns 0, or -ENOMEM. */
int column_put(struct column *column, uint64_t value);
/* A number that may be negative: twice as much, and less 1 below 0. */
int column_put_signed(struct column *column, int64_t value);

struct packed;

/* Begins the stream in `file` (borrowed). Returned: packed_freep(); NULL when memory is short. */
struct packed *packed_new(FILE *file);
void packed_freep(struct packed **packed);

/* Adds a section. Errors of the file are for the caller to find. */
void packed_put(struct packed *packed, const void *bytes, size_t size_bytes);

/* Ends the stream. */
void packed_end(struct packed *packed);
