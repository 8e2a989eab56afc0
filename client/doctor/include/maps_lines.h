/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The text of /proc/PID/maps, in pieces of whole lines. A program may have tens of thousands of
 * mappings, and those of its libraries stand at the end.
 */

#include <stdbool.h>
#include <stddef.h>

/* Room for three times as many mappings as the kernel allows by default. */
#define MAPS_BYTES_MAX ((size_t)32 << 20)

typedef void maps_lines_fn(const char *lines, void *userdata);

/*
 * Gives all lines of the file (borrowed, and not waited for), but for those behind the first
 * MAPS_BYTES_MAX. `*ret_is_cut` is whether there are such. Returns 0, or -errno, when some lines
 * may have been given.
 */
int maps_lines_read(int fd, maps_lines_fn *take, void *userdata, bool *ret_is_cut);
