/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "dwarf_cfa.h"
#include "elf_file.h"

/* A section of CIEs and FDEs. */
struct dwarf_section {
    /* Borrowed. The address is where it is loaded; of .debug_frame, which is not, it is 0. */
    struct dwarf_cursor content;
    uint64_t data_address;  /* what data-relative pointers start from, or 0 */
    bool ends_with_nothing; /* its size is not known, and an empty entry is its end */
    bool is_debug;          /* .debug_frame, in which CIEs are found and numbered otherwise */
};

/*
 * Calls for each function of `file` that the section describes, with the addresses that it has in
 * an executable segment, and its instructions behind those of its CIE; a callback that returns < 0
 * ends it. Returns 0, -ENOMEM, or what the callback returned.
 */
typedef int (*dwarf_function_fn)(const struct dwarf_cie *cie, struct dwarf_cursor program,
                                 uint64_t start, uint64_t end, void *userdata);
int dwarf_entries_walk(const struct dwarf_section *section, const struct elf_file *file,
                       dwarf_function_fn on_function, void *userdata);

/*
 * The same for the one function whose entry begins at `address`. What is not such an entry of the
 * section is left out. The bytes of its CIE are taken off `*left_bytes`; -E2BIG: there are more of
 * them than are left.
 */
int dwarf_entries_read(const struct dwarf_section *section, const struct elf_file *file,
                       uint64_t address, uint64_t *left_bytes, dwarf_function_fn on_function,
                       void *userdata);

/* A dwarf_function_fn that adds the function's rows to a struct cfi_builder. Returns what
 * cfi_builder_add() does. */
int dwarf_entries_add_rows(const struct dwarf_cie *cie, struct dwarf_cursor program, uint64_t start,
                           uint64_t end, void *builder);
