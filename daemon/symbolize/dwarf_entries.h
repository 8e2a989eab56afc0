/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "dwarf_cursor.h"
#include "elf_file.h"

struct cfi_builder;

/* A section of CIEs and FDEs. */
struct dwarf_section {
    /* Borrowed. The address is where it is loaded; of .debug_frame, which is not, it is 0. */
    struct dwarf_cursor content;
    uint64_t data_address;  /* what data-relative pointers start from, or 0 */
    bool ends_with_nothing; /* its size is not known, and an empty entry is its end */
    bool is_debug;          /* .debug_frame, in which CIEs are found and numbered otherwise */
};

/*
 * Adds the rows of all functions of `file` that the section describes. Returns what
 * cfi_builder_add() does.
 */
int dwarf_entries_read(const struct dwarf_section *section, const struct elf_file *file,
                       struct cfi_builder *builder);
