/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cfi_table.h"
#include "elf_file.h"

/* A larger .eh_frame is not read. */
#define EH_FRAME_BYTES_MAX ((size_t)128 << 20)

/*
 * Adds what an ELF program or library says of its frames: executable segments, build-id, the rows
 * of its .eh_frame and of its .debug_frame (debug_frame.h), and roots (cfi_roots.h). Reads the file
 * (borrowed) with pread() only. A file without these, or of another machine than x86, has no
 * rows, which is no error; what is broken in a section costs itself only.
 *
 * Returns 0; -EBADMSG: not an ELF program or library, or a broken one; -E2BIG: more than a table or
 * EH_FRAME_BYTES_MAX holds; -ENOMEM.
 */
int eh_frame_read(int fd, struct cfi_builder *builder);

/* The same for a file that is open already. */
int eh_frame_add(const struct elf_file *file, struct cfi_builder *builder);
