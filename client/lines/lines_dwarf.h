/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What one file's debugging information says of many addresses at once: the functions that were
 * inlined there, and the lines. The file is foreign; a hostile one costs time and memory in
 * proportion to its size.
 */

#include "inlines.h"
#include "intern.h"

#include <elfutils/libdw.h>

#include <stddef.h>
#include <stdint.h>

/* What one file may have: functions that were inlined into one another at an address, frames of all
 * its addresses, bytes of a name or a path. */
#define LINES_CHAIN_COUNT_MAX ((size_t)128)
#define LINES_FRAME_COUNT_MAX ((size_t)1 << 24)
#define LINES_TEXT_BYTES_MAX  ((size_t)8192)

struct lines_address {
    uint64_t vaddr;
    struct inline_chain chain; /* set by lines_dwarf_read(): of the table's frames */
    uint32_t scope;            /* while it reads: the innermost that holds the address, 0: none */
    uint32_t node;             /* while it reads: the innermost function, or INTERN_NONE */
};

/*
 * Sets the chain of each address (sorted by `vaddr`, which differ) and adds their frames to
 * `table`. Names, as the compiler wrote them, and files go into `texts`. Returns 0; -EBADMSG: the
 * information contradicts itself or is out of all proportion; -ENOMEM. After an error no chain
 * holds.
 */
int lines_dwarf_read(Dwarf *dwarf, struct lines_address *addresses, size_t address_count,
                     struct intern *texts, struct inlines *table);
