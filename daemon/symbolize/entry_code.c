/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Follows the code at an entry in a straight line. An entry ends where flow does not go on: at a
 * jump, or at an instruction that traps behind the last call. It ends before what it calls, which
 * can stand right behind it (musl's does), and before padding behind a call, which then does not
 * return. A conditional jump ahead leads to a part of it.
 *
 * What begins a stack has nothing to return to, so code that comes to a return is a function,
 * unless it has cleared the frame pointer before: an ABI's advice to entries, and what no function
 * does before it has saved the caller's. Then the return is another function's, and the entry ends
 * behind the last call, which did not return.
 *
 * Pure: what else is known of these bytes is the caller's to know.
 */
#include "entry_code.h"

#include <Zydis/Zydis.h>

#define FUNCTION_ALIGN 16

struct walk {
    const uint8_t *code;
    uint64_t address;
    ZydisDecoder decoder;
    size_t end;      /* something else begins there */
    size_t ahead;    /* a conditional jump leads so far, or 0 */
    size_t call_end; /* of the last call since the frame pointer was cleared, or 0 */
    bool fp_is_used; /* for whatever, or saved */
    bool begins_stack;
    bool fp_is_cleared;
};

struct instruction {
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    size_t next; /* where it ends */
};

static bool decode(const struct walk *walk, size_t at, struct instruction *ret)
{
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&walk->decoder, walk->code + at, walk->end - at,
                                             &ret->decoded, ret->operands))) {
        return false;
    }
    ret->next = at + ret->decoded.length;
    return true;
}

/* Where a direct jump or call leads, if that is ahead in the code; else 0. */
static size_t target_ahead(const struct walk *walk, const struct instruction *instruction)
{
    uint64_t target = 0;
    const ZydisDecodedOperand *operand = &instruction->operands[0];
    if (operand->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || !operand->imm.is_relative ||
        !ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(
            &instruction->decoded, operand,
            walk->address + instruction->next - instruction->decoded.length, &target)) ||
        target <= walk->address + instruction->next || target >= walk->address + walk->end) {
        return 0;
    }
    return (size_t)(target - walk->address);
}

static bool is_frame_pointer(ZydisRegister name)
{
    return name == ZYDIS_REGISTER_RBP || name == ZYDIS_REGISTER_EBP;
}

static bool has_frame_pointer(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER ? is_frame_pointer(operand->reg.value)
           : operand->type == ZYDIS_OPERAND_TYPE_MEMORY
               ? is_frame_pointer(operand->mem.base) || is_frame_pointer(operand->mem.index)
               : false;
}

/* xor %rbp, %rbp, or a move of 0. */
static bool clears_frame_pointer(const struct instruction *instruction)
{
    const ZydisDecodedOperand *to = &instruction->operands[0];
    const ZydisDecodedOperand *from = &instruction->operands[1];
    if (to->type != ZYDIS_OPERAND_TYPE_REGISTER || !is_frame_pointer(to->reg.value)) {
        return false;
    }
    return instruction->decoded.mnemonic == ZYDIS_MNEMONIC_XOR
               ? from->type == ZYDIS_OPERAND_TYPE_REGISTER && from->reg.value == to->reg.value
               : instruction->decoded.mnemonic == ZYDIS_MNEMONIC_MOV &&
                     from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && from->imm.value.u == 0;
}

static bool copies_stack_pointer(const struct instruction *instruction)
{
    const ZydisDecodedOperand *to = &instruction->operands[0];
    const ZydisDecodedOperand *from = &instruction->operands[1];
    return instruction->decoded.mnemonic == ZYDIS_MNEMONIC_MOV &&
           to->type == ZYDIS_OPERAND_TYPE_REGISTER && is_frame_pointer(to->reg.value) &&
           from->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           (from->reg.value == ZYDIS_REGISTER_RSP || from->reg.value == ZYDIS_REGISTER_ESP);
}

/* What counts is the first instruction that has to do with the frame pointer. */
static void note_frame_pointer(struct walk *walk, const struct instruction *instruction)
{
    if (!walk->fp_is_used) {
        walk->fp_is_cleared = clears_frame_pointer(instruction);
        walk->begins_stack = walk->fp_is_cleared || copies_stack_pointer(instruction);
    }
    for (size_t i = 0; i < instruction->decoded.operand_count; i++) {
        walk->fp_is_used = walk->fp_is_used || has_frame_pointer(&instruction->operands[i]);
    }
}

/* Whether the room up to the next aligned address is filled by what fills the room between
 * functions. */
static bool is_padded(const struct walk *walk, size_t at)
{
    size_t end = at + (size_t)(-(walk->address + at) % FUNCTION_ALIGN);
    if (end == at || end > walk->end) {
        return false;
    }
    struct instruction filler;
    while (at < end) {
        if (walk->code[at] == 0) {
            at++;
        } else if (decode(walk, at, &filler) && (filler.decoded.mnemonic == ZYDIS_MNEMONIC_NOP ||
                                                 filler.decoded.mnemonic == ZYDIS_MNEMONIC_INT3)) {
            at = filler.next;
        } else {
            return false;
        }
    }
    return true;
}

/* Where flow goes on. */
enum way {
    WAY_ON,
    WAY_CALL,
    WAY_BRANCH,
    WAY_END, /* not behind the instruction */
    WAY_RETURN,
};

static enum way way_of(const ZydisDecodedInstruction *decoded)
{
    switch ((int)decoded->meta.category) {
    case ZYDIS_CATEGORY_CALL:
        return WAY_CALL;
    case ZYDIS_CATEGORY_COND_BR:
        return WAY_BRANCH;
    case ZYDIS_CATEGORY_UNCOND_BR:
        return WAY_END;
    case ZYDIS_CATEGORY_RET:
        return WAY_RETURN;
    default:
        break;
    }
    switch ((int)decoded->mnemonic) {
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
        return WAY_END;
    default:
        return WAY_ON;
    }
}

/* Looks at the instruction at `at`, and says where the next one is; false: the entry ends there. */
static bool step(struct walk *walk, const struct instruction *instruction, enum way way)
{
    size_t target = target_ahead(walk, instruction);
    note_frame_pointer(walk, instruction);
    switch (way) {
    case WAY_CALL:
        walk->end = target != 0 ? target : walk->end;
        walk->call_end = walk->fp_is_cleared ? instruction->next : 0;
        return !is_padded(walk, instruction->next);
    case WAY_BRANCH:
        walk->ahead = target > walk->ahead ? target : walk->ahead;
        return true;
    case WAY_END:
        walk->end = target != 0 ? target : walk->end;
        return walk->ahead >= instruction->next;
    case WAY_ON:
    case WAY_RETURN:
        break;
    }
    return true;
}

struct entry_code entry_code_follow(const uint8_t *code, size_t bytes, uint64_t address,
                                    bool is_32bit)
{
    struct walk walk = {
        .code = code,
        .address = address,
        .end = bytes < ENTRY_CODE_BYTES_MAX ? bytes : ENTRY_CODE_BYTES_MAX,
    };
    struct instruction instruction;
    size_t at = 0;
    (void)ZydisDecoderInit(&walk.decoder,
                           is_32bit ? ZYDIS_MACHINE_MODE_LEGACY_32 : ZYDIS_MACHINE_MODE_LONG_64,
                           is_32bit ? ZYDIS_STACK_WIDTH_32 : ZYDIS_STACK_WIDTH_64);
    for (bool goes_on = true; goes_on && at < walk.end && decode(&walk, at, &instruction);) {
        enum way way = way_of(&instruction.decoded);
        if (way == WAY_RETURN) {
            return (struct entry_code){walk.call_end, walk.begins_stack};
        }
        goes_on = step(&walk, &instruction, way);
        at = instruction.next;
    }
    return (struct entry_code){at, walk.begins_stack};
}
