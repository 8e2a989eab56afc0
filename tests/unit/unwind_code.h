/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Code that is not there: one function a page, each with another rule, for tests of the unwinder.
 */

#include "unwind.h"

#define CODE_PAGE_BITS 12
#define CODE(function) ((uint64_t)(function) << CODE_PAGE_BITS | 0x105)

enum code_function {
    CODE_NOWHERE = 16, /* not executable */
    CODE_ROOT,
    CODE_FRAME, /* push %rbp; mov %rsp, %rbp */
    CODE_LEAF,  /* CFA = rsp + 8 */
    CODE_WIDE,  /* CFA = rsp + 24, rbx saved below the return address */
    CODE_JIT,   /* executable, without a rule */
    CODE_LOADING,
    CODE_RESTORER, /* a signal frame as x86-64 has it */
    CODE_PLT,
    CODE_BY_BX,      /* CFA = rbx + 16 */
    CODE_REALIGN,    /* CFA = *(rbp - 8) */
    CODE_REALIGN_BP, /* and the caller's rbp is where rbp points */
    CODE_BP_AT_BP,   /* CFA = rsp + 16 */
    CODE_INDEXED,    /* CFA = *(rsp + 8 * r10 + 8) + 8 */
    CODE_BY_R10,     /* CFA = r10 + 8 */
    CODE_SPOILER,    /* CFA = rsp + 8, the caller's rbp and rbx are lost */
    CODE_POPPED,     /* before a return: rbp and rbx said to be where rsp was */
    CODE_LIAR,       /* CFA = rsp */
    CODE_GO,         /* CFA = rsp + 24, rbp lost, but it points to CFA - 16 */
    CODE_FAR,        /* CFA = rsp + 24, rbp and rbx said to be far away */
    CODE_SCRATCH, /* CFA = rsp + 24, rbp saved below the return address and used for other things */
    CODE_SWITCH,  /* goes over to another stack, */
    CODE_SWITCH_LEAF,  /* with CFA = rsp + 8 before and after, */
    CODE_SWITCH_FRAME, /* or as CODE_GO */
    CODE_FORK,         /* CFA = rsp + 8, and a root where rax is 0 */
    CODE_LATE,         /* its table has not come in time */
    CODE_LEAVING,      /* nothing tells its caller */
    CODE_KEEPER,       /* CFA = rsp + 8, and r10 is its caller's */
    CODE_END,
};

#define AT_CFA(register, offset) .register##_saved = CFI_AT_CFA, .register##_offset = (offset)
#define AT_SP(register, offset)  .register##_saved = CFI_AT_SP, .register##_offset = (offset)
#define CFA_AT(register, offset)                                                                   \
    .kind = CFI_OFFSET, .cfa_register = ARCH_DWARF_##register, .cfa_offset = (offset)
#define CODE_DWARF_CX  2
#define CODE_DWARF_R10 10

/* What ucontext has before the saved registers, seen from where rsp is in the restorer. */
#define CODE_SIGNAL_BP 120
#define CODE_SIGNAL_BX 128
#define CODE_SIGNAL_SP 160
#define CODE_SIGNAL_IP 168
#define CODE_SIGNAL_CS 184

static const struct cfi_rule code_rules[CODE_END] = {
    [CODE_ROOT] = {.kind = CFI_ROOT},
    [CODE_FRAME] = {CFA_AT(BP, 16), AT_CFA(ra, -8), AT_CFA(bp, -16)},
    [CODE_LEAF] = {CFA_AT(SP, 8), AT_CFA(ra, -8)},
    [CODE_WIDE] = {CFA_AT(SP, 24), AT_CFA(ra, -8), AT_CFA(bx, -16)},
    [CODE_RESTORER] = {.kind = CFI_DEREF,
                       .cfa_register = ARCH_DWARF_SP,
                       .cfa_offset = CODE_SIGNAL_SP,
                       .signal_frame = 1,
                       AT_SP(ra, CODE_SIGNAL_IP),
                       AT_SP(bp, CODE_SIGNAL_BP),
                       AT_SP(bx, CODE_SIGNAL_BX)},
    [CODE_PLT] = {.kind = CFI_PLT,
                  .cfa_register = ARCH_DWARF_SP,
                  .cfa_offset = 8,
                  .cfa_addend = 11,
                  AT_CFA(ra, -8)},
    [CODE_BY_BX] = {CFA_AT(BX, 16), AT_CFA(ra, -8), AT_CFA(bx, -16)},
    [CODE_REALIGN] = {.kind = CFI_DEREF,
                      .cfa_register = ARCH_DWARF_BP,
                      .cfa_offset = -8,
                      .cfa_addend = 8,
                      AT_CFA(ra, -8),
                      .bp_saved = CFI_LOST},
    [CODE_REALIGN_BP] = {.kind = CFI_DEREF,
                         .cfa_register = ARCH_DWARF_BP,
                         .cfa_offset = -8,
                         .cfa_addend = 8,
                         AT_CFA(ra, -8),
                         .bp_saved = CFI_AT_BP},
    [CODE_BP_AT_BP] = {CFA_AT(SP, 16), AT_CFA(ra, -8), .bp_saved = CFI_AT_BP},
    [CODE_INDEXED] = {.kind = CFI_DEREF_INDEX,
                      .cfa_register = ARCH_DWARF_SP,
                      .cfa_index = CODE_DWARF_R10,
                      .cfa_offset = 8,
                      .cfa_addend = 8,
                      AT_CFA(ra, -8)},
    [CODE_BY_R10] = {.kind = CFI_OFFSET,
                     .cfa_register = CODE_DWARF_R10,
                     .cfa_offset = 8,
                     AT_CFA(ra, -8)},
    [CODE_SPOILER] = {CFA_AT(SP, 8), AT_CFA(ra, -8), .bp_saved = CFI_LOST, .bx_saved = CFI_LOST},
    [CODE_POPPED] = {CFA_AT(SP, 8), AT_CFA(ra, -8), AT_CFA(bp, -16), AT_CFA(bx, -24)},
    [CODE_KEEPER] = {CFA_AT(SP, 8), AT_CFA(ra, -8), .kept = 1U << CODE_DWARF_R10},
    [CODE_LIAR] = {CFA_AT(SP, 0), AT_CFA(ra, 0)},
    [CODE_GO] = {CFA_AT(SP, 24), AT_CFA(ra, -8), .bp_saved = CFI_LOST, .bx_saved = CFI_LOST,
                 .keeps_fp = 1},
    [CODE_FAR] = {CFA_AT(SP, 24), AT_CFA(ra, -8), AT_CFA(bp, INT32_MAX), AT_CFA(bx, INT32_MIN)},
    [CODE_SCRATCH] = {CFA_AT(SP, 24), AT_CFA(ra, -8), AT_CFA(bp, -16)},
    [CODE_SWITCH] = {.kind = CFI_SWITCH, .ra_saved = CFI_LOST},
    [CODE_SWITCH_LEAF] = {.kind = CFI_SWITCH,
                          .cfa_register = ARCH_DWARF_SP,
                          .cfa_offset = 8,
                          AT_CFA(ra, -8)},
    [CODE_SWITCH_FRAME] = {.kind = CFI_SWITCH,
                           .cfa_register = ARCH_DWARF_SP,
                           .cfa_offset = 24,
                           AT_CFA(ra, -8),
                           .bp_saved = CFI_LOST,
                           .bx_saved = CFI_LOST,
                           .keeps_fp = 1},
    [CODE_FORK] = {.kind = CFI_FORK,
                   .cfa_register = ARCH_DWARF_SP,
                   .cfa_offset = 8,
                   AT_CFA(ra, -8)},
    [CODE_LEAVING] = {.kind = CFI_END},
};

static inline enum unwind_code code_lookup(uint64_t pc, const struct cfi_rule **ret, void *userdata)
{
    (void)userdata;
    uint64_t function = pc >> CODE_PAGE_BITS;
    if (function <= CODE_NOWHERE || function >= CODE_END) {
        return UNWIND_CODE_NONE;
    }
    if (function == CODE_JIT) {
        return UNWIND_CODE_NO_RULE;
    }
    if (function == CODE_LOADING) {
        return UNWIND_CODE_PENDING;
    }
    if (function == CODE_LATE) {
        return UNWIND_CODE_LATE;
    }
    *ret = &code_rules[function];
    return UNWIND_CODE_RULE;
}
