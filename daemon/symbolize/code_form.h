/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "code_effect.h"

/*
 * The parts of an instruction, if it is one of those of which most code consists. This takes a
 * tenth of the time of a decoder that knows all of them, which is asked for the others.
 */

/* What the opcode says of the operands, and what becomes of them. Registers are general ones. */
enum code_class {
    CODE_CLASS_UNKNOWN,
    CODE_CLASS_NOTHING, /* no operands; nothing that matters changes */
    CODE_CLASS_NOP,     /* the same, and it fills room */
    CODE_CLASS_TRAP,    /* nothing goes on behind it */
    CODE_CLASS_RETURN,  /* without or with a number of bytes */
    CODE_CLASS_CALL,    /* direct */
    CODE_CLASS_JUMP,    /* direct */
    CODE_CLASS_BRANCH,  /* direct, on a condition */
    CODE_CLASS_LEAVE,
    CODE_CLASS_PUSH, /* the register in the opcode */
    CODE_CLASS_POP,  /* the same */
    CODE_CLASS_PUSH_NUMBER,
    CODE_CLASS_WIDEN,      /* rax is extended within itself, */
    CODE_CLASS_WIDEN_UP,   /* or into rdx */
    CODE_CLASS_SWAP,       /* the bytes of the register in the opcode */
    CODE_CLASS_NUMBER,     /* a constant to the register in the opcode */
    CODE_CLASS_SUM_AX,     /* rax and a constant: the opcode tells the operation */
    CODE_CLASS_TEST_AX,    /* rax with a constant */
    CODE_CLASS_SUM_RM_REG, /* r/m = r/m and reg: these, and all below, have a ModRM byte */
    CODE_CLASS_SUM_REG_RM,
    CODE_CLASS_SUM_NUMBER, /* r/m and a constant: the reg field tells the operation */
    CODE_CLASS_TEST,       /* r/m with reg */
    CODE_CLASS_MOVE_RM_REG,
    CODE_CLASS_MOVE_REG_RM,
    CODE_CLASS_MOVE_NUMBER,      /* a constant to r/m */
    CODE_CLASS_EXTEND,           /* reg = a part of r/m */
    CODE_CLASS_ADDRESS,          /* lea */
    CODE_CLASS_SHIFT,            /* r/m */
    CODE_CLASS_UNARY,            /* the reg field tells the operation: F6 and F7 */
    CODE_CLASS_STEP,             /* the same: FE and FF */
    CODE_CLASS_BIT,              /* of r/m, by a constant: the reg field tells the operation */
    CODE_CLASS_READ,             /* changes nothing that matters */
    CODE_CLASS_TO_RM,            /* changes r/m */
    CODE_CLASS_TO_REG,           /* changes reg */
    CODE_CLASS_TO_REG_OF_REG,    /* the same, and r/m is a vector */
    CODE_CLASS_FILL,             /* a nop with an operand */
    CODE_CLASS_LAND,             /* endbr64 */
    CODE_CLASS_VECTOR,           /* changes vectors only, */
    CODE_CLASS_VECTOR_OF_MEMORY, /* by a word of memory */
    CODE_CLASS_STORE,            /* of `operand_bytes` of a vector, to r/m, */
    CODE_CLASS_STORE_TO_MEMORY,  /* which is memory */
};

struct code_form {
    int64_t number;   /* a constant of the instruction, or the distance to where it leads */
    int32_t distance; /* of the word in memory from its registers */
    uint8_t bytes;    /* of the instruction */
    uint8_t class;    /* enum code_class */
    uint8_t opcode;   /* its last byte */
    uint8_t field;    /* the three bits of the ModRM byte's reg */
    uint8_t operand_bytes;
    uint8_t reg;   /* numbers of DWARF, of the whole register */
    uint8_t rm;    /* where `is_memory` is not set */
    uint8_t base;  /* of a word in memory, or CODE_REGISTER_NONE */
    uint8_t index; /* the same */
    uint8_t scale; /* of the index */
    bool is_memory;
    bool is_high;     /* `rm`, or the register in the opcode, is the second byte of it */
    bool is_relative; /* the word in memory is found from the instruction's own address */
};

/* Whether it is one that fills room between functions. */
static inline bool code_form_is_filler(const struct code_form *form)
{
    const uint8_t int3 = 0xcc;
    return form->class == CODE_CLASS_NOP || form->class == CODE_CLASS_FILL ||
           (form->class == CODE_CLASS_TRAP && form->opcode == int3);
}

/* The instruction at the beginning of `code`; false: it is not one of these. */
bool code_form_read(const uint8_t *code, size_t bytes, struct code_form *ret);

/* Its effect, which is the one of code_decode(); false: it is not one of these. */
bool code_form_effect(const struct code_form *form, uint64_t address, struct code_effect *ret);
