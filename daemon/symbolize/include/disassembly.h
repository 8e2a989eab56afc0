/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DISASSEMBLY_TEXT_BYTES 104

struct disassembly_line {
    uint64_t address;                  /* the file's own */
    char text[DISASSEMBLY_TEXT_BYTES]; /* as assemblers of AT&T's kind write it */
};

/*
 * Disassembles what an ELF program or library has from `start` to `end`, of which `ret` has room
 * for one line a byte. Bytes that are no instruction are lines of a byte each, "(bad)". Reads the
 * file (borrowed) with pread() only.
 *
 * Returns 0 with how many lines there are, fewer where the file ends before; -EBADMSG: not an ELF
 * program or library of x86, or a broken one; -ENOMEM.
 */
int disassembly_read(int fd, uint64_t start, uint64_t end, struct disassembly_line *ret,
                     size_t *ret_count);
