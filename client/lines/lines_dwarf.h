/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What one file's debugging information says of many addresses at once: the functions that were
 * inlined there, and the lines. The file is foreign; a hostile one costs time and memory in
 * proportion to its size.
 */

#include "demangle.h"
#include "inlines.h"

#include <elfutils/libdw.h>

#include <stddef.h>
#include <stdint.h>

struct lines_address {
    uint64_t vaddr;
    struct inline_chain chain; /* set by lines_dwarf_read(): of the table's frames */
    uint32_t scope;            /* while it reads: the innermost that holds the address, 0: none */
    uint32_t node;             /* while it reads: the innermost function, or INTERN_NONE */
};

/*
 * Sets the chain of each address (sorted by `vaddr`, which differ) and adds their frames to
 * `table`. Names, as `demangler` makes them, and files go into `texts`. Returns 0; -EBADMSG: the
 * information contradicts itself or is out of all proportion; -ENOMEM. After an error no chain
 * holds.
 */
int lines_dwarf_read(Dwarf *dwarf, struct lines_address *addresses, size_t address_count,
                     struct demangler *demangler, struct intern *texts, struct inlines *table);
