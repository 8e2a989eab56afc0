/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes a sample's user stack: by the unwinder, or from the kernel's chain. The unwinder needs
 * registers, a copied stack and a process whose mappings are known. Other samples have the chain.
 *
 * The kernel follows rbp even where code keeps data in it; then the word behind that data is an
 * entry of the chain. So only addresses of code pass. The first entry is the program counter. The
 * chain ends before the first other entry that is in no executable mapping of its process at that
 * time. Without a known process, only the first entry passes. A mapping that had no room in the
 * process table ends a chain, too: an address that is not known to be code may be data.
 */
#include "user_stack.h"

#include <string.h>

#define REGS_ABI_32 1 /* PERF_SAMPLE_REGS_ABI_32: the task executes 32-bit code, */
#define REGS_ABI_64 2 /* PERF_SAMPLE_REGS_ABI_64: or 64-bit code; a process may have both */

/* Entries of a chain that comes later, at most: what fits a page of the kernel's. */
#define DEFERRED_MATCH_CHAIN_MAX 510

/* The kernel's. */
struct chain {
    const uint64_t *entries; /* borrowed, leaf first */
    size_t count;
    bool full; /* the kernel has written as many entries as it may */
};

struct lookup {
    struct code_map *code;
    struct process *process;
    struct code_moment moment;
    bool unmapped;
};

static enum unwind_code find_code(uint64_t pc, const struct cfi_rule **ret, void *userdata)
{
    struct lookup *lookup = userdata;
    enum unwind_code code = code_map_find(lookup->code, lookup->process, pc, &lookup->moment, ret);
    lookup->unmapped = lookup->unmapped || code == UNWIND_CODE_NONE;
    return code;
}

/* How many entries of a chain, from the first one on, pass as what they are: the program counter,
 * then return addresses in code of `process` at `time_ns`. */
static size_t count_code(struct process *process, uint64_t time_ns, const uint64_t *chain,
                         size_t count)
{
    const struct mapping *mapping = NULL;
    for (size_t i = 1; i < count; i++) {
        uint64_t address = chain[i] - 1; /* in the call */
        if (mapping == NULL || address < mapping->start || address >= mapping->end) {
            mapping = process == NULL ? NULL : process_find_mapping(process, address, time_ns);
        }
        if (mapping == NULL) {
            return i;
        }
    }
    return count;
}

static void take_chain(const struct user_stack *stack, const struct chain *chain,
                       struct process *process, struct sample *sample, bool *ret_unmapped)
{
    size_t wanted = chain->count < stack->max_depth ? chain->count : stack->max_depth;
    size_t kept = count_code(process, sample->time_ns, chain->entries, wanted);
    bool cut = chain->full || wanted < chain->count || wanted == stack->max_depth;
    sample->user_stack = chain->entries;
    sample->user_count = kept;
    sample->cfi_frame_count = 0;
    sample->fp_frame_count = (uint16_t)kept;
    *ret_unmapped = kept < wanted && process != NULL && chain->entries[kept] != 0;
    if (kept == 0) {
        sample->quality = STACK_NONE;
    } else if (kept < wanted) {
        sample->quality = *ret_unmapped ? STACK_BAD_MEMORY : STACK_NO_RULE;
    } else {
        sample->quality = cut ? STACK_DEPTH : STACK_NO_RULE;
    }
}

bool user_stack_take_deferred(const struct user_stack *stack, const uint64_t *entries, size_t count,
                              struct process *process, struct sample *sample)
{
    const struct chain chain = {entries, count, count >= DEFERRED_MATCH_CHAIN_MAX};
    bool unmapped = false;
    take_chain(stack, &chain, process, sample, &unmapped);
    return unmapped;
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

/* Remembers a stack that reaches its root, to stitch truncated stacks of its thread. A stack that
 * continues on another one is left out: its place there does not determine its callers.
 * `generation` is that of the process and of the task's word size, so that stacks of both sizes
 * never mix. */
static void stitch_stack(struct user_stack *stack, uint64_t generation, int32_t tid,
                         struct unwind_result *result)
{
    struct stitch_stack found = {stack->frames, stack->places, result->frame_count};
    if (result->crossed) {
        return;
    }
    if (result->quality == STACK_SHORT_COPY &&
        stitch_complete(stack->stitch, generation, tid, &found)) {
        result->quality = STACK_STITCHED;
        result->frame_count = found.count;
    }
    if (result->quality == STACK_COMPLETE || result->quality == STACK_UNPROVED ||
        result->quality == STACK_STITCHED) {
        stitch_learn(stack->stitch, generation, tid, &found);
    }
}

static bool can_unwind(const struct user_stack *stack, const struct perf_sample_view *view,
                       const struct process *process)
{
    return stack->unwind != SESSION_UNWIND_FP && process != NULL && view->has_user_regs &&
           (view->user_regs_abi == REGS_ABI_64 || view->user_regs_abi == REGS_ABI_32) &&
           view->user_regs_count == ARCH_PERF_REGS_COUNT;
}

/* The registers of the sampled instruction; a 32-bit task's are lower halves. */
static void take_registers(const struct perf_sample_view *view, struct unwind_input *input)
{
    const uint64_t mask = input->is_32bit ? UINT32_MAX : UINT64_MAX;
    const size_t count = input->is_32bit ? ARCH_REGISTERS_COUNT_32BIT : ARCH_REGISTERS_COUNT;
    for (size_t i = 0; i < count; i++) {
        input->registers[i] = view->user_regs[arch_perf_word[i]] & mask;
    }
    input->ip = view->user_regs[ARCH_PERF_IP_WORD] & mask;
}

bool user_stack_take(struct user_stack *stack, const struct perf_sample_view *view,
                     struct process *process, bool settle, struct sample *sample,
                     bool *ret_unmapped)
{
    if (!can_unwind(stack, view, process)) {
        const struct chain chain = {view->user_chain, view->user_count,
                                    view->user_count + view->kernel_count >= stack->chain_max};
        take_chain(stack, &chain, process, sample, ret_unmapped);
        return true;
    }
    if (has_no_stack(view, sample)) {
        return true;
    }
    const bool is_32bit = view->user_regs_abi == REGS_ABI_32;
    struct lookup lookup = {stack->code, process, {sample->time_ns, is_32bit, settle}, false};
    struct unwind_input input = {
        .mode = stack->unwind == SESSION_UNWIND_CFI ? UNWIND_CFI : UNWIND_AUTO,
        .max_depth = stack->max_depth,
        .in_kernel = sample->kernel_mode,
        .is_32bit = is_32bit,
        .lookup = find_code,
        .userdata = &lookup,
        .stack = view->user_stack,
        .stack_bytes = view->user_stack_bytes,
        .stack_cut = view->user_stack_cut,
        .chain = view->user_chain,
        .chain_count = view->user_count,
        .chain_cut = view->user_count + view->kernel_count >= stack->chain_max,
    };
    take_registers(view, &input);
    struct unwind_result result;
    unwind_stack(&input, stack->frames, stack->places, &result);
    if (result.pending) {
        return false;
    }
    stitch_stack(stack, process->generation << 1 | is_32bit, sample->tid, &result);
    *ret_unmapped = lookup.unmapped;
    sample->quality = result.quality;
    sample->user_stack = stack->frames;
    sample->user_count = result.frame_count;
    sample->cfi_frame_count = result.cfi_frame_count;
    sample->fp_frame_count = result.fp_frame_count;
    return true;
}
