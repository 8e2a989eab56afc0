/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Grows and sorts arrays for the builders of tables. The sort is a bottom-up merge sort: runs of
 * doubling length are merged from the array into a spare one and back. Two runs that are in order
 * already are copied whole, and an array in order is left as it is, since most files are in order.
 * Pure.
 */
#include "array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GROW_COUNT_MIN 1024

struct sorting {
    size_t element_bytes;
    array_before_fn is_before;
    const void *userdata;
};

int array_grow(void **array, size_t *capacity, size_t wanted, size_t element_bytes)
{
    if (wanted <= *capacity) {
        return 0;
    }
    size_t grown = *capacity + *capacity / 2 + GROW_COUNT_MIN;
    if (grown < wanted) {
        grown = wanted;
    }
    void *moved = reallocarray(*array, grown, element_bytes);
    if (moved == NULL) {
        return -ENOMEM;
    }
    *array = moved;
    *capacity = grown;
    return 0;
}

/* Merges the sorted runs [left, middle) and [middle, to) into `target`. */
static void merge(const struct sorting *sorting, const char *left, const char *middle,
                  const char *to, char *target)
{
    size_t bytes = sorting->element_bytes;
    const char *right = middle;
    if (right < to && sorting->is_before(right, right - bytes, sorting->userdata)) {
        while (left < middle && right < to) {
            bool take_right = sorting->is_before(right, left, sorting->userdata);
            memcpy(target, take_right ? right : left, bytes);
            *(take_right ? &right : &left) += bytes;
            target += bytes;
        }
    }
    memcpy(target, left, (size_t)(middle - left));
    target += middle - left;
    memcpy(target, right, (size_t)(to - right));
}

/* Whether there is nothing to do, for which no memory is needed. */
static bool is_sorted(const struct sorting *sorting, const char *array, size_t count)
{
    const char *end = array + count * sorting->element_bytes;
    for (const char *at = array + sorting->element_bytes; at < end; at += sorting->element_bytes) {
        if (sorting->is_before(at, at - sorting->element_bytes, sorting->userdata)) {
            return false;
        }
    }
    return true;
}

int array_sort(void *array, size_t count, size_t element_bytes, array_before_fn is_before,
               const void *userdata)
{
    const struct sorting sorting = {element_bytes, is_before, userdata};
    if (count < 2 || is_sorted(&sorting, array, count)) {
        return 0;
    }
    char *spare = reallocarray(NULL, count, element_bytes);
    if (spare == NULL) {
        return -ENOMEM;
    }
    char *source = array;
    char *target = spare;
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t from = 0; from < count; from += 2 * run) {
            size_t middle = count - from > run ? from + run : count;
            size_t to = count - from > 2 * run ? from + 2 * run : count;
            merge(&sorting, source + from * element_bytes, source + middle * element_bytes,
                  source + to * element_bytes, target + from * element_bytes);
        }
        char *sorted = target;
        target = source;
        source = sorted;
    }
    if (source != array) {
        memcpy(array, source, count * element_bytes);
    }
    free(spare);
    return 0;
}
