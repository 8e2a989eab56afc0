/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * An array of at least `count` items and at least one, with what is in `array` (taken on success)
 * at its front. It is at least doubled when it is too small. NULL when there is no memory: all
 * stays as it was.
 */
static inline void *grow_array(void *array, size_t item_bytes, size_t *capacity, size_t count)
{
    if (count <= *capacity && *capacity > 0) {
        return array;
    }
    size_t wanted = *capacity < 16 ? 32 : *capacity * 2;
    wanted = wanted < count ? count : wanted;
    void *grown = wanted > SIZE_MAX / 2 / item_bytes ? NULL : realloc(array, wanted * item_bytes);
    if (grown != NULL) {
        *capacity = wanted;
    }
    return grown;
}

/*
 * Makes `array` hold `count` items; `capacity` is the lvalue that says how many it holds now.
 * Returns 0, or -ENOMEM and leaves both as they were.
 */
#define grow(array, capacity, count)                                                               \
    ({                                                                                             \
        void *grown_ = grow_array((array), sizeof *(array), &(capacity), (count));                 \
        if (grown_ != NULL) {                                                                      \
            (array) = grown_;                                                                      \
        }                                                                                          \
        grown_ == NULL ? -ENOMEM : 0;                                                              \
    })
