/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * An array of at least `count` items and at least one, with what is in `array` (taken on success)
 * at its front. When it is too small it is at least doubled, and holds `least` or more. NULL when
 * there is no memory: all stays as it was. How many there may be is for the caller to say.
 */
static inline void *grow_array(void *array, size_t item_bytes, size_t *capacity, size_t count,
                               size_t least)
{
    if (count <= *capacity && *capacity > 0) {
        return array;
    }
    size_t wanted = *capacity * 2;
    wanted = wanted < least ? least : wanted;
    wanted = wanted < count ? count : wanted;
    void *grown = wanted > SIZE_MAX / 2 / item_bytes ? NULL : realloc(array, wanted * item_bytes);
    if (grown != NULL) {
        *capacity = wanted;
    }
    return grown;
}

/*
 * Makes `array` hold `count` items, and `least` or more if it has to move; `capacity` is the lvalue
 * that says how many it holds now. Returns 0, or -ENOMEM and leaves both as they were.
 */
#define grow_from(array, capacity, count, least)                                                   \
    ({                                                                                             \
        size_t capacity_ = (capacity);                                                             \
        size_t item_bytes_ = sizeof(__typeof__(*(array)));                                         \
        void *grown_ = grow_array((array), item_bytes_, &capacity_, (count), (least));             \
        if (grown_ != NULL) {                                                                      \
            (array) = grown_;                                                                      \
            (capacity) = (__typeof__(capacity))capacity_;                                          \
        }                                                                                          \
        grown_ == NULL ? -ENOMEM : 0;                                                              \
    })

#define grow(array, capacity, count) grow_from(array, capacity, count, 32)
