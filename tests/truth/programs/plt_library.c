/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls through the library's own linkage table, since a program may have a lib_inner() of its own.
 */
#include "truth.h"

uint64_t lib_tiny(uint64_t a);
uint64_t lib_inner(uint64_t a);
uint64_t lib_outer(uint64_t a);

TRUTH_FUNCTION uint64_t lib_tiny(uint64_t a)
{
    return a * 3 + 1;
}

TRUTH_FUNCTION uint64_t lib_inner(uint64_t a)
{
    return a ^ 77;
}

TRUTH_FUNCTION uint64_t lib_outer(uint64_t a)
{
    return lib_inner(a) + lib_inner(a + 1) + a;
}
