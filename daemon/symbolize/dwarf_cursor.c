/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the primitive values of DWARF: integers of fixed and variable length, strings, blocks and
 * encoded pointers. No read goes beyond the bytes that are left. Pure.
 */
#include "dwarf_cursor.h"

#include <string.h>

enum pointer_format {
    FORMAT_ABSOLUTE = 0x00,
    FORMAT_ULEB = 0x01,
    FORMAT_U16 = 0x02,
    FORMAT_U32 = 0x03,
    FORMAT_U64 = 0x04,
    FORMAT_SLEB = 0x09,
    FORMAT_S16 = 0x0a,
    FORMAT_S32 = 0x0b,
    FORMAT_S64 = 0x0c,
};

enum pointer_relative {
    RELATIVE_NOTHING = 0x00,
    RELATIVE_PC = 0x10,
    RELATIVE_TEXT = 0x20, /* where there is one module base only, this is to nothing */
    RELATIVE_DATA = 0x30,
    RELATIVE_ALIGNED = 0x50, /* an absolute one, at the next multiple of its size */
};

static size_t pointer_bytes(const struct dwarf_cursor *cursor)
{
    return cursor->is_32bit ? 4 : 8;
}

static void move(struct dwarf_cursor *cursor, size_t bytes)
{
    cursor->bytes += bytes;
    cursor->left -= bytes;
    cursor->address += bytes;
}

static uint32_t read_u32(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

bool dwarf_read_unsigned(struct dwarf_cursor *cursor, size_t size_bytes, uint64_t *ret)
{
    uint64_t value = 0;
    if (cursor->left < size_bytes) {
        return false;
    }
    if (size_bytes == sizeof(uint32_t)) {
        value = read_u32(cursor->bytes);
    } else {
        for (size_t i = 0; i < size_bytes; i++) {
            value |= (uint64_t)cursor->bytes[i] << 8 * i;
        }
    }
    *ret = value;
    move(cursor, size_bytes);
    return true;
}

/* The tenth group of seven bits has room for the last of 64 bits; the others only repeat it. */
static bool is_last_group_valid(uint8_t group, bool is_signed)
{
    return group == 0 || group == (is_signed ? 0x7f : 1);
}

static bool read_leb(struct dwarf_cursor *cursor, bool is_signed, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < cursor->left && i < 10; i++) {
        uint8_t byte = cursor->bytes[i];
        uint8_t group = byte & 0x7f;
        unsigned shift = 7 * (unsigned)i;
        if (i == 9 && !is_last_group_valid(group, is_signed)) {
            return false;
        }
        value |= (uint64_t)group << shift;
        if ((byte & 0x80) != 0) {
            continue;
        }
        if (is_signed && (byte & 0x40) != 0 && shift + 7 < 64) {
            value |= UINT64_MAX << (shift + 7);
        }
        *ret = value;
        move(cursor, i + 1);
        return true;
    }
    return false;
}

bool dwarf_read_long_uleb(struct dwarf_cursor *cursor, uint64_t *ret)
{
    return read_leb(cursor, false, ret);
}

bool dwarf_read_sleb(struct dwarf_cursor *cursor, int64_t *ret)
{
    uint64_t value = 0;
    if (!read_leb(cursor, true, &value)) {
        return false;
    }
    *ret = (int64_t)value;
    return true;
}

bool dwarf_read_string(struct dwarf_cursor *cursor, const char **ret)
{
    const uint8_t *end = memchr(cursor->bytes, '\0', cursor->left);
    if (end == NULL) {
        return false;
    }
    *ret = (const char *)cursor->bytes;
    move(cursor, (size_t)(end - cursor->bytes) + 1);
    return true;
}

bool dwarf_read_block(struct dwarf_cursor *cursor, uint64_t size_bytes, struct dwarf_cursor *ret)
{
    if (size_bytes > cursor->left) {
        return false;
    }
    *ret = *cursor;
    ret->left = size_bytes;
    move(cursor, size_bytes);
    return true;
}

static bool read_signed(struct dwarf_cursor *cursor, size_t size_bytes, uint64_t *ret)
{
    uint64_t value = 0;
    if (!dwarf_read_unsigned(cursor, size_bytes, &value)) {
        return false;
    }
    uint64_t sign = UINT64_C(1) << (8 * size_bytes - 1);
    *ret = (value ^ sign) - sign;
    return true;
}

static bool read_format(struct dwarf_cursor *cursor, uint8_t format, uint64_t *ret)
{
    switch (format) {
    case FORMAT_ABSOLUTE:
        return dwarf_read_unsigned(cursor, pointer_bytes(cursor), ret);
    case FORMAT_U64:
    case FORMAT_S64:
        return dwarf_read_unsigned(cursor, 8, ret);
    case FORMAT_ULEB:
        return dwarf_read_uleb(cursor, ret);
    case FORMAT_SLEB:
        return read_leb(cursor, true, ret);
    case FORMAT_U16:
        return dwarf_read_unsigned(cursor, 2, ret);
    case FORMAT_S16:
        return read_signed(cursor, 2, ret);
    case FORMAT_U32:
        return dwarf_read_unsigned(cursor, 4, ret);
    case FORMAT_S32:
        return read_signed(cursor, 4, ret);
    default:
        return false;
    }
}

bool dwarf_read_pointer(struct dwarf_cursor *cursor, uint8_t encoding, uint64_t data_address,
                        uint64_t *ret)
{
    struct dwarf_cursor ahead = *cursor;
    uint64_t base = 0;
    if ((encoding & DWARF_POINTER_INDIRECT) != 0) {
        return false;
    }
    switch (encoding & DWARF_POINTER_RELATIVE) {
    case RELATIVE_NOTHING:
    case RELATIVE_TEXT:
        break;
    case RELATIVE_PC:
        base = cursor->address;
        break;
    case RELATIVE_DATA:
        if (data_address == 0) {
            return false;
        }
        base = data_address;
        break;
    case RELATIVE_ALIGNED: {
        struct dwarf_cursor padding;
        if (!dwarf_read_block(&ahead, -ahead.address % pointer_bytes(&ahead), &padding)) {
            return false;
        }
        break;
    }
    default:
        return false;
    }
    uint64_t value = 0;
    if (!read_format(&ahead, encoding & DWARF_POINTER_FORMAT, &value)) {
        return false;
    }
    *ret = cursor->is_32bit ? (uint32_t)(base + value) : base + value;
    *cursor = ahead;
    return true;
}
