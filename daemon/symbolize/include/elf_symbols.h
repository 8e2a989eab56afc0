/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "symbol_table.h"

/*
 * Adds what an ELF program or library says of itself: executable segments, build-id, the functions
 * of .symtab, .dynsym and .gnu_debugdata, those of .gopclntab where there is no .symtab, the
 * entries of its linkage tables. `debug_fd` is a separate file of debugging information, whose
 * functions are added too if it has the same build-id; or -1. Reads the files (borrowed) with
 * pread() only and never maps them, so that one which shrinks meanwhile is a short read and no
 * signal. A file without symbols is not an error.
 *
 * Returns 0; -EBADMSG: not an ELF program or library, or a broken one; -E2BIG: more than a table
 * holds; -ENOMEM.
 */
int elf_symbols_read(int fd, int debug_fd, struct symbol_builder *builder);
