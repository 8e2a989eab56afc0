/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where a module's addresses lie in its file: its program headers say so, which a recording does
 * not have. Only the headers are read, a bounded part of the file, and only their numbers are used.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_SEGMENTS_MAX ((size_t)16)

struct load_segments {
    struct {
        uint64_t address;
        uint64_t size_bytes;
        uint64_t offset_bytes; /* in the file */
    } segments[LOAD_SEGMENTS_MAX];
    size_t count; /* 0: not known */
};

/* Reads those of the file at `path`, if its build-id is `build_id` (hexadecimal digits). */
void load_segments_read(const char *path, const char *build_id, struct load_segments *ret);

/* Where in the file a module's address is. False: not known. */
bool load_segments_find(const struct load_segments *segments, uint64_t address,
                        uint64_t *ret_offset_bytes);
