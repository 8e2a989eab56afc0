/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Makes room for `wanted` elements in `*array`, of which `*capacity` can be held now; both change
 * on success only. Returns 0 or -ENOMEM.
 */
int array_grow(void **array, size_t *capacity, size_t wanted, size_t element_bytes);

/* Whether `a` must come before `b`. */
typedef bool (*array_before_fn)(const void *a, const void *b, const void *userdata);

/*
 * Sorts. No order of the input can slow it down, one that is nearly right is fast, and unlike the C
 * library's it asks the system nothing: it runs under a seccomp filter. Returns 0, or -ENOMEM with
 * the array as it was.
 */
int array_sort(void *array, size_t count, size_t element_bytes, array_before_fn is_before,
               const void *userdata);

/*
 * The same for elements that begin with a uint64_t, by which they are sorted; of those with the
 * same one, by `is_before`, or as they come if that is NULL. Faster where the numbers are near each
 * other, as addresses of one file are.
 */
int array_sort_by_number(void *array, size_t count, size_t element_bytes, array_before_fn is_before,
                         const void *userdata);
