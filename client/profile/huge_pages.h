/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define HUGE_PAGES_BYTES_MIN ((size_t)8 << 20)
#define HUGE_PAGES_PAGE      ((size_t)4096)

/*
 * Asks for huge pages for a large block (borrowed) of malloc()'s: much of what a read here and
 * there costs is the walk of the page tables, and a page that is touched first takes longer than
 * what is done with it. Nothing depends on it. The block's mapping is asked for as a whole, since
 * realloc() could not move one in parts.
 */
static inline void huge_pages_want(void *block, size_t bytes)
{
    size_t before = (uintptr_t)block % HUGE_PAGES_PAGE;
    if (bytes >= HUGE_PAGES_BYTES_MIN) {
        (void)madvise((uint8_t *)block - before,
                      (before + bytes + HUGE_PAGES_PAGE - 1) / HUGE_PAGES_PAGE * HUGE_PAGES_PAGE,
                      MADV_HUGEPAGE);
    }
}
