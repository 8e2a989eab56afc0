/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Large blocks of memory in huge pages: much of what a read here and there costs is the walk of the
 * page tables, and a page that is touched first takes longer than what is done with it. Nothing
 * depends on it: where the kernel has none, pages are small.
 */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

/* A block of so many bytes, all zero. Returned: huge_pages_free(). NULL when there is no memory. */
void *huge_pages_new(size_t bytes);

/* Releases a block of huge_pages_new() or huge_pages_grow(), or NULL. `bytes` is its size. */
void huge_pages_free(void *block, size_t bytes);

/* What huge_pages_grow() does for any type. */
void *huge_pages_grow_array(void *array, size_t item_bytes, size_t *capacity, size_t count);

/*
 * Makes `array` hold `count` items, in the way of grow(). What is in it moves without being copied,
 * and huge pages stay huge. The array is released by huge_pages_free(), for `capacity` items.
 * Returns 0, or -ENOMEM and leaves both as they were.
 */
#define huge_pages_grow(array, capacity, count)                                                    \
    ({                                                                                             \
        size_t capacity_ = (capacity);                                                             \
        void *grown_ = capacity_ > 0 && (count) <= capacity_                                       \
                           ? (array)                                                               \
                           : huge_pages_grow_array((array), sizeof(__typeof__(*(array))),          \
                                                   &capacity_, (count));                           \
        if (grown_ != NULL) {                                                                      \
            (array) = grown_;                                                                      \
            (capacity) = capacity_;                                                                \
        }                                                                                          \
        grown_ == NULL ? -ENOMEM : 0;                                                              \
    })
