/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads FXT records, strictly: every length is checked before it is used, and what the format
 * forbids is an error that says where it stands. It keeps the string, thread and provider tables,
 * so a record comes out with its references resolved. Bytes may be fed piece by piece, cut
 * anywhere. libc only.
 */

#include "fxt_format.h"

enum fxt_record_kind {
    FXT_RECORD_MAGIC,
    FXT_RECORD_PROVIDER, /* info (`string` is its name) or section (it is empty): `provider_id` */
    FXT_RECORD_INITIALIZATION,
    FXT_RECORD_STRING,
    FXT_RECORD_NAME, /* type 7, process or thread */
    FXT_RECORD_MODULE,
    FXT_RECORD_MMAP,
    FXT_RECORD_SAMPLE,
    FXT_RECORD_DROP_STATS,
    FXT_RECORD_DATA,  /* Data blob: `data` */
    FXT_RECORD_OTHER, /* valid, of a kind that this project does not write; skipped by its size */
};

struct fxt_data {
    struct fxt_string name;
    const uint8_t *payload; /* in the reader's input */
    size_t payload_bytes;
};

struct fxt_record {
    enum fxt_record_kind kind;
    uint8_t type; /* the header's bits 0-3 */
    size_t size_bytes;
    uint64_t offset_bytes; /* in the whole stream, from its first byte */
    uint32_t provider_id;  /* of the section that the record stands in; 0 before the first */
    union {
        struct fxt_string string;
        uint64_t ticks_per_second;
        struct fxt_name name;
        struct fxt_module module;
        struct fxt_mmap mmap;
        struct fxt_sample sample;
        struct fxt_drop_stats drop_stats;
        struct fxt_data data;
    };
};

struct fxt_reader;

/* Returned; release with fxt_reader_free(). NULL when there is no memory. */
struct fxt_reader *fxt_reader_new(void);
struct fxt_reader *fxt_reader_free(struct fxt_reader *reader);

/*
 * Reads the record at `bytes` (borrowed, 8-byte aligned). Texts in `ret` live until the next call
 * or, where they point into the input, as long as that. Times are ns, whatever a tick of the file
 * is. A magic number begins a new segment: all providers before it, and their tables, are gone.
 *
 * Returns 1 and fills `ret`: the caller goes on at bytes + ret->size_bytes; 0: the record is not
 * whole yet (or `size_bytes` is 0); -EBADMSG: not FXT, or against the format; fxt_reader_error()
 * says what and at which offset; -ENOMEM. An error changes nothing of the reader: the same bytes
 * give it again. What is in `ret` means something after a 1 only.
 */
int fxt_reader_next(struct fxt_reader *reader, const uint8_t *bytes, size_t size_bytes,
                    struct fxt_record *ret);

/* One sentence about the last error, "offset 128: ...". Borrowed from the reader. */
const char *fxt_reader_error(const struct fxt_reader *reader);
