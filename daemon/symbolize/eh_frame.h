/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "dwarf_entries.h"

/* A larger .eh_frame is not read. */
#define EH_FRAME_BYTES_MAX ((size_t)128 << 20)

/*
 * Adds the executable segments, the build-id and the unwind rows of an ELF program or library: of
 * its .eh_frame and its .debug_frame (debug_frame.h), and its roots (cfi_roots.h). Reads the file
 * (borrowed) with pread() only. A file without these sections, or of another machine than x86, has
 * no rows, which is no error. A broken entry of a section is left out.
 *
 * Returns 0; -EBADMSG: not an ELF program or library, or a broken one; -E2BIG: more than a table or
 * EH_FRAME_BYTES_MAX holds; -ENOMEM.
 */
int eh_frame_read(int fd, struct cfi_builder *builder);

/* The same for an open file. */
int eh_frame_add(const struct elf_file *file, struct cfi_builder *builder);

/* Calls for each function that .eh_frame describes, as dwarf_entries_walk() does; with an .eh_frame
 * that is larger than what is read it returns -E2BIG. */
int eh_frame_walk(const struct elf_file *file, dwarf_function_fn on_function, void *userdata);

/*
 * The same for the functions that .eh_frame_hdr has for some addresses (borrowed): of each, the
 * last one that begins at or before it. Addresses in order call once for a function. -ENOENT: the
 * file is to be walked instead, since it has no table that can be read, or since its CIEs are so
 * long that the functions would have more of them than .eh_frame has bytes; some functions may have
 * been called for.
 */
int eh_frame_find(const struct elf_file *file, const uint64_t *addresses, size_t count,
                  dwarf_function_fn on_function, void *userdata);
