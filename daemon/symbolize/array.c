/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Grows and sorts arrays for the builders of tables. The sort is a bottom-up merge sort: runs of
 * doubling length are merged from the array into a spare one and back. Two runs that are in order
 * already are copied whole, and an array in order is left as it is, since most files are in order.
 * Numbers that have few bits are sorted digit by digit, each with its place in the array, and the
 * elements are moved once. Pure.
 */
#include "array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GROW_COUNT_MIN 1024

/* Of numbers that are sorted digit by digit. */
#define DIGIT_BITS      11
#define DIGIT_VALUES    ((size_t)1 << DIGIT_BITS)
#define DIGIT_COUNT_MIN ((size_t)256) /* elements: of fewer it does not pay */
#define PLACE_BITS      32            /* where an element was, below its number */

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

static uint64_t number_of(const char *element)
{
    uint64_t number = 0;
    memcpy(&number, element, sizeof number);
    return number;
}

/* By number, then by what the caller says. */
static bool is_number_before(const void *a, const void *b, const void *userdata)
{
    const struct sorting *sorting = userdata;
    uint64_t left = number_of(a);
    uint64_t right = number_of(b);
    if (left != right) {
        return left < right;
    }
    return sorting->is_before != NULL && sorting->is_before(a, b, sorting->userdata);
}

/* Sorts keys by one of their digits into `target`. Equal ones stay in their order. */
static void sort_digit(const uint64_t *source, uint64_t *target, size_t count, unsigned int shift)
{
    size_t places[DIGIT_VALUES] = {0};
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        places[source[i] >> shift & (DIGIT_VALUES - 1)]++;
    }
    for (size_t i = 0; i < DIGIT_VALUES; i++) {
        size_t values = places[i];
        places[i] = sum;
        sum += values;
    }
    for (size_t i = 0; i < count; i++) {
        target[places[source[i] >> shift & (DIGIT_VALUES - 1)]++] = source[i];
    }
}

/* Sorts the numbers of an array, each above the place of its element. `keys` has room for twice as
 * many; returns the half that has them. */
static const uint64_t *sort_numbers(const char *array, size_t count, size_t element_bytes,
                                    uint64_t lowest, uint64_t range, uint64_t *keys)
{
    uint64_t *source = keys;
    uint64_t *target = keys + count;
    for (size_t i = 0; i < count; i++) {
        source[i] = (number_of(array + i * element_bytes) - lowest) << PLACE_BITS | i;
    }
    for (unsigned int bits = 0; bits < PLACE_BITS && range >> bits != 0; bits += DIGIT_BITS) {
        sort_digit(source, target, count, PLACE_BITS + bits);
        uint64_t *sorted = target;
        target = source;
        source = sorted;
    }
    return source;
}

/* Sorts each stretch of elements with the same number. */
static int sort_alike(const struct sorting *sorting, char *array, size_t count)
{
    size_t bytes = sorting->element_bytes;
    int r = 0;
    for (size_t first = 0, end = 1; r == 0 && first < count; first = end++) {
        uint64_t number = number_of(array + first * bytes);
        while (end < count && number_of(array + end * bytes) == number) {
            end++;
        }
        r = array_sort(array + first * bytes, end - first, bytes, sorting->is_before,
                       sorting->userdata);
    }
    return r;
}

static int sort_by_digits(const struct sorting *sorting, char *array, size_t count, uint64_t lowest,
                          uint64_t range)
{
    size_t bytes = sorting->element_bytes;
    uint64_t *keys = reallocarray(NULL, count, 2 * sizeof *keys);
    char *sorted = reallocarray(NULL, count, bytes);
    int r = keys == NULL || sorted == NULL ? -ENOMEM : 0;
    if (r == 0) {
        const uint64_t *places = sort_numbers(array, count, bytes, lowest, range, keys);
        for (size_t i = 0; i < count; i++) {
            memcpy(sorted + i * bytes, array + (uint32_t)places[i] * bytes, bytes);
        }
        r = sorting->is_before != NULL ? sort_alike(sorting, sorted, count) : 0;
    }
    if (r == 0) {
        memcpy(array, sorted, count * bytes);
    }
    free(keys);
    free(sorted);
    return r;
}

int array_sort_by_number(void *array, size_t count, size_t element_bytes, array_before_fn is_before,
                         const void *userdata)
{
    const struct sorting sorting = {element_bytes, is_before, userdata};
    const struct sorting by_number = {element_bytes, is_number_before, &sorting};
    if (count < 2 || is_sorted(&by_number, array, count)) {
        return 0;
    }
    uint64_t lowest = UINT64_MAX;
    uint64_t highest = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = number_of((const char *)array + i * element_bytes);
        lowest = number < lowest ? number : lowest;
        highest = number > highest ? number : highest;
    }
    bool has_digits =
        count >= DIGIT_COUNT_MIN && count <= UINT32_MAX && highest - lowest <= UINT32_MAX;
    return has_digits ? sort_by_digits(&sorting, array, count, lowest, highest - lowest)
                      : array_sort(array, count, element_bytes, is_number_before, &sorting);
}
