/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Makes the array at `*array` (of `*capacity` items of `item_bytes`) hold at least `count` items,
 * at least doubling it. Returns 0, or -ENOMEM and leaves both as they were.
 */
static inline int grow_array(void *array, size_t item_bytes, size_t *capacity, size_t count)
{
    if (count <= *capacity) {
        return 0;
    }
    size_t wanted = *capacity < 16 ? 32 : *capacity * 2;
    wanted = wanted < count ? count : wanted;
    void *old = NULL;
    memcpy(&old, array, sizeof old);
    void *grown = wanted > SIZE_MAX / 2 / item_bytes ? NULL : realloc(old, wanted * item_bytes);
    if (grown == NULL) {
        return -ENOMEM;
    }
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return 0;
}

/* Makes `array` hold `count` items; `capacity` is the lvalue that says how many it holds now. */
#define grow(array, capacity, count) grow_array(&(array), sizeof *(array), &(capacity), (count))
