/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "code_region.h"

/*
 * Where frames are, seen from the returns: what leads to the CFA before an instruction is what will
 * have led to it where the function returns. It needs to know no start, and crosses code that
 * aligns its stack.
 */

/* The registers of the caller that are followed. */
enum code_kept {
    CODE_KEPT_BP,
    CODE_KEPT_BX,
    CODE_KEPT_COUNT
};

/* What knowledge rests on. */
enum code_trust {
    CODE_TRUST_NONE,
    CODE_TRUST_DOUBTFUL, /* on callees that may not return */
    CODE_TRUST_SURE,
};

enum code_expression {
    CODE_OPEN,   /* nothing that is known follows */
    CODE_OFFSET, /* CFA = register + offset */
    CODE_DEREF,  /* CFA = *(register + offset) + addend */
    CODE_NOWHERE,
};

/* Where the caller's value of a register is. */
struct code_place {
    uint8_t kind; /* enum code_place_kind */
    uint8_t base;
    uint16_t zero; /* states are compared byte by byte */
    int32_t offset;
};

enum code_place_kind {
    CODE_PLACE_OWN,   /* in the register itself */
    CODE_PLACE_STACK, /* at base + offset */
    CODE_PLACE_LOST,
};

struct code_backward {
    uint8_t expression; /* enum code_expression */
    uint8_t base;
    uint8_t trust;      /* enum code_trust */
    uint8_t overwrites; /* 1: the instruction writes over what the return will take */
    uint8_t returns;    /* code_returns.h: 1: the flow comes to a return, not only to what a symbol
                           calls a function */
    uint8_t zero[3];    /* states are compared byte by byte */
    int32_t offset;
    int32_t addend;
    struct code_place kept[CODE_KEPT_COUNT];
};

static inline bool code_backward_is_known(const struct code_backward *state)
{
    return state->expression == CODE_OFFSET || state->expression == CODE_DEREF;
}

/* Whether it proves that the return address is on top of the stack. */
static inline bool code_backward_is_return(const struct code_backward *state)
{
    return state->expression == CODE_OFFSET && state->base == ARCH_DWARF_SP &&
           state->offset == CODE_WORD_BYTES && state->returns != 0;
}

/* As code_forward_run(). */
bool code_backward_run(const struct code_region *region, const struct cfi_table *table,
                       struct code_backward *states);

/* The rule of a state. CFI_NONE: it has none. */
struct cfi_rule code_backward_rule(const struct code_backward *state);

/* The register's DWARF number. */
static inline unsigned int code_kept_register(size_t kept)
{
    return kept == CODE_KEPT_BP ? ARCH_DWARF_BP : ARCH_DWARF_BX;
}
