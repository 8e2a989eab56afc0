/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The name of a file that is not whole yet, and that a later run can go on with:
 *     PATH.partial-TAG-MARK-BYTES
 * Its first BYTES bytes are good and contain all up to MARK; what follows them does not count. The
 * name is the only record of that, so that a rename changes both at once.
 */

#include <stdint.h>

struct partial {
    uint64_t mark;
    uint64_t size_bytes;
};

/* Returned: free(). NULL when there is no memory. */
char *partial_name(const char *path, const char *tag, const struct partial *partial);

/*
 * Finds the file of that path and tag; of several the one with the highest mark. `*ret_name` is
 * returned: free(). Returns 0, -ENOENT when there is none, or another -errno.
 */
int partial_find(const char *path, const char *tag, struct partial *ret, char **ret_name);
