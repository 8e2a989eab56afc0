/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From any registers, over any bytes, by any rules, a walk ends within its depth, reads only the
 * copy, and has no caller that is no code. The input is a struct code, and the copied bytes to the
 * end.
 */
#include "fuzz_target.h"
#include "unwind.h"

#include <stdlib.h>
#include <string.h>

#define RULES_COUNT ((size_t)12)
#define CHAIN_MAX   ((size_t)8)

struct code {
    uint64_t registers[ARCH_REGISTERS_COUNT], ip, chain[CHAIN_MAX];
    struct cfi_rule rules[RULES_COUNT];
    uint8_t mode, max_depth, chain_count, cuts;
};

_Static_assert(sizeof(struct code) == 592, "the corpus is written for this layout");

/* Rules become such as cfi_table_open() lets through. */
static void make_valid(struct cfi_rule *rule)
{
    rule->kind = (uint8_t)(CFI_ROOT + rule->kind % (CFI_END - CFI_ROOT + 1));
    rule->cfa_register %= ARCH_REGISTERS_COUNT;
    rule->cfa_index %= ARCH_REGISTERS_COUNT;
    rule->ra_saved = rule->ra_saved % 2 != 0 ? CFI_AT_SP : CFI_AT_CFA;
    rule->bp_saved %= CFI_LOST + 1;
    rule->bx_saved %= CFI_LOST + 1;
}

/* An address's lowest digit says which code is there. */
static enum unwind_code look_up(uint64_t pc, const struct cfi_rule **ret, void *userdata)
{
    const struct code *code = userdata;
    if ((pc & 15) >= RULES_COUNT) {
        return (pc & 3) == UNWIND_CODE_RULE ? UNWIND_CODE_NO_RULE : (enum unwind_code)(pc & 3);
    }
    *ret = &code->rules[pc & 15];
    return UNWIND_CODE_RULE;
}

/* Whether an address has called, or was interrupted by a signal. */
static bool is_code(struct code *code, uint64_t pc)
{
    const struct cfi_rule *rule = NULL;
    return look_up(pc - 1, &rule, code) != UNWIND_CODE_NONE ||
           look_up(pc, &rule, code) != UNWIND_CODE_NONE;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct code code;
    if (size < sizeof code) {
        return 0;
    }
    memcpy(&code, bytes, sizeof code);
    for (size_t i = 0; i < RULES_COUNT; i++) {
        make_valid(&code.rules[i]);
    }
    struct unwind_input input = {
        .mode = code.mode % 2 == 0 ? UNWIND_AUTO : UNWIND_CFI,
        .max_depth = code.max_depth == 0 ? UNWIND_DEPTH_MAX : code.max_depth,
        .lookup = look_up,
        .userdata = &code,
        .ip = code.ip,
        .stack = bytes + sizeof code,
        .stack_bytes = size - sizeof code,
        .stack_cut = (code.cuts & 1) != 0,
        .chain = code.chain,
        .chain_count = code.chain_count % (CHAIN_MAX + 1),
        .chain_cut = (code.cuts & 2) != 0,
        .is_32bit = (code.cuts & 4) != 0,
    };
    memcpy(input.registers, code.registers, sizeof input.registers);
    struct unwind_result result;
    uint64_t *frames = malloc(2 * input.max_depth * sizeof *frames);
    if (frames == NULL) {
        return 0;
    }
    unwind_stack(&input, frames, frames + input.max_depth, &result);
    size_t callers = (size_t)result.cfi_frame_count + result.fp_frame_count;
    if (!result.pending && (callers + 1 != result.frame_count || frames[0] != input.ip ||
                            result.frame_count > input.max_depth ||
                            result.quality < STACK_COMPLETE || result.quality > STACK_UNPROVED)) {
        abort();
    }
    for (size_t i = 1; !result.pending && i < result.frame_count; i++) {
        if (!is_code(&code, frames[i])) {
            abort();
        }
    }
    free(frames);
    return 0;
}
