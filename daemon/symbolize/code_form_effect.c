/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The effect of an instruction that code_form.c took apart: the same that code_decoder.c finds by
 * what Zydis says. Pure.
 */
#include "code_form.h"

#include <sys/syscall.h>

/* What is done to two operands. */
enum operation {
    OPERATION_ADD,
    OPERATION_OR,
    OPERATION_ADD_CARRY,
    OPERATION_SUB_CARRY,
    OPERATION_AND,
    OPERATION_SUB,
    OPERATION_XOR,
    OPERATION_COMPARE, /* up to here as opcodes number them */
    OPERATION_TEST,
    OPERATION_MOVE,
    OPERATION_EXTEND,
};

enum kind {
    KIND_REGISTER,
    KIND_MEMORY,
    KIND_NUMBER,
};

struct operands {
    enum operation operation;
    enum kind to_kind, from_kind;
    uint8_t to, from; /* of registers */
};

/* Whether the word in memory is of the program's own, from *(register + constant) on, and near. */
static bool begins_based(const struct code_form *form)
{
    return form->base != CODE_REGISTER_NONE && code_is_near(form->distance);
}

static bool is_based(const struct code_form *form)
{
    return begins_based(form) && form->index == CODE_REGISTER_NONE;
}

static void set_action(struct code_effect *effect, enum code_action action, uint8_t to,
                       uint8_t from, int64_t offset)
{
    effect->action = (uint8_t)action;
    effect->to = to;
    effect->from = from;
    effect->offset = (int32_t)offset;
}

static void change_register(struct code_effect *effect, uint8_t number)
{
    effect->changes |= (uint16_t)(1U << number);
}

static void change_memory(const struct code_form *form, struct code_effect *effect)
{
    if (begins_based(form)) {
        set_action(effect, CODE_STORE, form->base, CODE_REGISTER_NONE, form->distance);
        effect->store_bytes = form->operand_bytes;
    }
}

static void change_rm(const struct code_form *form, struct code_effect *effect)
{
    if (form->is_memory) {
        change_memory(form, effect);
    } else {
        change_register(effect, form->rm);
    }
}

/* Whether the operation is one whose action has a name, which is noted. */
static bool note_action(const struct code_form *form, const struct operands *operands,
                        struct code_effect *effect)
{
    bool is_word = form->operand_bytes == CODE_WORD_BYTES;
    bool is_sum = operands->operation == OPERATION_ADD || operands->operation == OPERATION_SUB;
    if (is_sum && is_word && operands->to_kind == KIND_REGISTER &&
        operands->from_kind == KIND_NUMBER && code_is_near(form->number)) {
        int64_t sign = operands->operation == OPERATION_ADD ? 1 : -1;
        set_action(effect, CODE_COPY, operands->to, operands->to, sign * form->number);
        return true;
    }
    if (operands->operation != OPERATION_MOVE || !is_word || operands->from_kind == KIND_NUMBER) {
        return false;
    }
    if (operands->to_kind == KIND_REGISTER && operands->from_kind == KIND_REGISTER) {
        set_action(effect, CODE_COPY, operands->to, operands->from, 0);
    } else if (!is_based(form)) {
        return false;
    } else if (operands->to_kind == KIND_REGISTER) {
        set_action(effect, CODE_LOAD, operands->to, form->base, form->distance);
    } else {
        set_action(effect, CODE_STORE, form->base, operands->from, form->distance);
        effect->store_bytes = CODE_WORD_BYTES;
    }
    return true;
}

/* What code does with an index before it jumps through a table. */
static void note_index(const struct code_form *form, const struct operands *operands,
                       struct code_effect *effect)
{
    int64_t value = operands->from_kind == KIND_NUMBER ? form->number : 0;
    bool is_positive = value > 0 && value <= INT32_MAX;
    if (operands->to_kind != KIND_REGISTER || effect->action != CODE_NOTHING) {
        return;
    }
    effect->to = operands->to;
    if (effect->to == ARCH_DWARF_SP && operands->from_kind == KIND_MEMORY) {
        effect->sight = CODE_SIGHT_STACK;
    } else if (operands->operation == OPERATION_COMPARE && is_positive) {
        effect->sight = CODE_SIGHT_LIMIT;
        effect->offset = (int32_t)value;
    } else if (operands->operation == OPERATION_AND && is_positive && (value & (value + 1)) == 0) {
        effect->sight = CODE_SIGHT_MASK;
        effect->offset = (int32_t)value;
    } else if (operands->from_kind == KIND_REGISTER) {
        effect->sight = CODE_SIGHT_EXTEND;
        effect->from = operands->from;
    } else if (operands->from_kind == KIND_MEMORY && form->scale == sizeof(int32_t)) {
        effect->sight = CODE_SIGHT_ENTRY;
        effect->from = form->index;
    }
}

/* mov of a constant to what a system call takes for its number. */
static void note_number(const struct code_form *form, const struct operands *operands,
                        struct code_effect *effect)
{
    if (operands->to_kind != KIND_REGISTER || operands->to != ARCH_DWARF_AX ||
        operands->from_kind != KIND_NUMBER) {
        return;
    }
    if (form->operand_bytes >= 4 && form->number == SYS_rt_sigreturn) {
        effect->sight = CODE_SIGHT_SIGRETURN;
    } else if (!form->is_high && (form->number == SYS_clone || form->number == SYS_clone3)) {
        effect->sight = CODE_SIGHT_CLONE;
    }
}

static void note_same(const struct code_form *form, const struct operands *operands, uint8_t number,
                      enum code_sight sight, struct code_effect *effect)
{
    if (operands->to_kind == KIND_REGISTER && operands->from_kind == KIND_REGISTER &&
        operands->to == number && operands->from == number && form->operand_bytes >= 4) {
        effect->sight = (uint8_t)sight;
    }
}

static void note_operands(const struct code_form *form, const struct operands *operands,
                          struct code_effect *effect)
{
    bool is_written =
        operands->operation != OPERATION_COMPARE && operands->operation != OPERATION_TEST;
    if (!note_action(form, operands, effect) && is_written) {
        if (operands->to_kind == KIND_REGISTER) {
            change_register(effect, operands->to);
        } else {
            change_memory(form, effect);
        }
    }
    switch (operands->operation) {
    case OPERATION_MOVE:
        note_index(form, operands, effect);
        note_number(form, operands, effect);
        break;
    case OPERATION_COMPARE:
    case OPERATION_AND:
    case OPERATION_EXTEND:
        note_index(form, operands, effect);
        break;
    case OPERATION_TEST:
        note_same(form, operands, ARCH_DWARF_AX, CODE_SIGHT_TEST_RESULT, effect);
        break;
    case OPERATION_XOR:
        note_same(form, operands, ARCH_DWARF_BP, CODE_SIGHT_CLEAR_FP, effect);
        break;
    case OPERATION_ADD:
    case OPERATION_OR:
    case OPERATION_ADD_CARRY:
    case OPERATION_SUB_CARRY:
    case OPERATION_SUB:
        break;
    }
}

static enum kind rm_kind(const struct code_form *form)
{
    return form->is_memory ? KIND_MEMORY : KIND_REGISTER;
}

/* The operands of an operation that has two; false: it is none. */
static bool find_operands(const struct code_form *form, struct operands *ret)
{
    const enum kind rm = rm_kind(form);
    enum operation by_opcode = (enum operation)(form->opcode >> 3 & 7);
    switch ((int)form->class) {
    case CODE_CLASS_SUM_RM_REG:
        *ret = (struct operands){by_opcode, rm, KIND_REGISTER, form->rm, form->reg};
        return true;
    case CODE_CLASS_SUM_REG_RM:
        *ret = (struct operands){by_opcode, KIND_REGISTER, rm, form->reg, form->rm};
        return true;
    case CODE_CLASS_SUM_AX:
        *ret = (struct operands){by_opcode, KIND_REGISTER, KIND_NUMBER, ARCH_DWARF_AX, 0};
        return true;
    case CODE_CLASS_SUM_NUMBER:
        *ret = (struct operands){(enum operation)form->field, rm, KIND_NUMBER, form->rm, 0};
        return true;
    case CODE_CLASS_TEST:
        *ret = (struct operands){OPERATION_TEST, rm, KIND_REGISTER, form->rm, form->reg};
        return true;
    case CODE_CLASS_TEST_AX:
        *ret = (struct operands){OPERATION_TEST, KIND_REGISTER, KIND_NUMBER, ARCH_DWARF_AX, 0};
        return true;
    case CODE_CLASS_MOVE_RM_REG:
        *ret = (struct operands){OPERATION_MOVE, rm, KIND_REGISTER, form->rm, form->reg};
        return true;
    case CODE_CLASS_MOVE_REG_RM:
        *ret = (struct operands){OPERATION_MOVE, KIND_REGISTER, rm, form->reg, form->rm};
        return true;
    case CODE_CLASS_MOVE_NUMBER:
        *ret = (struct operands){OPERATION_MOVE, rm, KIND_NUMBER, form->rm, 0};
        return true;
    case CODE_CLASS_NUMBER:
        *ret = (struct operands){OPERATION_MOVE, KIND_REGISTER, KIND_NUMBER, form->rm, 0};
        return true;
    case CODE_CLASS_EXTEND:
        *ret = (struct operands){OPERATION_EXTEND, KIND_REGISTER, rm, form->reg, form->rm};
        return true;
    default:
        return false;
    }
}

static void note_address(const struct code_form *form, uint64_t next, struct code_effect *effect)
{
    if (form->is_relative) {
        effect->target = next + (uint64_t)(int64_t)form->distance;
    }
    if (form->operand_bytes == CODE_WORD_BYTES && is_based(form)) {
        set_action(effect, CODE_COPY, form->reg, form->base, form->distance);
    } else {
        change_register(effect, form->reg);
    }
}

/* jmp by a register, or by a word in memory. */
static void note_jump_by(const struct code_form *form, struct code_effect *effect)
{
    bool is_fixed =
        form->is_memory && form->index == CODE_REGISTER_NONE && form->base == CODE_REGISTER_NONE;
    effect->flow = is_fixed ? CODE_END : CODE_INDIRECT;
    if (form->is_memory && !is_fixed && form->index != CODE_REGISTER_NONE &&
        form->scale == CODE_WORD_BYTES) {
        effect->sight = CODE_SIGHT_TABLE;
        effect->from = form->base;
        effect->to = form->index;
        effect->offset = form->distance;
    }
}

/* inc, dec, call, jmp and push. */
static void note_step(const struct code_form *form, struct code_effect *effect)
{
    switch (form->field) {
    case 0:
    case 1:
        change_rm(form, effect);
        break;
    case 2:
        effect->flow = CODE_CALL;
        break;
    case 4:
        note_jump_by(form, effect);
        break;
    default:
        set_action(effect, CODE_PUSH, CODE_REGISTER_NONE,
                   form->is_memory ? CODE_REGISTER_NONE : form->rm, 0);
        break;
    }
}

/* test, not, neg, and multiplications and divisions of rax. */
static void note_unary(const struct code_form *form, struct code_effect *effect)
{
    if (form->field == 2 || form->field == 3) {
        change_rm(form, effect);
    } else if (form->field > 3) {
        change_register(effect, ARCH_DWARF_AX);
        if (form->operand_bytes > 1) {
            change_register(effect, ARCH_DWARF_DX);
        }
    }
}

/* Direct jumps and calls; false: they lead to where no target is told from none. */
static bool note_flow(const struct code_form *form, uint64_t next, struct code_effect *effect)
{
    const uint8_t condition = form->opcode & 0xf;
    effect->target = next + (uint64_t)form->number;
    switch ((int)form->class) {
    case CODE_CLASS_JUMP:
        effect->flow = CODE_JUMP;
        break;
    case CODE_CLASS_BRANCH:
        effect->flow = CODE_BRANCH;
        effect->sight = condition == 4   ? CODE_SIGHT_IF_ZERO
                        : condition == 5 ? CODE_SIGHT_IF_NOT_ZERO
                                         : CODE_SIGHT_NONE;
        break;
    default:
        effect->flow = CODE_CALL;
        if (effect->target == next) {
            return false;
        }
        break;
    }
    return effect->target != 0;
}

/* What has no two operands; false: it is not known. */
static bool note_others(const struct code_form *form, uint64_t next, struct code_effect *effect)
{
    switch ((int)form->class) {
    case CODE_CLASS_UNKNOWN:
        return false;
    case CODE_CLASS_TRAP:
        effect->flow = CODE_END;
        break;
    case CODE_CLASS_RETURN:
        effect->flow = CODE_RETURN;
        break;
    case CODE_CLASS_CALL:
    case CODE_CLASS_JUMP:
    case CODE_CLASS_BRANCH:
        return note_flow(form, next, effect);
    case CODE_CLASS_LEAVE:
        effect->action = CODE_LEAVE;
        break;
    case CODE_CLASS_PUSH:
        set_action(effect, CODE_PUSH, CODE_REGISTER_NONE, form->rm, 0);
        break;
    case CODE_CLASS_POP:
        set_action(effect, CODE_POP, form->rm, CODE_REGISTER_NONE, 0);
        break;
    case CODE_CLASS_PUSH_NUMBER:
        set_action(effect, CODE_PUSH, CODE_REGISTER_NONE, CODE_REGISTER_NONE, 0);
        break;
    case CODE_CLASS_WIDEN:
        change_register(effect, ARCH_DWARF_AX);
        break;
    case CODE_CLASS_WIDEN_UP:
        change_register(effect, ARCH_DWARF_DX);
        break;
    case CODE_CLASS_SWAP:
        change_register(effect, form->rm);
        break;
    case CODE_CLASS_ADDRESS:
        note_address(form, next, effect);
        break;
    case CODE_CLASS_UNARY:
        note_unary(form, effect);
        break;
    case CODE_CLASS_STEP:
        note_step(form, effect);
        break;
    case CODE_CLASS_BIT:
        if (form->field > 4) {
            change_rm(form, effect);
        }
        break;
    case CODE_CLASS_SHIFT:
    case CODE_CLASS_TO_RM:
        change_rm(form, effect);
        break;
    case CODE_CLASS_TO_REG:
    case CODE_CLASS_TO_REG_OF_REG:
        change_register(effect, form->reg);
        break;
    case CODE_CLASS_STORE:
    case CODE_CLASS_STORE_TO_MEMORY:
        if (form->is_memory) {
            change_memory(form, effect);
        }
        break;
    default:
        break;
    }
    return true;
}

bool code_form_effect(const struct code_form *form, uint64_t address, struct code_effect *ret)
{
    struct code_effect effect = {.bytes = form->bytes, .flow = CODE_NEXT};
    struct operands operands;
    if (find_operands(form, &operands)) {
        note_operands(form, &operands, &effect);
    } else if (!note_others(form, address + form->bytes, &effect)) {
        return false;
    }
    *ret = effect;
    return true;
}
