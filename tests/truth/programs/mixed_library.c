/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The library of mixed.c. The build leaves its call-frame information out.
 */
#include "truth.h"

static uint64_t (*back)(uint64_t);

__attribute__((always_inline)) static inline uint64_t call_back(uint64_t count)
{
    return back(count) + truth_spin(count / 2);
}

TRUTH_CALLER(mixed_inner, call_back)
TRUTH_CALLER(mixed_outer, mixed_inner)

uint64_t mixed_entry(uint64_t count, uint64_t (*callback)(uint64_t));
TRUTH_FUNCTION uint64_t mixed_entry(uint64_t count, uint64_t (*callback)(uint64_t))
{
    back = callback;
    uint64_t result = mixed_outer(count);
    TRUTH_STAY();
    return result;
}
