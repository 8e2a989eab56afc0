/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The walk from a sampled instruction to the root of its stack. Each frame is stepped out of by the
 * rule of its code, or, where that has none, by the frame pointer; each step adds one frame, so the
 * depth bounds the walk. Where the copied bytes end, the kernel's chain goes on, on proof. Without
 * proof the walk ends: a stack that is cut says so, a stack that is wrong does not.
 */
#include "unwind.h"

#include "unwind_cfi.h"
#include "unwind_fp.h"

struct walk {
    const struct unwind_input *input;
    struct unwind_memory memory;
    struct unwind_frame frame;
    enum unwind_code code;       /* of the last frame that was added, */
    const struct cfi_rule *rule; /* and its rule if it has one */
    uint64_t *frames;
    uint64_t *places;
    struct unwind_result result;
};

/* `code_address` is in the instruction that the frame is at. Returns STACK_NONE, or what the stack
 * ends with without this frame; with a table that is pending that has no meaning. */
static enum stack_quality add_frame(struct walk *walk, uint64_t pc, uint64_t code_address,
                                    uint64_t place)
{
    const struct unwind_input *input = walk->input;
    walk->code = input->lookup(code_address, &walk->rule, input->userdata);
    if (walk->code == UNWIND_CODE_NONE || walk->code == UNWIND_CODE_PENDING) {
        return STACK_BAD_MEMORY;
    }
    if (walk->result.frame_count == input->max_depth) {
        return STACK_DEPTH;
    }
    walk->places[walk->result.frame_count] = place;
    walk->frames[walk->result.frame_count++] = pc;
    return STACK_NONE;
}

static bool is_root(const struct walk *walk)
{
    return walk->code == UNWIND_CODE_RULE && walk->rule->kind == CFI_ROOT;
}

static bool keeps_frame_pointer(const struct walk *walk)
{
    return walk->code == UNWIND_CODE_RULE ? unwind_fp_is_rule(walk->rule)
                                          : walk->input->mode == UNWIND_AUTO;
}

/*
 * The copied bytes do not hold the last frame's return address, and the stack would end with
 * `quality`: the copy is too short, or the stack goes on elsewhere, as below a handler with a stack
 * of its own.
 */
static enum stack_quality follow_chain(struct walk *walk, enum stack_quality quality)
{
    const struct unwind_input *input = walk->input;
    const struct cfi_rule *rule = walk->code == UNWIND_CODE_RULE ? walk->rule : NULL;
    uint64_t bp = 0;
    size_t next = 0;
    if (keeps_frame_pointer(walk) && unwind_fp_value(rule, &walk->frame, &bp) &&
        input->chain_count > 0 && input->chain[0] == input->ip) {
        next = unwind_fp_find(&walk->memory, input->chain, input->chain_count,
                              input->registers[ARCH_DWARF_BP], bp);
    }
    if (next == 0) {
        return quality;
    }
    for (; next < input->chain_count; next++) {
        uint64_t pc = input->chain[next];
        enum stack_quality end = pc == 0 ? STACK_NO_RULE : add_frame(walk, pc, pc - 1, 0);
        if (end != STACK_NONE) {
            return end;
        }
        walk->result.fp_frame_count++;
        if (is_root(walk)) {
            return STACK_COMPLETE;
        }
        if (!keeps_frame_pointer(walk)) {
            return walk->code == UNWIND_CODE_RULE ? quality : STACK_NO_RULE;
        }
    }
    return input->chain_cut ? STACK_DEPTH : quality;
}

/* A handler can have a stack of its own, which ends where the interrupted one does not begin. */
static bool is_elsewhere(const struct unwind_memory *memory, uint64_t sp)
{
    return sp < memory->start || sp - memory->start >= memory->size_bytes;
}

/* From the last frame to its caller. Returns STACK_NONE, or what the stack ends with. */
static enum stack_quality step(struct walk *walk)
{
    bool by_rule = walk->code == UNWIND_CODE_RULE;
    bool interrupted = by_rule && walk->rule->signal_frame != 0;
    if (is_root(walk)) {
        return STACK_COMPLETE;
    }
    if (!by_rule && walk->input->mode == UNWIND_CFI) {
        return STACK_NO_RULE;
    }
    enum stack_quality quality = by_rule ? unwind_cfi_step(walk->rule, &walk->memory, &walk->frame)
                                         : unwind_fp_step(&walk->memory, &walk->frame);
    if (quality == STACK_SHORT_COPY || quality == STACK_BAD_MEMORY) {
        return follow_chain(walk, quality);
    }
    if (quality != STACK_NONE) {
        return quality;
    }
    uint64_t sp = walk->frame.registers[ARCH_DWARF_SP];
    if (interrupted) {
        walk->memory.elsewhere = is_elsewhere(&walk->memory, sp);
    }
    uint64_t pc = walk->frame.pc;
    quality = add_frame(walk, pc, interrupted ? pc : pc - 1, sp);
    if (quality == STACK_NONE && by_rule) {
        walk->result.cfi_frame_count++;
    } else if (quality == STACK_NONE) {
        walk->result.fp_frame_count++;
    }
    return quality;
}

void unwind_stack(const struct unwind_input *input, uint64_t *frames, uint64_t *places,
                  struct unwind_result *ret)
{
    struct walk walk = {
        .input = input,
        .memory = {.start = input->registers[ARCH_DWARF_SP],
                   .bytes = input->stack,
                   .size_bytes = input->stack_bytes,
                   .cut = input->stack_cut},
        .frame = {.pc = input->ip, .known = (1U << ARCH_REGISTERS_COUNT) - 1},
        .frames = frames,
        .places = places,
    };
    memcpy(walk.frame.registers, input->registers, sizeof walk.frame.registers);
    enum stack_quality quality = add_frame(&walk, input->ip, input->ip, walk.memory.start);
    if (walk.code == UNWIND_CODE_NONE) {
        places[walk.result.frame_count] = walk.memory.start;
        frames[walk.result.frame_count++] = input->ip;
    }
    while (quality == STACK_NONE) {
        quality = step(&walk);
    }
    walk.result.pending = walk.code == UNWIND_CODE_PENDING;
    walk.result.quality = quality;
    *ret = walk.result;
}
