/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Records of a perf.data file, as the kernel writes them: a header, fields, and behind all but
 * samples who it is of and when.
 */

#include "byte_out.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_RECORD_BYTES_MAX ((size_t)UINT16_MAX)

/* All zero but the file of `out` is an empty one; without a file, records are only counted. What
 * was ended is with the file after perf_records_flush(). */
struct perf_records {
    struct byte_out out;
    uint64_t written_bytes; /* of all records */
    size_t used_bytes;      /* of the record at hand */
    uint8_t bytes[PERF_RECORD_BYTES_MAX + 1];
};

struct perf_task {
    uint64_t time_ns;
    uint32_t pid;
    uint32_t tid;
    uint32_t cpu;
};

void perf_records_begin(struct perf_records *records, uint32_t type, uint16_t misc);

static inline void perf_records_bytes(struct perf_records *records, const void *bytes,
                                      size_t size_bytes)
{
    assert(size_bytes <= PERF_RECORD_BYTES_MAX - records->used_bytes);
    memcpy(records->bytes + records->used_bytes, bytes, size_bytes);
    records->used_bytes += size_bytes;
}

static inline void perf_records_u32(struct perf_records *records, uint32_t value)
{
    perf_records_bytes(records, &value, sizeof value);
}

static inline void perf_records_u64(struct perf_records *records, uint64_t value)
{
    perf_records_bytes(records, &value, sizeof value);
}

/* A name as a terminal can show it, with a NUL, and NULs up to a whole word; a long one is cut. */
void perf_records_text(struct perf_records *records, const char *text);
/* What stands at the end of a record that is no sample. */
void perf_records_task(struct perf_records *records, const struct perf_task *task);
/* Ends the record. */
void perf_records_end(struct perf_records *records);
void perf_records_flush(struct perf_records *records);
