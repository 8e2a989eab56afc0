/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The code of a function, by the file's own addresses. */
struct function_range {
    uint64_t start;
    uint64_t end; /* exclusive */
};

/*
 * Finds the functions that hold some addresses (borrowed) of an ELF program or library, as its
 * .eh_frame tells them, which a stripped file has too. `ret` has a range for each address: that
 * of the last function that begins at or before it, or 0 and 0 where that one does not hold it.
 * Reads the file (borrowed) with pread() only.
 *
 * Returns 0; -EBADMSG: not an ELF program or library, or a broken one; -E2BIG: more .eh_frame than
 * is read; -ENOMEM.
 */
int function_ranges_find(int fd, const uint64_t *addresses, size_t count,
                         struct function_range *ret);
