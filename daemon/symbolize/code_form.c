/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Takes instructions apart by tables of their opcodes: those with at most one of the prefixes 66,
 * F2 and F3, and a REX prefix behind it. Of vectors only SSE's are here. An opcode that is in no
 * table, and one that is an instruction with some operands only, is not known.
 *
 * `unit.code_form` compares all of them with what Zydis says.
 */
#include "code_form.h"

#include <string.h>

enum number_bytes {
    NUMBER_NONE,
    NUMBER_BYTE,
    NUMBER_TWO,  /* always */
    NUMBER_WORD, /* 2 or 4, by the size of the operand */
    NUMBER_LONG, /* 2, 4 or 8 */
};

struct opcode {
    uint8_t class;
    uint8_t number;        /* enum number_bytes */
    uint8_t operand_bytes; /* 0: by the prefixes, 4 without one */
};

#define PREFIX_WIDE   0x66
#define PREFIX_DOUBLE 0xf2
#define PREFIX_SINGLE 0xf3
#define PREFIX_REX    0x40 /* to 4f */
#define PREFIX_CS     0x2e
#define ESCAPE        0x0f

#define FILLER_PREFIXES_MAX 6
#define LAND_OPERANDS       0xfa /* of endbr64, which is a nop with operands */

#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

#define MOD_REGISTER 3
#define RM_SIB       4
#define RM_RELATIVE  5
#define SIB_NO_INDEX 4
#define SIB_NO_BASE  5

/* Two of each, of a byte and of the whole. */
#define SUM(first)                                                                                 \
    [first] = {CODE_CLASS_SUM_RM_REG, 0, 1}, [(first) + 1] = {CODE_CLASS_SUM_RM_REG, 0, 0},        \
    [(first) + 2] = {CODE_CLASS_SUM_REG_RM, 0, 1}, [(first) + 3] = {CODE_CLASS_SUM_REG_RM, 0, 0},  \
    [(first) + 4] = {CODE_CLASS_SUM_AX, NUMBER_BYTE, 1},                                           \
    [(first) + 5] = {CODE_CLASS_SUM_AX, NUMBER_WORD, 0}

static const struct opcode first_map[256] = {
    SUM(0x00),
    SUM(0x08),
    SUM(0x10),
    SUM(0x18),
    SUM(0x20),
    SUM(0x28),
    SUM(0x30),
    SUM(0x38),
    [0x50 ... 0x57] = {CODE_CLASS_PUSH, 0, 8},
    [0x58 ... 0x5f] = {CODE_CLASS_POP, 0, 8},
    [0x63] = {CODE_CLASS_EXTEND, 0, 0},
    [0x68] = {CODE_CLASS_PUSH_NUMBER, NUMBER_WORD, 0},
    [0x69] = {CODE_CLASS_TO_REG, NUMBER_WORD, 0},
    [0x6a] = {CODE_CLASS_PUSH_NUMBER, NUMBER_BYTE, 0},
    [0x6b] = {CODE_CLASS_TO_REG, NUMBER_BYTE, 0},
    [0x70 ... 0x7f] = {CODE_CLASS_BRANCH, NUMBER_BYTE, 0},
    [0x80] = {CODE_CLASS_SUM_NUMBER, NUMBER_BYTE, 1},
    [0x81] = {CODE_CLASS_SUM_NUMBER, NUMBER_WORD, 0},
    [0x83] = {CODE_CLASS_SUM_NUMBER, NUMBER_BYTE, 0},
    [0x84] = {CODE_CLASS_TEST, 0, 1},
    [0x85] = {CODE_CLASS_TEST, 0, 0},
    [0x88] = {CODE_CLASS_MOVE_RM_REG, 0, 1},
    [0x89] = {CODE_CLASS_MOVE_RM_REG, 0, 0},
    [0x8a] = {CODE_CLASS_MOVE_REG_RM, 0, 1},
    [0x8b] = {CODE_CLASS_MOVE_REG_RM, 0, 0},
    [0x8d] = {CODE_CLASS_ADDRESS, 0, 0},
    [0x90] = {CODE_CLASS_NOP, 0, 0},
    [0x98] = {CODE_CLASS_WIDEN, 0, 0},
    [0x99] = {CODE_CLASS_WIDEN_UP, 0, 0},
    [0xa8] = {CODE_CLASS_TEST_AX, NUMBER_BYTE, 1},
    [0xa9] = {CODE_CLASS_TEST_AX, NUMBER_WORD, 0},
    [0xb0 ... 0xb7] = {CODE_CLASS_NUMBER, NUMBER_BYTE, 1},
    [0xb8 ... 0xbf] = {CODE_CLASS_NUMBER, NUMBER_LONG, 0},
    [0xc0] = {CODE_CLASS_SHIFT, NUMBER_BYTE, 1},
    [0xc1] = {CODE_CLASS_SHIFT, NUMBER_BYTE, 0},
    [0xc2] = {CODE_CLASS_RETURN, NUMBER_TWO, 0},
    [0xc3] = {CODE_CLASS_RETURN, 0, 0},
    [0xc6] = {CODE_CLASS_MOVE_NUMBER, NUMBER_BYTE, 1},
    [0xc7] = {CODE_CLASS_MOVE_NUMBER, NUMBER_WORD, 0},
    [0xc9] = {CODE_CLASS_LEAVE, 0, 0},
    [0xcc] = {CODE_CLASS_TRAP, 0, 0},
    [0xd0] = {CODE_CLASS_SHIFT, 0, 1},
    [0xd1] = {CODE_CLASS_SHIFT, 0, 0},
    [0xd2] = {CODE_CLASS_SHIFT, 0, 1},
    [0xd3] = {CODE_CLASS_SHIFT, 0, 0},
    [0xe8] = {CODE_CLASS_CALL, NUMBER_WORD, 0},
    [0xe9] = {CODE_CLASS_JUMP, NUMBER_WORD, 0},
    [0xeb] = {CODE_CLASS_JUMP, NUMBER_BYTE, 0},
    [0xf4] = {CODE_CLASS_TRAP, 0, 0},
    [0xf6] = {CODE_CLASS_UNARY, 0, 1},
    [0xf7] = {CODE_CLASS_UNARY, 0, 0},
    [0xfe] = {CODE_CLASS_STEP, 0, 1},
    [0xff] = {CODE_CLASS_STEP, 0, 0},
};

/* Behind 0F. Those of general registers, with or without the prefix 66, */
static const struct opcode second_map[256] = {
    [0x0b] = {CODE_CLASS_TRAP, 0, 0},
    [0x1f] = {CODE_CLASS_FILL, 0, 0},
    [0x40 ... 0x4f] = {CODE_CLASS_TO_REG, 0, 0},
    [0x80 ... 0x8f] = {CODE_CLASS_BRANCH, NUMBER_WORD, 0},
    [0x90 ... 0x9f] = {CODE_CLASS_TO_RM, 0, 1},
    [0xa3] = {CODE_CLASS_READ, 0, 0},
    [0xa4] = {CODE_CLASS_TO_RM, NUMBER_BYTE, 0},
    [0xa5] = {CODE_CLASS_TO_RM, 0, 0},
    [0xab] = {CODE_CLASS_TO_RM, 0, 0},
    [0xac] = {CODE_CLASS_TO_RM, NUMBER_BYTE, 0},
    [0xad] = {CODE_CLASS_TO_RM, 0, 0},
    [0xaf] = {CODE_CLASS_TO_REG, 0, 0},
    [0xb3] = {CODE_CLASS_TO_RM, 0, 0},
    [0xb6 ... 0xb7] = {CODE_CLASS_EXTEND, 0, 0},
    [0xba] = {CODE_CLASS_BIT, NUMBER_BYTE, 0},
    [0xbb] = {CODE_CLASS_TO_RM, 0, 0},
    [0xbc ... 0xbd] = {CODE_CLASS_TO_REG, 0, 0},
    [0xbe ... 0xbf] = {CODE_CLASS_EXTEND, 0, 0},
    [0xc8 ... 0xcf] = {CODE_CLASS_SWAP, 0, 0},
};

#define VECTOR                                                                                     \
    {                                                                                              \
        CODE_CLASS_VECTOR, 0, 0                                                                    \
    }
#define VECTOR_NUMBER                                                                              \
    {                                                                                              \
        CODE_CLASS_VECTOR, NUMBER_BYTE, 0                                                          \
    }
#define OF_MEMORY                                                                                  \
    {                                                                                              \
        CODE_CLASS_VECTOR_OF_MEMORY, 0, 0                                                          \
    }
#define STORE(bytes)                                                                               \
    {                                                                                              \
        CODE_CLASS_STORE, 0, bytes                                                                 \
    }
#define TO_MEMORY(bytes)                                                                           \
    {                                                                                              \
        CODE_CLASS_STORE_TO_MEMORY, 0, bytes                                                       \
    }

/* and those of vectors, by the prefix: none, */
static const struct opcode plain_vectors[256] = {
    [0x10] = VECTOR,
    [0x11] = STORE(16),
    [0x12] = VECTOR,
    [0x13] = TO_MEMORY(8),
    [0x14 ... 0x16] = VECTOR,
    [0x17] = TO_MEMORY(8),
    [0x28] = VECTOR,
    [0x29] = STORE(16),
    [0x2b] = TO_MEMORY(16),
    [0x2e ... 0x2f] = VECTOR,
    [0x51 ... 0x6b] = VECTOR,
    [0x6e ... 0x6f] = VECTOR,
    [0x70] = VECTOR_NUMBER,
    [0x74 ... 0x76] = VECTOR,
    [0x77] = {CODE_CLASS_NOTHING, 0, 0},
    [0x7e] = {CODE_CLASS_TO_RM, 0, 0},
    [0x7f] = STORE(8),
    [0xc2] = VECTOR_NUMBER,
    [0xc6] = VECTOR_NUMBER,
    [0xd1 ... 0xd5] = VECTOR,
    [0xd8 ... 0xe5] = VECTOR,
    [0xe8 ... 0xef] = VECTOR,
    [0xf1 ... 0xf6] = VECTOR,
    [0xf8 ... 0xfe] = VECTOR,
};

/* 66, */
static const struct opcode wide_vectors[256] = {
    [0x10] = VECTOR,
    [0x11] = STORE(16),
    [0x12] = OF_MEMORY,
    [0x13] = TO_MEMORY(8),
    [0x14 ... 0x15] = VECTOR,
    [0x16] = OF_MEMORY,
    [0x17] = TO_MEMORY(8),
    [0x28] = VECTOR,
    [0x29] = STORE(16),
    [0x2b] = TO_MEMORY(16),
    [0x2e ... 0x2f] = VECTOR,
    [0x51] = VECTOR,
    [0x54 ... 0x6f] = VECTOR,
    [0x70] = VECTOR_NUMBER,
    [0x74 ... 0x76] = VECTOR,
    [0x7c ... 0x7d] = VECTOR,
    [0x7e] = {CODE_CLASS_TO_RM, 0, 0},
    [0x7f] = STORE(16),
    [0xc2] = VECTOR_NUMBER,
    [0xc6] = VECTOR_NUMBER,
    [0xd0 ... 0xd5] = VECTOR,
    [0xd6] = STORE(8),
    [0xd7] = {CODE_CLASS_TO_REG_OF_REG, 0, 4},
    [0xd8 ... 0xe6] = VECTOR,
    [0xe7] = TO_MEMORY(16),
    [0xe8 ... 0xef] = VECTOR,
    [0xf1 ... 0xf6] = VECTOR,
    [0xf8 ... 0xfe] = VECTOR,
};

/* F3, */
static const struct opcode single_vectors[256] = {
    [0x10] = VECTOR,
    [0x11] = STORE(4),
    [0x12] = VECTOR,
    [0x16] = VECTOR,
    [0x1e] = {CODE_CLASS_LAND, 0, 0},
    [0x2a] = VECTOR,
    [0x2c ... 0x2d] = {CODE_CLASS_TO_REG, 0, 0},
    [0x51 ... 0x53] = VECTOR,
    [0x58 ... 0x5f] = VECTOR,
    [0x6f] = VECTOR,
    [0x70] = VECTOR_NUMBER,
    [0x7e] = VECTOR,
    [0x7f] = STORE(16),
    [0xb8] = {CODE_CLASS_TO_REG, 0, 0},
    [0xbc ... 0xbd] = {CODE_CLASS_TO_REG, 0, 0},
    [0xc2] = VECTOR_NUMBER,
    [0xe6] = VECTOR,
};

/* and F2. */
static const struct opcode double_vectors[256] = {
    [0x10] = VECTOR,
    [0x11] = STORE(8),
    [0x12] = VECTOR,
    [0x2a] = VECTOR,
    [0x2c ... 0x2d] = {CODE_CLASS_TO_REG, 0, 0},
    [0x51] = VECTOR,
    [0x58 ... 0x5a] = VECTOR,
    [0x5c ... 0x5f] = VECTOR,
    [0x70] = VECTOR_NUMBER,
    [0x7c ... 0x7d] = VECTOR,
    [0xc2] = VECTOR_NUMBER,
    [0xd0] = VECTOR,
    [0xe6] = VECTOR,
    [0xf0] = OF_MEMORY,
};

/* An instruction, as far as it is read. */
struct reading {
    const uint8_t *at;
    const uint8_t *end;
    uint8_t prefix; /* 66, F2, F3 or 0 */
    uint8_t rex;
    bool has_rex;
};

static uint8_t register_number(unsigned int number)
{
    static const uint8_t numbers[ARCH_REGISTERS_COUNT] = {
        0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15,
    };
    return numbers[number];
}

/* The register of which one of a byte is a part: without REX, 4 to 7 are the second bytes. */
static uint8_t whole_register(const struct reading *reading, bool is_byte, unsigned int number,
                              bool *ret_is_high)
{
    bool is_high = is_byte && !reading->has_rex && number >= 4;
    *ret_is_high = is_high;
    return register_number(is_high ? number - 4 : number);
}

/* The opcode behind 0F, by the prefix before it. */
static const struct opcode *find_second(const struct reading *reading, uint8_t opcode,
                                        bool *ret_is_general)
{
    *ret_is_general = false;
    switch (reading->prefix) {
    case PREFIX_SINGLE:
        return &single_vectors[opcode];
    case PREFIX_DOUBLE:
        return &double_vectors[opcode];
    default:
        break;
    }
    const struct opcode *vectors =
        reading->prefix == PREFIX_WIDE ? &wide_vectors[opcode] : &plain_vectors[opcode];
    *ret_is_general = vectors->class == CODE_CLASS_UNKNOWN;
    return *ret_is_general ? &second_map[opcode] : vectors;
}

/* Reads the opcode; NULL: it is none that is known. */
static const struct opcode *read_opcode(struct reading *reading, struct code_form *form)
{
    const struct opcode *opcode = NULL;
    bool is_general = true;
    if (reading->at == reading->end) {
        return NULL;
    }
    form->opcode = *reading->at++;
    if (form->opcode != ESCAPE) {
        bool is_known = reading->prefix == 0 || reading->prefix == PREFIX_WIDE;
        opcode = is_known ? &first_map[form->opcode] : NULL;
    } else if (reading->at < reading->end) {
        form->opcode = *reading->at++;
        opcode = find_second(reading, form->opcode, &is_general);
    }
    if (opcode == NULL || opcode->class == CODE_CLASS_UNKNOWN) {
        return NULL;
    }
    bool is_small = is_general && reading->prefix == PREFIX_WIDE;
    form->class = opcode->class;
    form->operand_bytes = opcode->operand_bytes != 0    ? opcode->operand_bytes
                          : (reading->rex & REX_W) != 0 ? 8
                          : is_small                    ? 2
                                                        : 4;
    return opcode;
}

/* A byte as a signed number. */
static int32_t extend_byte(uint8_t byte)
{
    return (byte ^ 0x80) - 0x80;
}

static bool read_distance(struct reading *reading, size_t bytes, struct code_form *form)
{
    if ((size_t)(reading->end - reading->at) < bytes) {
        return false;
    }
    if (bytes == 1) {
        form->distance = extend_byte(*reading->at);
    } else if (bytes > 0) {
        memcpy(&form->distance, reading->at, sizeof form->distance);
    }
    reading->at += bytes;
    return true;
}

/* What a word in memory is found by. */
static bool read_memory(struct reading *reading, unsigned int mod, unsigned int rm,
                        struct code_form *form)
{
    size_t distance_bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    form->is_memory = true;
    form->index = CODE_REGISTER_NONE;
    form->base = CODE_REGISTER_NONE;
    if (rm == RM_SIB) {
        if (reading->at == reading->end) {
            return false;
        }
        unsigned int sib = *reading->at++;
        unsigned int index = (sib >> 3 & 7) | ((reading->rex & REX_X) != 0 ? 8 : 0);
        if (index != SIB_NO_INDEX) {
            form->index = register_number(index);
            form->scale = (uint8_t)(1U << (sib >> 6));
        }
        rm = sib & 7;
        if (rm == SIB_NO_BASE && mod == 0) {
            return read_distance(reading, sizeof form->distance, form);
        }
    } else if (rm == RM_RELATIVE && mod == 0) {
        form->is_relative = true;
        return read_distance(reading, sizeof form->distance, form);
    }
    form->base = register_number(rm | ((reading->rex & REX_B) != 0 ? 8 : 0));
    return read_distance(reading, distance_bytes, form);
}

static bool read_modrm(struct reading *reading, const struct opcode *opcode, struct code_form *form)
{
    bool is_high = false;
    if (reading->at == reading->end) {
        return false;
    }
    unsigned int modrm = *reading->at++;
    unsigned int rm = modrm & 7;
    unsigned int reg = modrm >> 3 & 7;
    /* movzx and movsx have a small operand, and a register that is not. */
    bool is_byte = opcode->operand_bytes == 1;
    bool is_part = opcode->class == CODE_CLASS_EXTEND && (form->opcode & 7) == 6;
    form->field = (uint8_t)reg;
    reg |= (reading->rex & REX_R) != 0 ? 8 : 0;
    form->reg = whole_register(reading, is_byte, reg, &is_high);
    if (modrm >> 6 != MOD_REGISTER) {
        return read_memory(reading, modrm >> 6, rm, form);
    }
    rm |= (reading->rex & REX_B) != 0 ? 8 : 0;
    form->rm = whole_register(reading, is_byte || is_part, rm, &form->is_high);
    return true;
}

/* Of some opcodes the reg field says whether there is a constant. */
static size_t number_bytes(const struct opcode *opcode, const struct code_form *form)
{
    size_t word_bytes = form->operand_bytes == 2 ? 2 : 4;
    bool is_test = opcode->class == CODE_CLASS_UNARY && form->field == 0;
    switch ((enum number_bytes)opcode->number) {
    case NUMBER_BYTE:
        return 1;
    case NUMBER_TWO:
        return 2;
    case NUMBER_WORD:
        return word_bytes;
    case NUMBER_LONG:
        return form->operand_bytes;
    case NUMBER_NONE:
        break;
    }
    return !is_test ? 0 : opcode->operand_bytes == 1 ? 1 : word_bytes;
}

static bool read_number(struct reading *reading, size_t bytes, struct code_form *form)
{
    int16_t two = 0;
    int32_t four = 0;
    if ((size_t)(reading->end - reading->at) < bytes) {
        return false;
    }
    switch (bytes) {
    case 1:
        form->number = extend_byte(*reading->at);
        break;
    case sizeof two:
        memcpy(&two, reading->at, sizeof two);
        form->number = two;
        break;
    case sizeof four:
        memcpy(&four, reading->at, sizeof four);
        form->number = four;
        break;
    case sizeof form->number:
        memcpy(&form->number, reading->at, sizeof form->number);
        break;
    default:
        break;
    }
    reading->at += bytes;
    return true;
}

/* Whether the form is one that the prefixes allow: what has no operands, or a fixed size, has
 * none of them. */
static bool is_allowed(const struct reading *reading, const struct code_form *form)
{
    bool is_plain = !reading->has_rex && reading->prefix == 0;
    switch ((int)form->class) {
    case CODE_CLASS_NOTHING:
    case CODE_CLASS_NOP:
    case CODE_CLASS_TRAP:
    case CODE_CLASS_RETURN:
    case CODE_CLASS_CALL:
    case CODE_CLASS_JUMP:
    case CODE_CLASS_BRANCH:
    case CODE_CLASS_LEAVE:
    case CODE_CLASS_PUSH_NUMBER:
        return is_plain;
    case CODE_CLASS_PUSH:
    case CODE_CLASS_POP:
    case CODE_CLASS_SWAP:
        return reading->prefix == 0;
    default:
        return true;
    }
}

/* The same for what the ModRM byte has. */
static bool has_operands(const struct reading *reading, const struct code_form *form)
{
    bool is_branch = form->field >= 2;
    switch ((int)form->class) {
    case CODE_CLASS_MOVE_NUMBER:
    case CODE_CLASS_FILL:
        return form->field == 0;
    case CODE_CLASS_LAND:
        return !form->is_memory && form->field == 7 && reading->at[-1] == LAND_OPERANDS;
    case CODE_CLASS_ADDRESS:
    case CODE_CLASS_VECTOR_OF_MEMORY:
    case CODE_CLASS_STORE_TO_MEMORY:
        return form->is_memory;
    case CODE_CLASS_TO_REG_OF_REG:
        return !form->is_memory;
    case CODE_CLASS_SHIFT:
        return form->field != 6;
    case CODE_CLASS_UNARY:
        return form->field != 1;
    case CODE_CLASS_BIT:
        return form->field >= 4;
    case CODE_CLASS_STEP:
        return form->operand_bytes == 1
                   ? !is_branch
                   : !is_branch || (reading->prefix == 0 && form->field % 2 == 0);
    default:
        return true;
    }
}

/* What fills much room: prefixes without a meaning, and a nop with an address of 4 bytes. */
static size_t filler_bytes(const uint8_t *code, size_t bytes)
{
    static const uint8_t nop[] = {0x0f, 0x1f, 0x84, 0x00};
    size_t at = 0;
    while (at < bytes && at < FILLER_PREFIXES_MAX && code[at] == PREFIX_WIDE) {
        at++;
    }
    at += at < bytes && code[at] == PREFIX_CS;
    size_t end = at + sizeof nop + sizeof(uint32_t);
    return end <= bytes && memcmp(code + at, nop, sizeof nop) == 0 ? end : 0;
}

static bool read_filler(const uint8_t *code, size_t bytes, struct code_form *ret)
{
    size_t filler = filler_bytes(code, bytes);
    *ret = (struct code_form){.class = CODE_CLASS_NOP, .bytes = (uint8_t)filler};
    return filler > 0;
}

static bool read_form(struct reading *reading, struct code_form *form)
{
    const struct opcode *opcode = read_opcode(reading, form);
    if (opcode == NULL || !is_allowed(reading, form)) {
        return false;
    }
    if (form->class >= CODE_CLASS_SUM_RM_REG) {
        if (!read_modrm(reading, opcode, form) || !has_operands(reading, form)) {
            return false;
        }
    } else {
        unsigned int low = (form->opcode & 7) | ((reading->rex & REX_B) != 0 ? 8U : 0U);
        form->rm = whole_register(reading, form->operand_bytes == 1, low, &form->is_high);
    }
    return read_number(reading, number_bytes(opcode, form), form);
}

bool code_form_read(const uint8_t *code, size_t bytes, struct code_form *ret)
{
    struct reading reading = {.at = code, .end = code + bytes};
    if (bytes >= 2 && code[0] == PREFIX_WIDE && (code[1] == PREFIX_WIDE || code[1] == PREFIX_CS)) {
        return read_filler(code, bytes, ret);
    }
    if (bytes > 0 &&
        (code[0] == PREFIX_WIDE || code[0] == PREFIX_DOUBLE || code[0] == PREFIX_SINGLE)) {
        reading.prefix = *reading.at++;
    }
    if (reading.at < reading.end && (*reading.at & 0xf0) == PREFIX_REX) {
        reading.rex = *reading.at++;
        reading.has_rex = true;
    }
    *ret = (struct code_form){0};
    if (!read_form(&reading, ret)) {
        return false;
    }
    ret->bytes = (uint8_t)(reading.at - code);
    return true;
}
