/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walks from a sampled instruction to the root of its stack. A step out of a frame uses the rule of
 * its code, or the frame pointer if the code has no rule. Each step adds one frame, so the depth
 * bounds the walk. Where the copied bytes end, or the stack that they are of, the kernel's chain
 * continues the stack, on proof. Without proof the walk ends: a truncated stack is marked as such,
 * a wrong one could not be.
 */
#include "unwind.h"

#include "unwind_cfi.h"
#include "unwind_fp.h"

struct walk {
    const struct unwind_input *input;
    struct unwind_memory memory;
    struct unwind_frame frame;
    enum unwind_code code;       /* of the last frame that was added, */
    const struct cfi_rule *rule; /* and its rule if it has one; */
    uint64_t callee_bp; /* where the frame pointer of the one before it points, 0: unknown */
    uint64_t *frames;
    uint64_t *places;
    struct unwind_result result;
};

/* How a frame's program counter came to be. */
enum arrival {
    ARRIVAL_CALL,   /* it is a return address: behind the call */
    ARRIVAL_SIGNAL, /* it is the instruction that a signal interrupted */
};

/*
 * What is written for a frame: an address whose predecessor is in the frame's instruction. A return
 * address is that by itself. What a signal interrupted is exact, and so is the trampoline to which
 * the kernel has a handler return: no call stands before it.
 */
static uint64_t written_address(const struct walk *walk, uint64_t pc, enum arrival arrival)
{
    bool is_trampoline = walk->code == UNWIND_CODE_RULE && walk->rule->signal_frame != 0;
    return arrival == ARRIVAL_SIGNAL || is_trampoline ? pc + 1 : pc;
}

/* Code without a rule may use rbp for something else, or not have made its frame yet. */
static void note_unproved(struct walk *walk)
{
    walk->result.unproved = walk->result.unproved || walk->code != UNWIND_CODE_RULE;
}

static enum stack_quality root_quality(const struct walk *walk)
{
    return walk->result.unproved ? STACK_UNPROVED : STACK_COMPLETE;
}

/* Returns STACK_NONE, or what the stack ends with without this frame; with a table that is pending
 * that has no meaning. */
static enum stack_quality add_frame(struct walk *walk, uint64_t pc, enum arrival arrival,
                                    uint64_t place)
{
    const struct unwind_input *input = walk->input;
    walk->code =
        input->lookup(arrival == ARRIVAL_SIGNAL ? pc : pc - 1, &walk->rule, input->userdata);
    if (walk->code == UNWIND_CODE_NONE || walk->code == UNWIND_CODE_PENDING) {
        return STACK_BAD_MEMORY;
    }
    if (walk->result.frame_count == input->max_depth) {
        return STACK_DEPTH;
    }
    walk->places[walk->result.frame_count] = place;
    walk->frames[walk->result.frame_count++] = written_address(walk, pc, arrival);
    return STACK_NONE;
}

/* The sampled instruction, which is written as it is, even where nothing says what it is. */
static enum stack_quality add_leaf(struct walk *walk)
{
    const uint64_t ip = walk->input->ip;
    walk->places[0] = walk->frame.registers[ARCH_DWARF_SP];
    walk->frames[0] = ip;
    walk->code = walk->input->lookup(ip, &walk->rule, walk->input->userdata);
    walk->result.frame_count = walk->code == UNWIND_CODE_PENDING ? 0 : 1;
    return walk->code == UNWIND_CODE_NONE || walk->code == UNWIND_CODE_PENDING ? STACK_BAD_MEMORY
                                                                               : STACK_NONE;
}

/* Behind the call that makes a thread the child, whose result is 0, has no caller. Only the sampled
 * instruction can stand there, so that rax is its own. */
static bool is_child(const struct walk *walk)
{
    return walk->rule->kind == CFI_FORK && walk->result.frame_count == 1 &&
           unwind_frame_knows(&walk->frame, ARCH_DWARF_AX) &&
           walk->frame.registers[ARCH_DWARF_AX] == 0;
}

static bool is_root(const struct walk *walk)
{
    return walk->code == UNWIND_CODE_RULE && (walk->rule->kind == CFI_ROOT || is_child(walk));
}

static bool is_switch(const struct walk *walk)
{
    return walk->code == UNWIND_CODE_RULE && walk->rule->kind == CFI_SWITCH;
}

static bool keeps_frame_pointer(const struct walk *walk)
{
    return walk->code == UNWIND_CODE_RULE
               ? unwind_fp_is_rule(&walk->memory, walk->rule)
               : walk->code == UNWIND_CODE_NO_RULE && walk->input->mode == UNWIND_AUTO;
}

/* Where the frame pointer of the last frame points, or 0: it has none, or it is unknown. */
static uint64_t frame_pointer(const struct walk *walk)
{
    const struct cfi_rule *rule = walk->code == UNWIND_CODE_RULE ? walk->rule : NULL;
    uint64_t bp = 0;
    bool is_known =
        keeps_frame_pointer(walk) && unwind_fp_value(&walk->memory, rule, &walk->frame, &bp);
    return is_known ? bp : 0;
}

static bool has_chain(const struct unwind_input *input)
{
    return input->chain_count > 0 && input->chain[0] == input->ip;
}

/* Adds the kernel's chain from its entry `next` on, which is known to be the last frame's return
 * address; 0: it is not. What the stack ends with, `quality` where the chain does not say. */
static enum stack_quality take_chain(struct walk *walk, size_t next, enum stack_quality quality)
{
    const struct unwind_input *input = walk->input;
    if (next == 0) {
        return quality;
    }
    for (; next < input->chain_count; next++) {
        uint64_t pc = input->chain[next];
        note_unproved(walk);
        enum stack_quality end = pc == 0 ? STACK_NO_RULE : add_frame(walk, pc, ARRIVAL_CALL, 0);
        if (end != STACK_NONE) {
            return end;
        }
        walk->result.fp_frame_count++;
        if (is_root(walk)) {
            return root_quality(walk);
        }
        bool passes_on = is_switch(walk);
        walk->result.crossed = walk->result.crossed || passes_on;
        if (!passes_on && !keeps_frame_pointer(walk)) {
            return walk->code == UNWIND_CODE_RULE ? quality : STACK_NO_RULE;
        }
    }
    return input->chain_cut ? STACK_DEPTH : quality;
}

/*
 * The copied bytes do not hold the last frame's return address, and the stack would end with
 * `quality`: the copy is too short, or the stack goes on elsewhere, as below a handler with a stack
 * of its own.
 */
static enum stack_quality follow_chain(struct walk *walk, enum stack_quality quality)
{
    const struct unwind_input *input = walk->input;
    uint64_t bp = frame_pointer(walk);
    size_t next = 0;
    if (bp != 0 && has_chain(input)) {
        next = unwind_fp_find(&walk->memory, input->chain, input->chain_count,
                              input->registers[ARCH_DWARF_BP], bp);
    }
    return take_chain(walk, next, quality);
}

/*
 * The last frame's code calls from another stack than it was called on, and nothing of that one is
 * copied. rbp led there when it called; the kernel's chain may have followed it.
 */
static enum stack_quality cross(struct walk *walk)
{
    const struct unwind_input *input = walk->input;
    size_t next = 0;
    walk->result.crossed = true;
    if (has_chain(input)) {
        next =
            unwind_fp_find_across(&walk->memory, input->chain, input->chain_count,
                                  input->registers[ARCH_DWARF_BP], &walk->frame, walk->callee_bp);
    }
    return take_chain(walk, next, STACK_SHORT_COPY);
}

/*
 * Whether the last frame, whose code has `rule`, is still or again on the stack that it was called
 * on. It is where rbp, which it does not lose, points to its own frame or to that of `caller`, by
 * the places that these have on this stack.
 */
static bool is_on_own_stack(const struct walk *walk, const struct cfi_rule *rule,
                            const struct unwind_frame *caller, const struct cfi_rule *caller_rule)
{
    uint64_t bp = 0;
    bool is_own = rule->keeps_fp != 0 && walk->frame.registers[ARCH_DWARF_BP] ==
                                             caller->registers[ARCH_DWARF_SP] -
                                                 2 * unwind_memory_word_bytes(&walk->memory);
    return is_own || (caller_rule != NULL && caller_rule->keeps_fp != 0 &&
                      unwind_fp_is_rule(&walk->memory, caller_rule) &&
                      unwind_fp_value(&walk->memory, caller_rule, caller, &bp) &&
                      bp == walk->frame.registers[ARCH_DWARF_BP]);
}

/* step() for a function that goes over to another stack. */
static enum stack_quality step_over_switch(struct walk *walk)
{
    const struct cfi_rule rule = *walk->rule;
    const struct cfi_rule *caller_rule = NULL;
    struct unwind_frame caller = walk->frame;
    if (!unwind_frame_knows(&walk->frame, ARCH_DWARF_BP) ||
        unwind_cfi_step(&rule, &walk->memory, &caller) != STACK_NONE) {
        return cross(walk);
    }
    enum unwind_code code = walk->input->lookup(caller.pc - 1, &caller_rule, walk->input->userdata);
    if (code != UNWIND_CODE_PENDING &&
        !is_on_own_stack(walk, &rule, &caller, code == UNWIND_CODE_RULE ? caller_rule : NULL)) {
        return cross(walk);
    }
    walk->frame = caller;
    enum stack_quality quality =
        add_frame(walk, caller.pc, ARRIVAL_CALL, caller.registers[ARCH_DWARF_SP]);
    if (quality == STACK_NONE) {
        walk->result.cfi_frame_count++;
    }
    return quality;
}

/* A handler can have a stack of its own, which ends where the interrupted one does not begin. */
static bool is_elsewhere(const struct unwind_memory *memory, uint64_t sp)
{
    return sp < memory->start || sp - memory->start >= memory->size_bytes;
}

/*
 * While the kernel makes the frame of a signal, the stack pointer is the handler's already, and the
 * program counter is still that of what the signal interrupts. The frame is on top of the stack
 * then, and names the same program counter: the stack begins where that was interrupted. Some
 * registers are the handler's by then. As add_leaf().
 */
static enum stack_quality begin(struct walk *walk)
{
    const struct unwind_input *input = walk->input;
    struct unwind_frame frame = walk->frame;
    uint64_t back = 0;
    if (!input->in_kernel ||
        unwind_memory_read(&walk->memory, walk->memory.start, &back) != STACK_NONE) {
        return add_leaf(walk);
    }
    walk->code = input->lookup(back - 1, &walk->rule, input->userdata);
    if (walk->code == UNWIND_CODE_PENDING) {
        return STACK_BAD_MEMORY;
    }
    frame.registers[ARCH_DWARF_SP] += unwind_memory_word_bytes(&walk->memory);
    if (walk->code == UNWIND_CODE_RULE && walk->rule->signal_frame != 0 &&
        unwind_cfi_step(walk->rule, &walk->memory, &frame) == STACK_NONE && frame.pc == input->ip) {
        uint64_t sp = frame.registers[ARCH_DWARF_SP];
        walk->memory.elsewhere = is_elsewhere(&walk->memory, sp);
        walk->frame.registers[ARCH_DWARF_SP] = sp;
        walk->frame.known &= ~ARCH_HANDLER_REGISTERS;
    }
    return add_leaf(walk);
}

/*
 * Whether the kernel, which returns from a signal, has given the stack pointer back already, and
 * not yet the program counter: what it wrote for the handler is on top of the stack only before
 * that.
 */
static bool is_half_returned(const struct walk *walk)
{
    const struct unwind_memory *memory = &walk->memory;
    uint64_t context = walk->frame.registers[ARCH_DWARF_SP];
    uint64_t flags = 0;
    uint64_t link = 0;
    uint64_t segments = 0;
    if (!walk->input->in_kernel || walk->result.frame_count != 1 || memory->is_32bit ||
        walk->rule->kind != CFI_DEREF || walk->rule->cfa_offset != ARCH_UCONTEXT_SP_OFFSET) {
        return false;
    }
    bool is_read =
        unwind_memory_read(memory, context, &flags) == STACK_NONE &&
        unwind_memory_read(memory, context + ARCH_UCONTEXT_LINK_OFFSET, &link) == STACK_NONE &&
        unwind_memory_read(memory, context + ARCH_UCONTEXT_SEGMENTS_OFFSET, &segments) ==
            STACK_NONE;
    return is_read && (flags > ARCH_UCONTEXT_FLAGS_MAX || link != 0 ||
                       (segments & UINT16_MAX) != ARCH_USER_CODE_SEGMENT);
}

/* From the last frame to its caller. Returns STACK_NONE, or what the stack ends with. */
static enum stack_quality step(struct walk *walk)
{
    bool by_rule = walk->code == UNWIND_CODE_RULE;
    bool interrupted = by_rule && walk->rule->signal_frame != 0;
    if (is_root(walk)) {
        return root_quality(walk);
    }
    if (is_switch(walk)) {
        return step_over_switch(walk);
    }
    if (!by_rule && !keeps_frame_pointer(walk)) {
        return STACK_NO_RULE;
    }
    if (interrupted && is_half_returned(walk)) {
        return STACK_BAD_MEMORY;
    }
    uint64_t bp = frame_pointer(walk);
    enum stack_quality quality = by_rule ? unwind_cfi_step(walk->rule, &walk->memory, &walk->frame)
                                         : unwind_fp_step(&walk->memory, &walk->frame);
    if (quality == STACK_SHORT_COPY || quality == STACK_BAD_MEMORY) {
        return follow_chain(walk, quality);
    }
    if (quality != STACK_NONE) {
        return quality;
    }
    note_unproved(walk);
    walk->callee_bp = bp;
    uint64_t sp = walk->frame.registers[ARCH_DWARF_SP];
    if (interrupted) {
        walk->memory.elsewhere = is_elsewhere(&walk->memory, sp);
    }
    quality = add_frame(walk, walk->frame.pc, interrupted ? ARRIVAL_SIGNAL : ARRIVAL_CALL, sp);
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
    const unsigned int registers_count =
        input->is_32bit ? ARCH_REGISTERS_COUNT_32BIT : ARCH_REGISTERS_COUNT;
    struct walk walk = {
        .input = input,
        .memory = {.start = input->registers[ARCH_DWARF_SP],
                   .bytes = input->stack,
                   .size_bytes = input->stack_bytes,
                   .cut = input->stack_cut,
                   .is_32bit = input->is_32bit},
        .frame = {.pc = input->ip, .known = (1U << registers_count) - 1},
        .frames = frames,
        .places = places,
    };
    memcpy(walk.frame.registers, input->registers, sizeof walk.frame.registers);
    enum stack_quality quality = begin(&walk);
    while (quality == STACK_NONE) {
        quality = step(&walk);
    }
    walk.result.pending = walk.code == UNWIND_CODE_PENDING;
    walk.result.quality = quality;
    *ret = walk.result;
}
