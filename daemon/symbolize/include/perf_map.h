/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "symbol_table.h"

#include <stdbool.h>

/* A larger map is not read; nor are more than this many functions. */
#define PERF_MAP_BYTES_MAX ((size_t)64 << 20)
#define PERF_MAP_LINES_MAX ((size_t)2 << 20)

/* A file may have been changed so long after the time of change that it shows. */
#define PERF_MAP_SLACK_NS UINT64_C(1000000000)

/*
 * Each function of the table has a claim, the place in the text of the line that holds there:
 * whoever appends a line has the higher claim, and equal claims of one text are one line. The bit
 * says that other lines, too, have claimed some of these addresses.
 */
#define PERF_MAP_CLAIM_SHARED (UINT32_C(1) << 31)

/* What was read, which stands in the table where that of an ELF file has its build-id. */
struct perf_map_state {
    uint64_t text_bytes; /* of whole lines */
    uint64_t text_hash;
    uint64_t known_bytes; /* of the text as it was read before, 0: not asked, or no longer there */
    uint64_t known_hash;  /* of as many bytes of this one */
    int64_t changed_s;    /* st_ctim; all zero when it was changed meanwhile */
    int64_t changed_ns;
};

/* The state that a table made by perf_map_read() has; false: it has none. */
bool perf_map_state(const struct symbol_table *table, struct perf_map_state *ret);

/*
 * Adds the functions of a perf map, the text in which a runtime says what code it has made: lines
 * of "START SIZE NAME", both numbers hexadecimal, addresses as the process has them. A runtime
 * appends what it makes, and uses addresses again; where functions overlap, the later line holds.
 * A line of another form, or one that has no end yet, is left out.
 *
 * Returns 0; -E2BIG, -ENOMEM.
 */
int perf_map_parse(const char *text, size_t bytes, struct symbol_builder *builder);

/* The same with the text read from a file (borrowed), which also limits the builder, and the state.
 * `known_bytes` is what the reading before had of whole lines. Also -errno of fstat() and read().
 */
int perf_map_read(int fd, size_t known_bytes, struct symbol_builder *builder);
