/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "elf_file.h"

/* What a .gnu_debugdata may become, and the memory that its decompression may take. */
#define MINI_DEBUG_BYTES_MAX  ((uint64_t)64 << 20)
#define MINI_DEBUG_MEMORY_MAX ((uint64_t)96 << 20)

/*
 * Decompresses the .gnu_debugdata of a stripped file: an ELF file of its own, which has the symbols
 * that were taken out. `*ret_fd` (returned: close) is a file in memory with its bytes.
 *
 * Returns 0; -ENOENT: there is none; -EBADMSG: it is broken, or wants more than is allowed; or the
 * errno of a system call.
 */
int mini_debug_open(const struct elf_file *file, int *ret_fd);
