/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads jitdump files. A runtime appends a record to its file for each function that it generates:
 * the code's address, size, name and time. Each function gets addresses of its own in the symbol
 * table, from JITDUMP_VADDR on, in the order of the records. So when a file has grown, the
 * functions that were in it keep their addresses. The spans (code_spans.h) say which function was
 * at which address of the process, and when; their times are CLOCK_MONOTONIC.
 */

#include "code_spans.h"
#include "symbol_table.h"

#define JITDUMP_VADDR (UINT64_C(1) << 57) /* above what a process can map */

/* A larger file is not read. Limits of the records of a file, and of the bytes of a name. */
#define JITDUMP_BYTES_MAX      ((size_t)1 << 30)
#define JITDUMP_RECORDS_MAX    ((size_t)1 << 20)
#define JITDUMP_NAME_BYTES_MAX SYMBOL_NAME_BYTES_MAX

/*
 * Adds the functions of a file (borrowed) to the builder; the spans (returned) are released with
 * free(). The builder's build-id becomes a struct perf_map_state: the size and hash of all whole
 * records, and the hash of the first `known_bytes`.
 *
 * Returns 0; -EBADMSG: not such a file, or one of another machine; -ENOTSUP: its times are not of
 * CLOCK_MONOTONIC; -E2BIG; -ENOMEM; -errno of fstat() and pread().
 */
int jitdump_read(int fd, size_t known_bytes, struct symbol_builder *builder, void **ret_spans,
                 size_t *ret_spans_bytes);

/* The same for the bytes (borrowed) of a file. */
int jitdump_parse(const void *bytes, size_t size_bytes, size_t known_bytes,
                  struct symbol_builder *builder, void **ret_spans, size_t *ret_spans_bytes);
