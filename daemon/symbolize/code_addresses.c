/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Looks for an instruction with call frames that has the address of a function without them, and a
 * jump to what a register tells, with a frame, near it. An interpreter in assembly may go to its
 * operations so. What compilers make is a call, or a jump that leaves no frame; their jumps through
 * tables of their own count as well, and mark more than is needed.
 *
 * All code of a file is looked at by its bytes, and no instruction is decoded. So every address is
 * found that stands in an instruction near such a jump, and bytes that only look like one as well.
 * An address that is stored, and read elsewhere before the jump, is not found.
 */
#include "code_addresses.h"

#include "arch_x86_64.h"
#include "code_effect.h"
#include "extremes.h"

#include <string.h>

#define LEA_OPCODE    0x8d
#define RELATIVE_MODE 0x05 /* ModRM: an address relative to the next instruction, */
#define RELATIVE_MASK 0xc7 /* whatever register it is put into */
#define LEA_BYTES     ((size_t)6)
#define JUMP_OPCODE   0xff
#define JUMP_BITS     0x20 /* ModRM: the opcode's other part */
#define JUMP_MASK     0x38
#define JUMP_BYTES    ((size_t)2)
#define BLOCK_BYTES   ((size_t)64)
#define NEAR_BYTES    (CODE_ADDRESSES_SHARED_BYTES / 2)

struct code {
    const uint8_t *bytes;
    size_t size;
    uint64_t start;
    const struct cfi_table *table;
    struct code_doubts *doubts;
    size_t searched; /* for jumps: all from near the last place up to here, where none was, */
    bool is_found;   /* or one begins here */
};

/* Whether the row of a jump says that its frame is not the return address alone. */
static bool leaves_frame(const struct code *code, size_t at)
{
    const struct cfi_rule *rule = cfi_table_find(code->table, code->start + at);
    bool is_gone = rule->kind == CFI_OFFSET && rule->cfa_register == ARCH_DWARF_SP &&
                   rule->cfa_offset == CODE_WORD_BYTES;
    bool is_linkage = rule->kind == CFI_PLT;
    return cfi_rule_covers(rule) && !is_gone && !is_linkage;
}

static bool is_jump(const struct code *code, size_t at)
{
    return code->bytes[at] == JUMP_OPCODE && (code->bytes[at + 1] & JUMP_MASK) == JUMP_BITS &&
           leaves_frame(code, at);
}

/* The places that are asked for rise, so that each byte is looked at once. */
static bool has_jump_near(struct code *code, size_t place)
{
    size_t first = place < NEAR_BYTES ? 0 : place - NEAR_BYTES;
    size_t end = code->size - place < NEAR_BYTES ? code->size : place + NEAR_BYTES;
    if (code->searched < first) {
        code->searched = first;
        code->is_found = false;
    }
    while (!code->is_found && code->searched + JUMP_BYTES <= end) {
        code->is_found = is_jump(code, code->searched);
        code->searched += !code->is_found;
    }
    return code->is_found;
}

static int note(struct code *code, size_t place, uint64_t address)
{
    bool counts = code_doubts_has_function(code->doubts, address) &&
                  cfi_rule_covers(cfi_table_find(code->table, code->start + place)) &&
                  has_jump_near(code, place);
    return counts ? code_doubts_point(code->doubts, address) : 0;
}

static int note_lea(struct code *code, size_t at)
{
    const uint8_t *lea = code->bytes + at;
    int32_t distance = 0;
    if (lea[0] != LEA_OPCODE || (lea[1] & RELATIVE_MASK) != RELATIVE_MODE) {
        return 0;
    }
    memcpy(&distance, lea + 2, sizeof distance);
    return note(code, at, code->start + at + LEA_BYTES + (uint64_t)(int64_t)distance);
}

typedef uint8_t byte_vector __attribute__((vector_size(16)));
typedef uint64_t half_vector __attribute__((vector_size(16)));

/* Whether a lea may begin at one of the next bytes of a vector. */
static bool has_lea(const uint8_t *code)
{
    byte_vector opcodes;
    byte_vector modes;
    memcpy(&opcodes, code, sizeof opcodes);
    memcpy(&modes, code + 1, sizeof modes);
    const half_vector found =
        (half_vector)((byte_vector)(opcodes == LEA_OPCODE) &
                      (byte_vector)((modes & RELATIVE_MASK) == RELATIVE_MODE));
    return (found[0] | found[1]) != 0;
}

static int note_leas(struct code *code)
{
    const size_t step = sizeof(byte_vector);
    size_t at = 0;
    int r = 0;
    for (; r == 0 && at + step + LEA_BYTES <= code->size; at += step) {
        const size_t end = has_lea(code->bytes + at) ? at + step : at;
        for (size_t i = at; r == 0 && i < end; i++) {
            r = note_lea(code, i);
        }
    }
    for (; r == 0 && at + LEA_BYTES <= code->size; at++) {
        r = note_lea(code, at);
    }
    return r;
}

/* The numbers that are wanted: moved up by `shift`, they are the signed ones up to `last`. */
struct numbers {
    uint32_t shift;
    int32_t last;
};

static bool is_wanted(const struct numbers *numbers, uint32_t number)
{
    return (int32_t)(number + numbers->shift) <= numbers->last;
}

typedef uint32_t word_vector __attribute__((vector_size(16)));
typedef int32_t signed_vector __attribute__((vector_size(16)));

/* Whether a wanted number begins at one of the next BLOCK_BYTES bytes: looks at words in a row,
 * from each of the first four bytes on, and at several at once. */
static bool has_number(const uint8_t *code, const struct numbers *numbers)
{
    signed_vector others = {-1, -1, -1, -1};
    for (size_t at = 0; at < BLOCK_BYTES; at += sizeof others) {
        for (size_t byte = at; byte < at + sizeof(uint32_t); byte++) {
            word_vector words;
            memcpy(&words, code + byte, sizeof words);
            others &= (signed_vector)(words + numbers->shift) > numbers->last;
        }
    }
    return (others[0] & others[1] & others[2] & others[3]) == 0;
}

static int note_block(struct code *code, size_t at, size_t end, const struct numbers *numbers)
{
    int r = 0;
    for (; r == 0 && at < end; at++) {
        uint32_t number = 0;
        memcpy(&number, code->bytes + at, sizeof number);
        r = is_wanted(numbers, number) ? note(code, at, number) : 0;
    }
    return r;
}

/* Every byte of the code begins a number, and nearly all are out of range. */
static int note_numbers(struct code *code)
{
    const size_t behind = sizeof(uint32_t) - 1; /* of a number, behind its first byte */
    uint64_t first = 0;
    uint64_t last = 0;
    int r = 0;
    if (!code_doubts_range(code->doubts, &first, &last) || first > UINT32_MAX) {
        return 0;
    }
    last = min_u64(last, UINT32_MAX);
    const struct numbers numbers = {
        .shift = UINT32_C(0x80000000) - (uint32_t)first,
        .last = (int32_t)(INT32_MIN + (int64_t)(last - first)),
    };
    for (size_t at = 0; r == 0 && at + behind < code->size; at += BLOCK_BYTES) {
        size_t end = min_u64(at + BLOCK_BYTES, code->size - behind);
        bool is_whole = end - at == BLOCK_BYTES;
        r = is_whole && !has_number(code->bytes + at, &numbers)
                ? 0
                : note_block(code, at, end, &numbers);
    }
    return r;
}

int code_addresses_note(const uint8_t *code, size_t bytes, uint64_t start, bool is_fixed,
                        const struct cfi_table *table, struct code_doubts *doubts)
{
    const struct code all = {
        .bytes = code,
        .size = bytes,
        .start = start,
        .table = table,
        .doubts = doubts,
    };
    struct code leas = all;
    struct code numbers = all;
    int r = note_leas(&leas);
    return r == 0 && is_fixed ? note_numbers(&numbers) : r;
}
