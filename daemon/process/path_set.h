/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Paths, each kept once however many have it. A set begins as zero bytes.
 */

#include <stddef.h>

struct path_set {
    struct path_text **buckets; /* owned */
    size_t bucket_count;
    size_t path_count;
    size_t path_bytes;
};

/* There are no paths left in it. */
void path_set_done(struct path_set *set);

/* The set's own copy of the first `bytes` of `path` at most, once more in use; NULL: no memory. */
const char *path_set_get(struct path_set *set, const char *path, size_t bytes);
/* What path_set_get() gave is in use once less. */
void path_set_put(struct path_set *set, const char *path);
