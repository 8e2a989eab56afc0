/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The records of the last minutes, as they came, within a fixed number of bytes. Samples are
 * forgotten by their age; what later samples may refer to (names, mappings, symbols) stays as long
 * as its segment is the last one or has samples. So what is kept is a recording at any time.
 */

#include <stddef.h>
#include <stdint.h>

struct top_store;

/* Returned: top_store_free(). NULL when there is no memory. */
struct top_store *top_store_new(uint64_t bytes_max, uint64_t span_ns);
struct top_store *top_store_free(struct top_store *store);

/* Adds a whole record (borrowed, 8-byte aligned). Returns 0, or -ENOMEM. */
int top_store_add(struct top_store *store, const void *record, size_t size_bytes);

/* Ends the piece of the records that were added since the last call, which come and go together,
 * and forgets what is too old or too much. Returns 0, or -ENOMEM. */
int top_store_end_piece(struct top_store *store, uint64_t now_ns);

/* Called with whole records; a result other than 0 ends the walk. */
typedef int top_store_bytes_fn(const void *bytes, size_t size_bytes, void *userdata);

/* Walks through all records in the order of their coming, or through those of the last segment that
 * are no samples. Returns 0, or what `on_bytes` did. */
int top_store_walk(const struct top_store *store, top_store_bytes_fn *on_bytes, void *userdata);
int top_store_walk_definitions(const struct top_store *store, top_store_bytes_fn *on_bytes,
                               void *userdata);

/* When the oldest samples came that are kept; 0: there are none. */
uint64_t top_store_since_ns(const struct top_store *store);
uint64_t top_store_size_bytes(const struct top_store *store);
