/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads jitdump files, in which a runtime says what code it has made, where and when: records with
 * times, one after another, which it only appends. Each function gets addresses of its own in the
 * table of symbols, from JITDUMP_VADDR on, in the order of the records: a file that has grown gives
 * the same addresses to what was in it before. Which of them were to be seen where, and from when
 * until when, is in the spans (code_spans.h); their times are CLOCK_MONOTONIC.
 */

#include "code_spans.h"
#include "symbol_table.h"

#define JITDUMP_VADDR (UINT64_C(1) << 57) /* above what a process can map */

/* A larger file is not read, of any file no more than so many records, and so much of one name. */
#define JITDUMP_BYTES_MAX      ((size_t)1 << 30)
#define JITDUMP_RECORDS_MAX    ((size_t)1 << 20)
#define JITDUMP_NAME_BYTES_MAX SYMBOL_NAME_BYTES_MAX

/*
 * Adds the functions of a file (borrowed) to the builder, and gives the spans to release with
 * free(). The builder's build-id becomes a struct perf_map_state: the bytes and hash of the whole
 * records, and the same of the first `known_bytes`.
 *
 * Returns 0; -EBADMSG where it is no such file, or is another machine's; -ENOTSUP where it has
 * times of another clock than CLOCK_MONOTONIC; -E2BIG; -ENOMEM; -errno of fstat() and pread().
 */
int jitdump_read(int fd, size_t known_bytes, struct symbol_builder *builder, void **ret_spans,
                 size_t *ret_spans_bytes);

/* The same of bytes (borrowed) that a file would have. */
int jitdump_parse(const void *bytes, size_t size_bytes, size_t known_bytes,
                  struct symbol_builder *builder, void **ret_spans, size_t *ret_spans_bytes);
