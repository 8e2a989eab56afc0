/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From any registers, over any bytes, by any rules, a walk ends within its depth and reads only the
 * copy. The input is struct head, rules, the kernel's chain, and the copied bytes to the end.
 */
#include "fuzz_target.h"
#include "unwind.h"

#include <stdlib.h>
#include <string.h>

#define ITEMS_MAX ((size_t)15)
struct head {
    uint64_t registers[ARCH_REGISTERS_COUNT], ip;
    uint8_t flags, max_depth, rule_count, chain_count;
};
struct code {
    struct cfi_rule rules[ITEMS_MAX];
    size_t rule_count;
};

/* An address's lowest digit says which code is there. */
static enum unwind_code look_up(uint64_t pc, const struct cfi_rule **ret, void *userdata)
{
    const struct code *code = userdata;
    size_t rule = pc & 15;
    *ret = &code->rules[rule < code->rule_count ? rule : 0];
    if (rule < code->rule_count) {
        return UNWIND_CODE_RULE;
    }
    return rule == 13 ? UNWIND_CODE_NONE : rule == 14 ? UNWIND_CODE_PENDING : UNWIND_CODE_NO_RULE;
}

/* What cfi_table_open() lets through. */
static void make_valid(struct cfi_rule *rule)
{
    rule->kind = (uint8_t)(CFI_ROOT + rule->kind % (CFI_PLT - CFI_ROOT + 1));
    rule->cfa_register %= ARCH_REGISTERS_COUNT;
    rule->ra_saved = rule->ra_saved % 2 != 0 ? CFI_AT_SP : CFI_AT_CFA;
    rule->bp_saved %= CFI_LOST + 1;
    rule->bx_saved %= CFI_LOST + 1;
}

static void unwind(struct unwind_input *input)
{
    uint64_t *frames = malloc(input->max_depth * sizeof *frames);
    struct unwind_result result;
    if (frames == NULL) {
        return;
    }
    unwind_stack(input, frames, &result);
    size_t callers = (size_t)result.cfi_frame_count + result.fp_frame_count;
    if (!result.pending && (result.frame_count == 0 || result.frame_count > input->max_depth ||
                            callers + 1 != result.frame_count || frames[0] != input->ip ||
                            result.quality < STACK_COMPLETE || result.quality > STACK_BAD_MEMORY)) {
        abort();
    }
    free(frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct head head;
    struct code code = {0};
    uint64_t chain[ITEMS_MAX];
    if (size < sizeof head) {
        return 0;
    }
    memcpy(&head, bytes, sizeof head);
    bytes += sizeof head;
    size -= sizeof head;
    code.rule_count = head.rule_count % 13;
    size_t chain_count = head.chain_count % (ITEMS_MAX + 1);
    size_t rules_bytes = code.rule_count * sizeof *code.rules;
    size_t chain_bytes = chain_count * sizeof *chain;
    if (size < rules_bytes + chain_bytes) {
        return 0;
    }
    memcpy(code.rules, bytes, rules_bytes);
    memcpy(chain, bytes + rules_bytes, chain_bytes);
    for (size_t i = 0; i < code.rule_count; i++) {
        make_valid(&code.rules[i]);
    }
    struct unwind_input input = {
        .mode = (head.flags & 1) != 0 ? UNWIND_CFI : UNWIND_AUTO,
        .max_depth = head.max_depth == 0 ? UNWIND_DEPTH_MAX : head.max_depth,
        .lookup = look_up,
        .userdata = &code,
        .ip = head.ip,
        .stack = bytes + rules_bytes + chain_bytes,
        .stack_bytes = size - rules_bytes - chain_bytes,
        .stack_cut = (head.flags & 2) != 0,
        .chain = chain,
        .chain_count = chain_count,
        .chain_cut = (head.flags & 4) != 0,
    };
    memcpy(input.registers, head.registers, sizeof input.registers);
    unwind(&input);
    return 0;
}
