/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Follows each way from a function's first instruction to a return. A register that no instruction
 * on these ways changes has, at each of them, the value that it has after the return, and on which
 * the caller's CFA rests. That also holds for an instruction that another function jumps to, since
 * all ways from it to a return were followed.
 *
 * The code is foreign. The numbers of functions, of instructions of a function, and of all
 * instructions are bounded. Beyond a bound no register is kept, so stacks end there, marked.
 */
#include "kept_registers.h"

#include "array.h"
#include "code_decoder.h"

#include <stdlib.h>
#include <string.h>

#define CALLEES_MAX      4096
#define INSTRUCTIONS_MAX ((size_t)65536)

struct callee {
    uint64_t address; /* first: they are sorted by it */
    uint32_t wanted;  /* a bit for each register */
};

struct kept_instruction {
    uint64_t address; /* first: they are sorted by it */
    uint32_t bytes;
    uint32_t registers;
};

struct kept_registers {
    struct callee callees[CALLEES_MAX];
    size_t callee_count;
    struct kept_instruction *instructions; /* INSTRUCTIONS_MAX of them */
    size_t instruction_count;
};

/* One function that is followed. */
struct way {
    const uint8_t *code;
    size_t bytes;
    uint64_t start;
    uint8_t met[KEPT_BYTES_MAX]; /* 1: an instruction begins there, and is done or waits */
    uint16_t waiting[KEPT_INSTRUCTIONS_MAX]; /* where the flow goes on, from the start */
    size_t waiting_count;
    struct kept_instruction instructions[KEPT_INSTRUCTIONS_MAX];
    size_t instruction_count;
    uint32_t changed; /* a bit for each register */
};

struct kept_registers *kept_registers_new(void)
{
    struct kept_registers *kept = calloc(1, sizeof *kept);
    if (kept == NULL) {
        return NULL;
    }
    kept->instructions = calloc(INSTRUCTIONS_MAX, sizeof *kept->instructions);
    return kept->instructions == NULL ? kept_registers_free(kept) : kept;
}

struct kept_registers *kept_registers_free(struct kept_registers *kept)
{
    if (kept != NULL) {
        free(kept->instructions);
        free(kept);
    }
    return NULL;
}

void kept_registers_want(struct kept_registers *kept, uint64_t callee, unsigned int number)
{
    if (kept->callee_count < CALLEES_MAX) {
        kept->callees[kept->callee_count++] = (struct callee){callee, UINT32_C(1) << number};
    }
}

int kept_registers_sort_callees(struct kept_registers *kept)
{
    size_t count = 0;
    int r = array_sort_by_number(kept->callees, kept->callee_count, sizeof kept->callees[0], NULL,
                                 NULL);
    for (size_t i = 0; r == 0 && i < kept->callee_count; i++) {
        if (count > 0 && kept->callees[count - 1].address == kept->callees[i].address) {
            kept->callees[count - 1].wanted |= kept->callees[i].wanted;
        } else {
            kept->callees[count++] = kept->callees[i];
        }
    }
    kept->callee_count = count;
    return r;
}

bool kept_registers_find_callee(const struct kept_registers *kept, size_t number,
                                uint64_t *ret_callee)
{
    if (number >= kept->callee_count) {
        return false;
    }
    *ret_callee = kept->callees[number].address;
    return true;
}

/* The flow goes on at `at`, from the start. False: that is too far, or too much. */
static bool go_on(struct way *way, uint64_t at)
{
    if (at >= way->bytes) {
        return false;
    }
    if (way->met[at] != 0) {
        return true;
    }
    if (way->waiting_count + way->instruction_count == KEPT_INSTRUCTIONS_MAX) {
        return false;
    }
    way->met[at] = 1;
    way->waiting[way->waiting_count++] = (uint16_t)at;
    return true;
}

static uint32_t changed_registers(const struct code_effect *effect)
{
    bool has_result =
        effect->action == CODE_COPY || effect->action == CODE_LOAD || effect->action == CODE_POP;
    uint32_t result =
        has_result && effect->to < ARCH_REGISTERS_COUNT ? UINT32_C(1) << effect->to : 0;
    return effect->changes | result;
}

/* Follows one instruction. False: what comes after it is not known. */
static bool follow(struct way *way, uint64_t at)
{
    struct code_effect effect = code_decode(way->code + at, way->bytes - at, way->start + at);
    uint64_t target = effect.target - way->start;
    way->instructions[way->instruction_count++] =
        (struct kept_instruction){.address = way->start + at, .bytes = effect.bytes};
    way->changed |= changed_registers(&effect);
    switch ((enum code_flow)effect.flow) {
    case CODE_NEXT:
        return effect.sight != CODE_SIGHT_SYSCALL && go_on(way, at + effect.bytes);
    case CODE_JUMP:
        return go_on(way, target);
    case CODE_BRANCH:
        return go_on(way, at + effect.bytes) && go_on(way, target);
    case CODE_RETURN:
        return true;
    case CODE_CALL:
    case CODE_INDIRECT:
    case CODE_END:
        break;
    }
    return false;
}

/* Keeps the instructions of a function, if there is room for all. */
static void keep(struct kept_registers *kept, const struct way *way, uint32_t registers)
{
    if (registers == 0 || way->instruction_count > INSTRUCTIONS_MAX - kept->instruction_count) {
        return;
    }
    for (size_t i = 0; i < way->instruction_count; i++) {
        struct kept_instruction *instruction = &kept->instructions[kept->instruction_count++];
        *instruction = way->instructions[i];
        instruction->registers = registers;
    }
}

size_t kept_registers_follow(struct kept_registers *kept, size_t number, const uint8_t *code,
                             size_t bytes)
{
    struct way *way = calloc(1, sizeof *way);
    if (way == NULL) {
        return 0;
    }
    way->code = code;
    way->bytes = bytes < KEPT_BYTES_MAX ? bytes : KEPT_BYTES_MAX;
    way->start = kept->callees[number].address;
    bool is_known = go_on(way, 0);
    while (is_known && way->waiting_count > 0) {
        is_known = follow(way, way->waiting[--way->waiting_count]);
    }
    if (is_known) {
        keep(kept, way, kept->callees[number].wanted & CFI_KEPT_REGISTERS & ~way->changed);
    }
    size_t count = way->instruction_count;
    free(way);
    return count;
}

int kept_registers_sort(struct kept_registers *kept)
{
    struct kept_instruction *all = kept->instructions;
    int r = array_sort_by_number(all, kept->instruction_count, sizeof *all, NULL, NULL);
    size_t count = 0;
    for (size_t i = 0; r == 0 && i < kept->instruction_count; i++) {
        if (count > 0 && all[count - 1].address == all[i].address) {
            all[count - 1].registers |= all[i].registers;
        } else {
            all[count++] = all[i];
        }
    }
    kept->instruction_count = count;
    return r;
}

uint32_t kept_registers_find(const struct kept_registers *kept, uint64_t address)
{
    size_t first = 0;
    size_t count = kept->instruction_count;
    if (count == 0 || address < kept->instructions[0].address ||
        address > kept->instructions[count - 1].address) {
        return 0;
    }
    while (count > 0) {
        size_t half = count / 2;
        if (kept->instructions[first + half].address < address) {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    bool is_found = first < kept->instruction_count && kept->instructions[first].address == address;
    return is_found ? kept->instructions[first].registers : 0;
}

int kept_registers_add_rows(const struct kept_registers *kept, const struct cfi_table *table,
                            struct cfi_builder *builder)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < kept->instruction_count; i++) {
        const struct kept_instruction *instruction = &kept->instructions[i];
        struct cfi_span span = cfi_table_span(table, instruction->address);
        struct cfi_rule rule = *span.rule;
        uint64_t end = instruction->address + instruction->bytes;
        if (rule.kind == CFI_OFFSET && rule.signal_frame == 0) {
            rule.kept = instruction->registers;
            end = end < span.end ? end : span.end;
            r = cfi_builder_add(builder, instruction->address, end, &rule);
        }
    }
    return r;
}
