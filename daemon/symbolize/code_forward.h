/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "code_backward.h"

/*
 * Where frames are, from the functions' starts on: at each instruction which registers lead to the
 * CFA, and where the caller's rbp and rbx are.
 */

#define CODE_UNKNOWN INT32_MIN

/* What shows that the return address was on top of the stack where a way begins. */
enum code_origin {
    CODE_ORIGIN_NONE,
    CODE_ORIGIN_SYMBOL,  /* only that a symbol calls it a function */
    CODE_ORIGIN_CALL,    /* a call, its own return, or a row of the file */
    CODE_ORIGIN_CERTAIN, /* CODE_START_CALLED; and what it calls takes nothing off the stack */
};

struct code_forward {
    int32_t values[ARCH_REGISTERS_COUNT]; /* register = CFA + value, or CODE_UNKNOWN */
    int32_t saved[CODE_KEPT_COUNT];       /* the caller's is at CFA + saved, or CODE_UNKNOWN */
    int32_t slot_offset;                  /* CFA = *(rsp + slot_offset) + slot_addend; the first */
    int32_t slot_addend;                  /* CODE_UNKNOWN: there is no such word */
    uint8_t own[CODE_KEPT_COUNT];         /* 1: the register still has the caller's value */
    uint8_t reached;                      /* enum code_trust; CODE_TRUST_NONE: nothing leads here */
    uint8_t broken;  /* 1: the return address was written over: a return is a jump */
    uint8_t origin;  /* enum code_origin, the least of all ways here */
    uint8_t zero[3]; /* states are compared byte by byte */
};

/*
 * Fills `states`, one for each instruction of the region, with what holds before it. Where nothing
 * leads to, but the look back is sure, it begins with what that says. Returns false when it did not
 * come to an end within a bounded number of rounds: nothing is known then.
 */
bool code_forward_run(const struct code_region *region, const struct code_backward *backward,
                      struct code_forward *states);

/* The rule of a state. CFI_NONE: it has none. */
struct cfi_rule code_forward_rule(const struct code_forward *state);
