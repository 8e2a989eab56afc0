/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "symbol_table.h"

/*
 * Adds the executable segments, the build-id and the functions of an ELF program or library. The
 * functions are those of .symtab, .dynsym and .gnu_debugdata, those of .gopclntab where there is no
 * .symtab, and the entries of its linkage tables. `debug_fd` is a separate debug file or -1; its
 * functions are added if it has the same build-id. Both files (borrowed) are read with pread() and
 * never mapped, so that a file that shrinks causes a short read and no signal. A file without
 * symbols is not an error.
 *
 * Returns 0; -EBADMSG: not an ELF program or library, or a broken one; -E2BIG: more than a table
 * holds; -ENOMEM.
 */
int elf_symbols_read(int fd, int debug_fd, struct symbol_builder *builder);
