/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which of the two ways a sample's stack goes. The unwinder needs 64-bit registers, a copied stack
 * and a process whose mappings are known; everything else keeps the kernel's chain, which the
 * kernel ends where it cannot go on, without saying why.
 */
#include "user_stack.h"

#include <string.h>

#define REGS_ABI_64 2 /* PERF_SAMPLE_REGS_ABI_64 */

/* Entries of a chain that comes later, at most: what fits a page of the kernel's. */
#define DEFERRED_CHAIN_MAX 510

struct lookup {
    struct code_map *code;
    struct process *process;
    uint64_t time_ns;
    bool settle;
    bool unmapped;
};

static enum unwind_code find_code(uint64_t pc, const struct cfi_rule **ret, void *userdata)
{
    struct lookup *lookup = userdata;
    enum unwind_code code =
        code_map_find(lookup->code, lookup->process, pc, lookup->time_ns, lookup->settle, ret);
    lookup->unmapped = lookup->unmapped || code == UNWIND_CODE_NONE;
    return code;
}

/* `full`: the kernel has written as many entries as it may. */
static void take_chain(const struct user_stack *stack, const uint64_t *chain, size_t chain_count,
                       bool full, struct sample *sample)
{
    size_t count = chain_count < stack->max_depth ? chain_count : stack->max_depth;
    bool cut = full || count < chain_count;
    sample->user_stack = chain;
    sample->user_count = count;
    sample->cfi_frame_count = 0;
    sample->fp_frame_count = (uint16_t)count;
    if (count == 0) {
        sample->quality = STACK_NONE;
    } else {
        sample->quality = cut || count == stack->max_depth ? STACK_DEPTH : STACK_NO_RULE;
    }
}

void user_stack_take_deferred(const struct user_stack *stack, const uint64_t *chain, size_t count,
                              struct sample *sample)
{
    take_chain(stack, chain, count, count >= DEFERRED_CHAIN_MAX, sample);
}

/*
 * The kernel, at work for the task, finds nothing where the task's stack pointer points: between
 * the old image and the new one of an exec, the memory is the new one's and the registers are still
 * the old one's, and what they point to is neither's.
 */
static bool has_no_stack(const struct perf_sample_view *view, const struct sample *sample)
{
    return sample->kernel_mode && view->user_stack != NULL && view->user_stack_bytes == 0;
}

/* A stack that reaches its root helps those of its thread that do not. Not so where it goes over to
 * another one: who asked for what is done there is not told by where it is done. */
static void stitch_stack(struct user_stack *stack, const struct process *process, int32_t tid,
                         struct unwind_result *result)
{
    struct stitch_stack found = {stack->frames, stack->places, result->frame_count};
    if (result->crossed) {
        return;
    }
    if (result->quality == STACK_SHORT_COPY &&
        stitch_complete(stack->stitch, process->generation, tid, &found)) {
        result->quality = STACK_STITCHED;
        result->frame_count = found.count;
    }
    if (result->quality == STACK_COMPLETE || result->quality == STACK_STITCHED) {
        stitch_learn(stack->stitch, process->generation, tid, &found);
    }
}

bool user_stack_take(struct user_stack *stack, const struct perf_sample_view *view,
                     struct process *process, bool settle, struct sample *sample,
                     bool *ret_unmapped)
{
    if (stack->unwind == SESSION_UNWIND_FP || process == NULL || !view->has_user_regs ||
        view->user_regs_abi != REGS_ABI_64 || view->user_regs_count != ARCH_PERF_REGS_COUNT) {
        take_chain(stack, view->user_chain, view->user_count,
                   view->user_count + view->kernel_count >= stack->chain_max, sample);
        return true;
    }
    if (has_no_stack(view, sample)) {
        return true;
    }
    struct lookup lookup = {stack->code, process, sample->time_ns, settle, false};
    struct unwind_input input = {
        .mode = stack->unwind == SESSION_UNWIND_CFI ? UNWIND_CFI : UNWIND_AUTO,
        .max_depth = stack->max_depth,
        .lookup = find_code,
        .userdata = &lookup,
        .ip = view->user_regs[ARCH_PERF_IP_WORD],
        .stack = view->user_stack,
        .stack_bytes = view->user_stack_bytes,
        .stack_cut = view->user_stack_cut,
        .chain = view->user_chain,
        .chain_count = view->user_count,
        .chain_cut = view->user_count + view->kernel_count >= stack->chain_max,
    };
    for (size_t i = 0; i < ARCH_REGISTERS_COUNT; i++) {
        input.registers[i] = view->user_regs[arch_perf_word[i]];
    }
    struct unwind_result result;
    unwind_stack(&input, stack->frames, stack->places, &result);
    if (result.pending) {
        return false;
    }
    stitch_stack(stack, process, sample->tid, &result);
    *ret_unmapped = lookup.unmapped;
    sample->quality = result.quality;
    sample->user_stack = stack->frames;
    sample->user_count = result.frame_count;
    sample->cfi_frame_count = result.cfi_frame_count;
    sample->fp_frame_count = result.fp_frame_count;
    return true;
}
