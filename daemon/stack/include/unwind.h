/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From the registers and the copied bytes of a stack to its frames. Frame by frame the code's own
 * call-frame information decides where there is some, else the frame pointer. Every step is held
 * against reason: a return address lies in executable memory, a stack grows one way. Pure: what it
 * reads is in its arguments, and it allocates nothing.
 */

#include "arch_x86_64.h"
#include "cfi_table.h"
#include "sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNWIND_DEPTH_MAX 510

/* What is known of the code at an address. */
enum unwind_code {
    UNWIND_CODE_NONE,    /* not executable memory, as far as anybody knows */
    UNWIND_CODE_RULE,    /* its module has a rule: never CFI_NONE or CFI_UNSUPPORTED */
    UNWIND_CODE_NO_RULE, /* executable, without a rule that can be followed */
    UNWIND_CODE_PENDING, /* its module's table is not there yet, */
    UNWIND_CODE_LATE,    /* and it is not awaited any more: the stack ends there */
    UNWIND_CODE_OPAQUE,  /* executable, without a rule or a frame pointer: the stack ends there */
};

/* Asked for each frame; `*ret` (borrowed until the next call) is set with UNWIND_CODE_RULE. */
typedef enum unwind_code (*unwind_lookup_fn)(uint64_t pc, const struct cfi_rule **ret,
                                             void *userdata);

enum unwind_mode {
    UNWIND_AUTO, /* rules, and frame pointers where there are none */
    UNWIND_CFI,  /* rules only */
};

struct unwind_input {
    enum unwind_mode mode;
    size_t max_depth; /* 1 to UNWIND_DEPTH_MAX */
    unwind_lookup_fn lookup;
    void *userdata;
    uint64_t registers[ARCH_REGISTERS_COUNT]; /* by DWARF number */
    uint64_t ip;
    const uint8_t *stack; /* the bytes from registers[ARCH_DWARF_SP] up; any alignment */
    size_t stack_bytes;
    bool stack_cut;        /* as many were copied as were asked for: there may be more */
    const uint64_t *chain; /* the kernel's frame-pointer chain, leaf first */
    size_t chain_count;
    bool chain_cut; /* it has as many entries as were asked for */
    bool in_kernel; /* the kernel was at work for the task, and may have changed some registers */
    bool is_32bit;  /* the task's words have 4 bytes; what it has no register for is 0 */
};

struct unwind_result {
    bool pending;  /* a table was not there: nothing else here holds, ask again later */
    bool unproved; /* a frame pointer was followed where no rule says that it is one */
    bool crossed;  /* it goes over to another stack: places of frames do not tell what is above */
    enum stack_quality quality;
    size_t frame_count;
    uint16_t cfi_frame_count; /* frames whose caller a rule gave, and */
    uint16_t fp_frame_count;  /* the frame pointer; the kernel's chain counts here */
};

/*
 * `frames` (max_depth of them, the caller's) are filled leaf first: the first is `ip`. Of each
 * other the predecessor, address - 1, is in the frame's instruction: it is a return address, or, of
 * what a signal interrupted and of the trampoline behind a handler, the exact address + 1. `places`
 * (as many) are the frames' stack pointers, 0 where it is unknown: a return address lies below its
 * frame's.
 */
void unwind_stack(const struct unwind_input *input, uint64_t *frames, uint64_t *places,
                  struct unwind_result *ret);
