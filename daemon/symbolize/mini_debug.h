/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "elf_file.h"

/* Limits of the size of a decompressed .gnu_debugdata, and of the decompressor's memory. */
#define MINI_DEBUG_BYTES_MAX  ((uint64_t)64 << 20)
#define MINI_DEBUG_MEMORY_MAX ((uint64_t)96 << 20)

/*
 * Decompresses the .gnu_debugdata of a stripped file, an ELF file of its own with the symbols that
 * were stripped. `*ret_fd` (returned: close) is a file in memory with its bytes.
 *
 * Returns 0; -ENOENT: the file has none; -EBADMSG: it is broken, or beyond the limits; or -errno of
 * a system call.
 */
int mini_debug_open(const struct elf_file *file, int *ret_fd);
