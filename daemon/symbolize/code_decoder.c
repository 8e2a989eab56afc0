/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decodes instructions: the common ones by the tables of code_form, all others by Zydis, whose
 * instructions are turned into their effects here. An effect claims too little rather than
 * too much: a register that an instruction changes in any other way is in `changes`. A store
 * through an index register counts as one without: an array does not begin where a register is
 * saved.
 */
#include "code_decoder.h"

#include "code_form.h"

#include <Zydis/Zydis.h>
#include <sys/syscall.h>

_Static_assert(CODE_REGISTER_NONE < 32, "fits a byte, and is no register");

static ZydisDecoder make_decoder(bool minimal)
{
    ZydisDecoder decoder;
    (void)ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    (void)ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, minimal);
    return decoder;
}

/* DWARF's number of a general register of any width, or CODE_REGISTER_NONE. */
static uint8_t register_number(ZydisRegister name)
{
    static const uint8_t numbers[ARCH_REGISTERS_COUNT] = {
        0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15,
    };
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);
    if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64) {
        return CODE_REGISTER_NONE;
    }
    return numbers[ZydisRegisterGetId(whole) & (ARCH_REGISTERS_COUNT - 1)];
}

static bool is_word_register(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           ZydisRegisterGetClass(operand->reg.value) == ZYDIS_REGCLASS_GPR64;
}

/* Whether it is of the program's own memory, from *(register + constant) on, and near. */
static bool begins_based(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
           ZydisRegisterGetClass(operand->mem.base) == ZYDIS_REGCLASS_GPR64 &&
           operand->mem.segment != ZYDIS_REGISTER_FS && operand->mem.segment != ZYDIS_REGISTER_GS &&
           code_is_near(operand->mem.disp.value);
}

/* Whether it is *(register + constant). */
static bool is_based(const ZydisDecodedOperand *operand)
{
    return begins_based(operand) && operand->mem.index == ZYDIS_REGISTER_NONE;
}

static bool is_written(const ZydisDecodedOperand *operand)
{
    return (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
}

static void set_action(struct code_effect *effect, enum code_action action, uint8_t to,
                       uint8_t from, int64_t offset)
{
    effect->action = (uint8_t)action;
    effect->to = to;
    effect->from = from;
    effect->offset = (int32_t)offset;
}

/* What has no name of its own: the registers it changes, and where it writes. */
static void note_changes(struct code_effect *effect, const ZydisDecodedOperand *operands,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const ZydisDecodedOperand *operand = &operands[i];
        if (!is_written(operand)) {
            continue;
        }
        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            uint8_t number = register_number(operand->reg.value);
            effect->changes |= (uint16_t)(number == CODE_REGISTER_NONE ? 0 : 1U << number);
        } else if (begins_based(operand)) {
            set_action(effect, CODE_STORE, register_number(operand->mem.base), CODE_REGISTER_NONE,
                       operand->mem.disp.value);
            effect->store_bytes = operand->size / 8;
        }
    }
}

/* mov: of a whole register, from a word or to one. Returns whether that is what it is. */
static bool note_move(struct code_effect *effect, const ZydisDecodedOperand *operands)
{
    const ZydisDecodedOperand *to = &operands[0];
    const ZydisDecodedOperand *from = &operands[1];
    if (is_word_register(to) && is_word_register(from)) {
        set_action(effect, CODE_COPY, register_number(to->reg.value),
                   register_number(from->reg.value), 0);
    } else if (is_word_register(to) && is_based(from)) {
        set_action(effect, CODE_LOAD, register_number(to->reg.value),
                   register_number(from->mem.base), from->mem.disp.value);
    } else if (is_based(to) && is_word_register(from)) {
        set_action(effect, CODE_STORE, register_number(to->mem.base),
                   register_number(from->reg.value), to->mem.disp.value);
        effect->store_bytes = CODE_WORD_BYTES;
    } else {
        return false;
    }
    return true;
}

/* lea: of what a register leads to, or of a fixed address. */
static bool note_address(struct code_effect *effect, const ZydisDecodedInstruction *instruction,
                         const ZydisDecodedOperand *operands, uint64_t address)
{
    if (operands[1].mem.base == ZYDIS_REGISTER_RIP) {
        effect->target = address + instruction->length + (uint64_t)operands[1].mem.disp.value;
    }
    if (!is_word_register(&operands[0]) || !is_based(&operands[1])) {
        return false;
    }
    set_action(effect, CODE_COPY, register_number(operands[0].reg.value),
               register_number(operands[1].mem.base), operands[1].mem.disp.value);
    return true;
}

static bool note_sum(struct code_effect *effect, const ZydisDecodedOperand *operands, int sign)
{
    if (!is_word_register(&operands[0]) || operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
        !code_is_near(operands[1].imm.value.s)) {
        return false;
    }
    uint8_t number = register_number(operands[0].reg.value);
    set_action(effect, CODE_COPY, number, number, sign * operands[1].imm.value.s);
    return true;
}

/* push and pop of 8 bytes; the first operand is what goes or comes. */
static bool note_stack(struct code_effect *effect, enum code_action action,
                       const ZydisDecodedInstruction *instruction,
                       const ZydisDecodedOperand *operands)
{
    if (instruction->operand_width != 64) {
        return false;
    }
    bool has_operand = instruction->operand_count_visible > 0;
    uint8_t number = has_operand && is_word_register(&operands[0])
                         ? register_number(operands[0].reg.value)
                         : CODE_REGISTER_NONE;
    if (action == CODE_POP && has_operand && begins_based(&operands[0])) {
        set_action(effect, CODE_MOVE, register_number(operands[0].mem.base), CODE_REGISTER_NONE,
                   operands[0].mem.disp.value);
        effect->store_bytes = CODE_WORD_BYTES;
        return true;
    }
    set_action(effect, action, action == CODE_POP ? number : CODE_REGISTER_NONE,
               action == CODE_PUSH ? number : CODE_REGISTER_NONE, 0);
    return true;
}

/* Whether the instruction is one whose action has a name, which is noted. */
static bool note_action(struct code_effect *effect, const ZydisDecodedInstruction *instruction,
                        const ZydisDecodedOperand *operands, uint64_t address)
{
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
        return note_move(effect, operands);
    case ZYDIS_MNEMONIC_LEA:
        return note_address(effect, instruction, operands, address);
    case ZYDIS_MNEMONIC_ADD:
        return note_sum(effect, operands, 1);
    case ZYDIS_MNEMONIC_SUB:
        return note_sum(effect, operands, -1);
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHFQ:
        return note_stack(effect, CODE_PUSH, instruction, operands);
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_POPFQ:
        return note_stack(effect, CODE_POP, instruction, operands);
    case ZYDIS_MNEMONIC_LEAVE:
        effect->action = CODE_LEAVE;
        return instruction->operand_width == 64;
    default:
        return false;
    }
}

static uint64_t branch_target(const ZydisDecodedInstruction *instruction,
                              const ZydisDecodedOperand *operands, uint64_t address)
{
    bool is_direct =
        operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[0].imm.is_relative;
    return is_direct ? address + instruction->length + operands[0].imm.value.u : 0;
}

/* Whether it is a word at a fixed address, as a jump goes through that leads to another module. */
static bool is_fixed(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
           operand->mem.index == ZYDIS_REGISTER_NONE &&
           (operand->mem.base == ZYDIS_REGISTER_RIP || operand->mem.base == ZYDIS_REGISTER_NONE);
}

/* A call of what stands behind it only brings its own address. */
static void note_call(struct code_effect *effect, uint64_t next)
{
    effect->flow = CODE_CALL;
    if (effect->target == next) {
        effect->flow = CODE_NEXT;
        effect->target = 0;
        set_action(effect, CODE_PUSH, CODE_REGISTER_NONE, CODE_REGISTER_NONE, 0);
    }
}

static void note_jump(struct code_effect *effect, const ZydisDecodedOperand *to)
{
    effect->flow = effect->target != 0 ? CODE_JUMP : is_fixed(to) ? CODE_END : CODE_INDIRECT;
    bool is_table = effect->flow == CODE_INDIRECT && to->type == ZYDIS_OPERAND_TYPE_MEMORY &&
                    to->mem.index != ZYDIS_REGISTER_NONE && to->mem.scale == CODE_WORD_BYTES &&
                    to->mem.disp.value >= INT32_MIN && to->mem.disp.value <= INT32_MAX;
    if (is_table) {
        effect->sight = CODE_SIGHT_TABLE;
        effect->from = register_number(to->mem.base);
        effect->to = register_number(to->mem.index);
        effect->offset = (int32_t)to->mem.disp.value;
    }
}

/* Whether it is one that goes elsewhere, which is noted. */
static bool note_flow(struct code_effect *effect, const ZydisDecodedInstruction *instruction,
                      const ZydisDecodedOperand *operands, uint64_t address)
{
    switch ((int)instruction->meta.category) {
    case ZYDIS_CATEGORY_CALL:
        effect->target = branch_target(instruction, operands, address);
        note_call(effect, address + instruction->length);
        return true;
    case ZYDIS_CATEGORY_COND_BR:
        effect->target = branch_target(instruction, operands, address);
        effect->flow = effect->target == 0 ? CODE_END : CODE_BRANCH;
        note_changes(effect, operands, instruction->operand_count); /* loop counts in rcx */
        return true;
    case ZYDIS_CATEGORY_UNCOND_BR:
        effect->target = branch_target(instruction, operands, address);
        note_jump(effect, &operands[0]);
        return true;
    case ZYDIS_CATEGORY_RET:
        effect->flow =
            instruction->mnemonic == ZYDIS_MNEMONIC_RET && instruction->operand_width == 64
                ? CODE_RETURN
                : CODE_END;
        return true;
    default:
        break;
    }
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
        effect->flow = CODE_END;
        return true;
    default:
        return false;
    }
}

static bool is_same_register(const ZydisDecodedOperand *operands, unsigned int number)
{
    return operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           operands[0].reg.value == operands[1].reg.value && operands[0].size >= 32 &&
           register_number(operands[0].reg.value) == number;
}

/* mov of a constant to what a system call takes for its number. */
static void note_number(struct code_effect *effect, const ZydisDecodedOperand *operands)
{
    if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
        register_number(operands[0].reg.value) != ARCH_DWARF_AX ||
        operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        return;
    }
    uint64_t number = operands[1].imm.value.u;
    if (operands[0].size >= 32 && number == SYS_rt_sigreturn) {
        effect->sight = CODE_SIGHT_SIGRETURN;
    } else if (operands[0].reg.value != ZYDIS_REGISTER_AH &&
               (number == SYS_clone || number == SYS_clone3)) {
        effect->sight = CODE_SIGHT_CLONE;
    }
}

/* What a compiler does with an index before it jumps through a table: of instructions without an
 * action only. */
static void note_index(struct code_effect *effect, const ZydisDecodedInstruction *instruction,
                       const ZydisDecodedOperand *operands)
{
    const ZydisDecodedOperand *from = &operands[1];
    int64_t value = from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? from->imm.value.s : 0;
    bool is_positive = value > 0 && value <= INT32_MAX;
    if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER || effect->action != CODE_NOTHING) {
        return;
    }
    effect->to = register_number(operands[0].reg.value);
    if (effect->to == ARCH_DWARF_SP && from->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        effect->sight = CODE_SIGHT_STACK;
    } else if (instruction->mnemonic == ZYDIS_MNEMONIC_CMP && is_positive) {
        effect->sight = CODE_SIGHT_LIMIT;
        effect->offset = (int32_t)value;
    } else if (instruction->mnemonic == ZYDIS_MNEMONIC_AND && is_positive &&
               (value & (value + 1)) == 0) {
        effect->sight = CODE_SIGHT_MASK;
        effect->offset = (int32_t)value;
    } else if (from->type == ZYDIS_OPERAND_TYPE_REGISTER) {
        effect->sight = CODE_SIGHT_EXTEND;
        effect->from = register_number(from->reg.value);
    } else if (from->type == ZYDIS_OPERAND_TYPE_MEMORY && from->mem.scale == sizeof(int32_t)) {
        effect->sight = CODE_SIGHT_ENTRY;
        effect->from = register_number(from->mem.index);
    }
}

static void note_sight(struct code_effect *effect, const ZydisDecodedInstruction *instruction,
                       const ZydisDecodedOperand *operands)
{
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
        effect->sight = CODE_SIGHT_SYSCALL;
        effect->changes |= 1U << ARCH_DWARF_AX;
        break;
    case ZYDIS_MNEMONIC_MOV:
        note_index(effect, instruction, operands);
        note_number(effect, operands);
        break;
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
        note_index(effect, instruction, operands);
        break;
    case ZYDIS_MNEMONIC_TEST:
        effect->sight =
            is_same_register(operands, ARCH_DWARF_AX) ? CODE_SIGHT_TEST_RESULT : CODE_SIGHT_NONE;
        break;
    case ZYDIS_MNEMONIC_XOR:
        effect->sight =
            is_same_register(operands, ARCH_DWARF_BP) ? CODE_SIGHT_CLEAR_FP : CODE_SIGHT_NONE;
        break;
    case ZYDIS_MNEMONIC_JZ:
        effect->sight = CODE_SIGHT_IF_ZERO;
        break;
    case ZYDIS_MNEMONIC_JNZ:
        effect->sight = CODE_SIGHT_IF_NOT_ZERO;
        break;
    default:
        break;
    }
}

struct code_effect code_decode_any(const uint8_t *code, size_t bytes, uint64_t address)
{
    struct code_effect effect = {.bytes = 1, .flow = CODE_END};
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    const ZydisDecoder decoder = make_decoder(false);
    ZydisDecoderContext context;
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeInstruction(&decoder, &context, code, bytes, &instruction)) ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&decoder, &context, &instruction, operands,
                                                 instruction.operand_count))) {
        return effect;
    }
    effect.bytes = instruction.length;
    effect.flow = CODE_NEXT;
    if (!note_flow(&effect, &instruction, operands, address) &&
        !note_action(&effect, &instruction, operands, address)) {
        effect.action = CODE_NOTHING;
        note_changes(&effect, operands, instruction.operand_count);
    }
    note_sight(&effect, &instruction, operands);
    return effect;
}

struct code_effect code_decode(const uint8_t *code, size_t bytes, uint64_t address)
{
    struct code_form form;
    struct code_effect effect;
    if (code_form_read(code, bytes, &form) && code_form_effect(&form, address, &effect)) {
        return effect;
    }
    return code_decode_any(code, bytes, address);
}

size_t code_skip_any(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *ret_callee)
{
    ZydisDecodedInstruction instruction;
    const ZydisDecoder decoder = make_decoder(true);
    *ret_callee = 0;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code, bytes, &instruction))) {
        return 1;
    }
    bool is_call = instruction.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
                   instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
                   instruction.opcode == 0xe8 && instruction.raw.imm[0].value.s != 0;
    if (is_call) {
        *ret_callee = address + instruction.length + instruction.raw.imm[0].value.u;
    }
    return instruction.length;
}

size_t code_skip(const uint8_t *code, size_t bytes, uint64_t address, uint64_t *ret_callee)
{
    struct code_form form;
    if (!code_form_read(code, bytes, &form)) {
        return code_skip_any(code, bytes, address, ret_callee);
    }
    bool is_call = form.class == CODE_CLASS_CALL && form.number != 0;
    *ret_callee = is_call ? address + form.bytes + (uint64_t)form.number : 0;
    return form.bytes;
}

bool code_is_padding(const uint8_t *code, size_t bytes)
{
    struct code_form form;
    ZydisDecodedInstruction instruction;
    const ZydisDecoder decoder = make_decoder(true);
    for (size_t at = 0; at < bytes; at += instruction.length) {
        /* Some linkers leave zeros, which are an instruction only when there are two of them. */
        if (code[at] == 0) {
            instruction.length = 1;
            continue;
        }
        if (code_form_read(code + at, bytes - at, &form)) {
            if (!code_form_is_filler(&form)) {
                return false;
            }
            instruction.length = form.bytes;
            continue;
        }
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code + at, bytes - at,
                                                        &instruction)) ||
            (instruction.mnemonic != ZYDIS_MNEMONIC_NOP &&
             instruction.mnemonic != ZYDIS_MNEMONIC_INT3 &&
             !(instruction.mnemonic == ZYDIS_MNEMONIC_XCHG && instruction.opcode == 0x90))) {
            return false;
        }
    }
    return true;
}
