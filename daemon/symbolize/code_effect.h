/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "arch_x86_64.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one instruction does to the stack pointer, to the registers and to words of the stack, as
 * far as the frames of a stack rest on it. Registers have DWARF's numbers. */

#define CODE_REGISTER_NONE ARCH_REGISTERS_COUNT
#define CODE_WORD_BYTES    8

/* Where execution goes on. */
enum code_flow {
    CODE_NEXT,     /* behind it */
    CODE_CALL,     /* behind it, once the callee has returned */
    CODE_JUMP,     /* at `target` */
    CODE_BRANCH,   /* behind it or at `target` */
    CODE_RETURN,   /* in the caller */
    CODE_INDIRECT, /* where a register, or a word that a register leads to, tells */
    CODE_END,      /* nowhere, or in another function that a fixed word tells; or it is none */
};

enum code_action {
    CODE_NOTHING,
    CODE_COPY,  /* to = from + offset */
    CODE_LOAD,  /* to = *(from + offset) */
    CODE_STORE, /* *(to + offset) = from, of `store_bytes`; from may be CODE_REGISTER_NONE */
    CODE_PUSH,  /* from, which may be CODE_REGISTER_NONE */
    CODE_POP,   /* to, which may be CODE_REGISTER_NONE */
    CODE_MOVE,  /* it pops a word and stores it: *(to + offset), by what rsp is then */
    CODE_LEAVE, /* rsp = rbp, and then it pops rbp */
};

/* What a fork of the flow needs to be known as one: the child of clone() sees 0. */
enum code_sight {
    CODE_SIGHT_NONE,
    CODE_SIGHT_SYSCALL,
    CODE_SIGHT_TEST_RESULT, /* rax or eax with itself */
    CODE_SIGHT_IF_ZERO,     /* of the branch */
    CODE_SIGHT_IF_NOT_ZERO,
    CODE_SIGHT_CLEAR_FP, /* rbp = 0, which begins a stack */
    CODE_SIGHT_STACK,    /* it loads rsp from a word that no register leads to */
    CODE_SIGHT_LIMIT,    /* it compares register `to` with `offset`, which is positive */
    CODE_SIGHT_MASK, /* of register `to` it leaves what `offset`, one less than a power of 2, has */
    CODE_SIGHT_EXTEND, /* `to` becomes a part of `from`, extended */
    CODE_SIGHT_ENTRY,  /* it loads from an array of 4-byte words by the index in `from` */
    CODE_SIGHT_TABLE, /* of an indirect jump: to *(from + 8 * to + offset); `from` is a register, or
                         CODE_REGISTER_NONE */
    CODE_SIGHT_CLONE, /* rax, eax or al = the number of clone() or clone3() */
    CODE_SIGHT_SIGRETURN, /* rax or eax = that of the system call by which handlers return */
};

struct code_effect {
    uint64_t target; /* the address of a direct jump, branch or call; the one that it puts into a
                        register; or 0 */
    int32_t offset;
    uint16_t changes; /* a bit for each register that gets another value, beside the action's */
    uint16_t store_bytes;
    uint8_t bytes; /* of the instruction, at least 1 */
    uint8_t flow;
    uint8_t action;
    uint8_t to;
    uint8_t from;
    uint8_t sight;
};

/* The registers that a callee may change (psABI, figure 3.4): all but rbx, rbp, rsp, r12 to r15. */
#define CODE_CALLER_SAVED UINT16_C(0x0f37)

/* No frame is as large: an instruction or a row with an offset beyond it is not followed, so sums
 * of what is followed stay within 32 bits. */
#define CODE_OFFSET_MAX (1 << 29)

static inline bool code_is_near(int64_t offset)
{
    return offset >= -CODE_OFFSET_MAX && offset <= CODE_OFFSET_MAX;
}

/* Whether two stretches of memory, by offsets from one address, have a byte in common. */
static inline bool code_overlaps(int32_t a, int32_t a_bytes, int32_t b, int32_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}
