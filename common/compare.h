/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* As qsort() and bsearch() take it: below, at or above 0 as `a` is to `b`. */
static inline int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* The same of two doubles, through pointers. */
static inline int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}
