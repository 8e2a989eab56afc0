/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Paths of recordings, as they stand on a command line. "-" is standard input. */

#include <stddef.h>

/* What a recording is called in a view: the last part of its path. Borrowed. */
const char *input_title(const char *path);

/* Finds two paths of one file. Returns 1 with their places, the first smaller than the second; 0:
 * all files differ; or -ENOMEM. Files that are not regular, or not there, are none. */
int input_find_same_file(const char *const *paths, size_t count, size_t *ret_first,
                         size_t *ret_second);
