/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "arch_x86_64.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A cursor in foreign bytes of little-endian DWARF. A read returns false, without moving the
 * cursor, when the bytes end too early or are malformed.
 */
struct dwarf_cursor {
    const uint8_t *bytes; /* borrowed */
    size_t left;
    uint64_t address; /* of `bytes` in the module, to which pointers can be relative */
    bool is_32bit;    /* of a module whose pointers have 4 bytes, and that ends where these do */
};

/* How a pointer is written: a format, what it is relative to, or both left out. */
#define DWARF_POINTER_FORMAT   0x0f
#define DWARF_POINTER_RELATIVE 0x70
#define DWARF_POINTER_INDIRECT 0x80
#define DWARF_POINTER_OMITTED  0xff

static inline bool dwarf_read_u8(struct dwarf_cursor *cursor, uint8_t *ret)
{
    if (cursor->left == 0) {
        return false;
    }
    *ret = *cursor->bytes++;
    cursor->left--;
    cursor->address++;
    return true;
}

/* `size_bytes` is 1 to 8. */
bool dwarf_read_unsigned(struct dwarf_cursor *cursor, size_t size_bytes, uint64_t *ret);
/* A signed LEB128. False too for a value that 64 bits do not hold. */
bool dwarf_read_sleb(struct dwarf_cursor *cursor, int64_t *ret);
/* An unsigned LEB128 of any length, for dwarf_read_uleb(). False too for a value that 64 bits do
 * not hold. */
bool dwarf_read_long_uleb(struct dwarf_cursor *cursor, uint64_t *ret);
/* The same in line, faster for one of a single byte, as most are. */
static inline bool dwarf_read_uleb(struct dwarf_cursor *cursor, uint64_t *ret)
{
    uint8_t byte = 0;
    if (cursor->left == 0 || (*cursor->bytes & 0x80) != 0) {
        return dwarf_read_long_uleb(cursor, ret);
    }
    (void)dwarf_read_u8(cursor, &byte);
    *ret = byte;
    return true;
}
/* A NUL-terminated string (borrowed). */
bool dwarf_read_string(struct dwarf_cursor *cursor, const char **ret);
/* The next bytes as a cursor of their own. */
bool dwarf_read_block(struct dwarf_cursor *cursor, uint64_t size_bytes, struct dwarf_cursor *ret);

/* Translates a register number of the module's DWARF into that of cfi_table.h; UINT64_MAX: there is
 * no such register. */
static inline uint64_t dwarf_register(const struct dwarf_cursor *cursor, uint64_t number)
{
    if (!cursor->is_32bit) {
        return number;
    }
    return number < ARCH_DWARF_COUNT_32BIT ? arch_dwarf_32bit[number] : UINT64_MAX;
}

/*
 * A pointer in an encoding (DW_EH_PE_*); `data_address` is what data-relative ones start from, 0 if
 * that is not known. False for indirect, omitted and unknown ones.
 */
bool dwarf_read_pointer(struct dwarf_cursor *cursor, uint8_t encoding, uint64_t data_address,
                        uint64_t *ret);
