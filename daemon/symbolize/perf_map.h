/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "symbol_table.h"

/* A larger map is not read; nor are more than this many functions. */
#define PERF_MAP_BYTES_MAX ((size_t)64 << 20)
#define PERF_MAP_LINES_MAX ((size_t)2 << 20)

/*
 * Adds the functions of a perf map, the text in which a runtime says what code it has made: lines
 * of "START SIZE NAME", both numbers hexadecimal, addresses as the process has them. A runtime
 * appends what it makes, and uses addresses again; where functions overlap, the later line holds.
 * A line of another form, or one that has no end yet, is left out.
 *
 * Returns 0; -E2BIG, -ENOMEM.
 */
int perf_map_parse(const char *text, size_t bytes, struct symbol_builder *builder);

/* The same with the text read from a file (borrowed), which also limits the builder. Also -errno of
 * fstat() and read(). */
int perf_map_read(int fd, struct symbol_builder *builder);
