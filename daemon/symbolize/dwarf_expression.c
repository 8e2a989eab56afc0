/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Recognises the forms of expressions instead of evaluating them, so that rules have no
 * expressions. The forms of compilers and assembly are a register and an offset, seldom a second
 * register, with at most one load and another offset, and the expression of linkers' PLT entries.
 * Pure.
 */
#include "dwarf_expression.h"

#include "arch_x86_64.h"

#include <string.h>

enum operation {
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S = 0x09,
    OP_CONST2U = 0x0a,
    OP_CONST2S = 0x0b,
    OP_CONST4U = 0x0c,
    OP_CONST4S = 0x0d,
    OP_CONST8U = 0x0e,
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_MINUS = 0x1c,
    OP_MUL = 0x1e,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_LIT0 = 0x30,
    OP_LIT8 = 0x38,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_NOP = 0x96,
};

/* register + 8 * index + offset, or what is stored there + addend. */
struct location {
    uint64_t base_register;
    uint64_t index_register;
    int64_t offset;
    int64_t addend;
    bool is_indexed;
    bool is_loaded;
};

static bool read_register(struct dwarf_cursor *cursor, uint64_t *ret_register, int64_t *ret_offset)
{
    uint8_t operation = 0;
    if (!dwarf_read_u8(cursor, &operation)) {
        return false;
    }
    if (operation >= OP_BREG0 && operation <= OP_BREG31) {
        *ret_register = operation - OP_BREG0;
    } else if (operation != OP_BREGX || !dwarf_read_uleb(cursor, ret_register)) {
        return false;
    }
    *ret_register = dwarf_register(cursor, *ret_register);
    return dwarf_read_sleb(cursor, ret_offset) && *ret_register < ARCH_REGISTERS_COUNT;
}

/* Another register, times eight, to be added to the first; does nothing where there is none. */
static void read_index(struct dwarf_cursor *cursor, struct location *location)
{
    static const uint8_t times_eight[] = {OP_LIT8, OP_MUL, OP_PLUS};
    struct dwarf_cursor ahead = *cursor;
    struct dwarf_cursor rest;
    int64_t offset = 0;
    if (read_register(&ahead, &location->index_register, &offset) && offset == 0 &&
        dwarf_read_block(&ahead, sizeof times_eight, &rest) &&
        memcmp(rest.bytes, times_eight, sizeof times_eight) == 0) {
        location->is_indexed = true;
        *cursor = ahead;
    }
}

static bool read_fixed(struct dwarf_cursor *cursor, size_t size_bytes, bool is_signed, int64_t *ret)
{
    uint64_t value = 0;
    if (!dwarf_read_unsigned(cursor, size_bytes, &value)) {
        return false;
    }
    uint64_t sign = UINT64_C(1) << (8 * size_bytes - 1);
    *ret = (int64_t)(is_signed ? (value ^ sign) - sign : value);
    return true;
}

/* The number that an operation pushes. */
static bool read_constant(struct dwarf_cursor *cursor, uint8_t operation, int64_t *ret)
{
    uint64_t value = 0;
    switch (operation) {
    case OP_CONST1U:
    case OP_CONST1S:
        return read_fixed(cursor, 1, operation == OP_CONST1S, ret);
    case OP_CONST2U:
    case OP_CONST2S:
        return read_fixed(cursor, 2, operation == OP_CONST2S, ret);
    case OP_CONST4U:
    case OP_CONST4S:
        return read_fixed(cursor, 4, operation == OP_CONST4S, ret);
    case OP_CONST8U:
    case OP_CONST8S:
        return read_fixed(cursor, 8, true, ret);
    case OP_CONSTS:
        return dwarf_read_sleb(cursor, ret);
    case OP_CONSTU:
    case OP_PLUS_UCONST:
        if (!dwarf_read_uleb(cursor, &value) || value > INT64_MAX) {
            return false;
        }
        *ret = (int64_t)value;
        return true;
    default:
        *ret = operation - OP_LIT0;
        return operation >= OP_LIT0 && operation <= OP_LIT31;
    }
}

/* A number that is added or subtracted: as one operation, or pushed first. */
static bool read_addition(struct dwarf_cursor *cursor, uint8_t operation, int64_t *sum)
{
    int64_t value = 0;
    uint8_t sign = OP_PLUS;
    if (!read_constant(cursor, operation, &value) ||
        (operation != OP_PLUS_UCONST && !dwarf_read_u8(cursor, &sign))) {
        return false;
    }
    switch (sign) {
    case OP_PLUS:
        return !__builtin_add_overflow(*sum, value, sum);
    case OP_MINUS:
        return !__builtin_sub_overflow(*sum, value, sum);
    default:
        return false;
    }
}

static bool read_location(struct dwarf_cursor cursor, struct location *ret)
{
    struct location location = {0};
    uint8_t operation = 0;
    if (!read_register(&cursor, &location.base_register, &location.offset)) {
        return false;
    }
    read_index(&cursor, &location);
    while (dwarf_read_u8(&cursor, &operation)) {
        if (operation == OP_NOP) {
            continue;
        }
        if (operation == OP_DEREF && !location.is_loaded) {
            location.is_loaded = true;
        } else if (!read_addition(&cursor, operation,
                                  location.is_loaded ? &location.addend : &location.offset)) {
            return false;
        }
    }
    *ret = location;
    return true;
}

/* rsp + 8 + ((rip & 15) >= N) * 8, where N is how far into its entry a PLT pushes; of 32 bits the
 * same with its registers and 4. */
#define PLT_BEFORE_BYTES 6
#define PLT_AFTER_BYTES  4

static bool read_plt(struct dwarf_cursor cursor, struct cfi_rule *rule)
{
    static const uint8_t befores[2][PLT_BEFORE_BYTES] = {{0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a},
                                                         {0x74, 0x04, 0x78, 0x00, 0x3f, 0x1a}};
    static const uint8_t afters[2][PLT_AFTER_BYTES] = {{0x2a, 0x33, 0x24, 0x22},
                                                       {0x2a, 0x32, 0x24, 0x22}};
    const uint8_t *before = befores[cursor.is_32bit];
    const uint8_t *after = afters[cursor.is_32bit];
    bool is_so_long = cursor.left == PLT_BEFORE_BYTES + 1 + PLT_AFTER_BYTES;
    uint8_t pushed = is_so_long ? cursor.bytes[PLT_BEFORE_BYTES] : 0;
    if (pushed < OP_LIT0 || pushed > OP_LIT31 ||
        memcmp(cursor.bytes, before, PLT_BEFORE_BYTES) != 0 ||
        memcmp(cursor.bytes + PLT_BEFORE_BYTES + 1, after, PLT_AFTER_BYTES) != 0) {
        return false;
    }
    rule->kind = CFI_PLT;
    rule->cfa_register = ARCH_DWARF_SP;
    rule->cfa_offset = cursor.bytes[1];
    rule->cfa_addend = pushed - OP_LIT0;
    rule->cfa_index = 0;
    return true;
}

void dwarf_expression_cfa(struct dwarf_cursor expression, struct cfi_rule *rule)
{
    struct location location;
    if (read_plt(expression, rule)) {
        return;
    }
    rule->kind = CFI_UNSUPPORTED;
    if (read_location(expression, &location) && location.offset == (int32_t)location.offset &&
        location.addend == (int32_t)location.addend &&
        (location.is_loaded || !location.is_indexed)) {
        rule->kind = location.is_indexed  ? CFI_DEREF_INDEX
                     : location.is_loaded ? CFI_DEREF
                                          : CFI_OFFSET;
        rule->cfa_register = (uint8_t)location.base_register;
        rule->cfa_index = location.is_indexed ? (uint8_t)location.index_register : 0;
        rule->cfa_offset = (int32_t)location.offset;
        rule->cfa_addend = (int32_t)location.addend;
    }
}

enum cfi_saved dwarf_expression_place(struct dwarf_cursor expression, int64_t *ret_offset)
{
    struct location location;
    if (!read_location(expression, &location) || location.is_loaded || location.is_indexed) {
        return CFI_LOST;
    }
    *ret_offset = location.offset;
    switch (location.base_register) {
    case ARCH_DWARF_SP:
        return CFI_AT_SP;
    case ARCH_DWARF_BP:
        return CFI_AT_BP;
    default:
        return CFI_LOST;
    }
}
