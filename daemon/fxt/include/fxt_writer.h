/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes FXT records into memory that the caller owns. A record goes in whole or not at all; one
 * that does not fit, or that breaks a limit of the format, sets `failed`, which stays set, and
 * nothing is written after it: write everything, then ask fxt_writer_ok() once. Never allocates.
 * libc only.
 */

#include "fxt_format.h"

struct fxt_writer {
    uint8_t *bytes; /* borrowed for the writer's life; 8-byte aligned */
    size_t capacity_bytes;
    size_t used_bytes; /* a multiple of 8 */
    bool failed;
};

void fxt_writer_init(struct fxt_writer *writer, void *bytes, size_t capacity_bytes);
bool fxt_writer_ok(const struct fxt_writer *writer);

/*
 * Begins a self-contained segment: magic, provider info and section, Initialization (1e9 ticks a
 * second: ticks are CLOCK_BOOTTIME ns), and the known strings. `provider_id` is not 0 and differs
 * between the segments that may end up in one file; `provider_name` is at most 255 bytes.
 */
void fxt_write_segment_begin(struct fxt_writer *writer, uint32_t provider_id,
                             const char *provider_name);

/* Defines string `index` (FXT_STRING_FIRST_FREE..FXT_STRING_INDEX_MAX); at most 4,096 bytes of
 * UTF-8. */
void fxt_write_string(struct fxt_writer *writer, uint16_t index, const char *text,
                      size_t text_bytes);

void fxt_write_name(struct fxt_writer *writer, const struct fxt_name *name);
void fxt_write_module(struct fxt_writer *writer, const struct fxt_module *module);
void fxt_write_mmap(struct fxt_writer *writer, const struct fxt_mmap *mmap);
void fxt_write_sample(struct fxt_writer *writer, const struct fxt_sample *sample);
void fxt_write_drop_stats(struct fxt_writer *writer, const struct fxt_drop_stats *stats);

/* A type-5 Data blob (type 1); at most FXT_DATA_BYTES_MAX bytes of payload, whole JSON lines. */
#define FXT_DATA_BYTES_MAX ((size_t)32752)
void fxt_write_data(struct fxt_writer *writer, enum fxt_known_string name, const void *payload,
                    size_t payload_bytes);
/* The same under a name that stands in the record, if it has no index. */
void fxt_write_named_data(struct fxt_writer *writer, const struct fxt_string *name,
                          const void *payload, size_t payload_bytes);
