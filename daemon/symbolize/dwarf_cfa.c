/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs call-frame instructions (DWARF 5, 6.4.2). The state is a rule of the table: the columns of
 * the CFA, the return address, rbp and rbx are followed, all others ignored. In the state, CFI_SAME
 * for the return address means that no rule can express it, and CFI_LOST that it is undefined. For
 * rbp and rbx both are CFI_LOST, since the caller can be found without them.
 *
 * A place below rsp has two causes. Compilers do not describe the pops before a return: the CFA
 * falls, and the register, which has the caller's value again, keeps a place that was on the stack
 * in an earlier row. A leaf that saves a register in its red zone has the place below rsp from the
 * first row on, and then uses the register: in such rows it is CFI_LOST. So it is in a return that
 * clang lays before the prologue, whose rows look the same. Where the CFA does not rest on rsp, no
 * row tells the two causes apart, and the first one is assumed.
 *
 * A function that aligns its stack and has room of any size says where registers are by rbp. GCC
 * says so to its end in most of them, though it pops these and rbp. Once the CFA does not rest on
 * rbp any more, such a register has the caller's value again if the CFA rests on rsp. Before that
 * rbp is popped somewhere within the row, and both are CFI_LOST, unless the row is that of a pop
 * alone: then there is a row for each, and the next one says what is restored.
 *
 * Each instruction has at least one byte, and remembered states are bounded, so the cost is bounded
 * by the size of the program. Pure.
 */
#include "dwarf_cfa.h"

#include "arch_x86_64.h"
#include "code_thunks.h"
#include "dwarf_expression.h"

#include <errno.h>

#define REMEMBERED_MAX 32
#define POP_BYTES_MAX  2

/* The upper two bits, with an operand in the lower six; where they are 0, the whole byte. */
enum instruction {
    CFA_ADVANCE = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,

    CFA_NOP = 0x00,
    CFA_SET_LOCATION = 0x01,
    CFA_ADVANCE1 = 0x02,
    CFA_ADVANCE2 = 0x03,
    CFA_ADVANCE4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEFINE = 0x0c,
    CFA_DEFINE_REGISTER = 0x0d,
    CFA_DEFINE_OFFSET = 0x0e,
    CFA_DEFINE_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SIGNED = 0x11,
    CFA_DEFINE_SIGNED = 0x12,
    CFA_DEFINE_OFFSET_SIGNED = 0x13,
    CFA_VALUE_OFFSET = 0x14,
    CFA_VALUE_OFFSET_SIGNED = 0x15,
    CFA_VALUE_EXPRESSION = 0x16,
    CFA_MIPS_ADVANCE8 = 0x1d,
    CFA_GNU_WINDOW_SAVE = 0x2d,
    CFA_GNU_ARGUMENTS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

struct state {
    struct cfi_rule rule;
    /* A bit for rbp and for rbx: in all rows since the register got its rule its place was below
     * rsp, or there was no row yet. */
    uint8_t below;
    bool rests_on_fp; /* the CFA did in a row */
};

#define BELOW_BP   1U
#define BELOW_BX   2U
#define BELOW_BOTH (BELOW_BP | BELOW_BX)

struct machine {
    const struct dwarf_cie *cie;
    struct cfi_builder *builder; /* NULL in a CIE, whose instructions belong to no address */
    struct dwarf_cursor program;
    struct state state;
    struct state remembered[REMEMBERED_MAX];
    size_t remembered_count;
    uint64_t row_start; /* the state holds from here to the location */
    uint64_t location;
    uint64_t end;
    bool saves_result[2]; /* rax and rdx, which no caller expects to be kept */
};

/* True for a place that is certain to lie below rsp. */
static bool is_below_stack(const struct cfi_rule *rule, uint8_t saved, int32_t offset)
{
    if (saved == CFI_AT_CFA) {
        return rule->kind == CFI_OFFSET && rule->cfa_register == ARCH_DWARF_SP &&
               (int64_t)rule->cfa_offset + offset < 0;
    }
    return saved == CFI_AT_SP && offset < 0;
}

/* Goes by a row that is complete: registers that have only had places below rsp are lost. Most rows
 * do without, and are made faster where this is a call. */
__attribute__((noinline)) static void lose_below(struct state *state, struct cfi_rule *row)
{
    if (!is_below_stack(row, row->bp_saved, row->bp_offset)) {
        state->below &= (uint8_t)~BELOW_BP;
    }
    if (!is_below_stack(row, row->bx_saved, row->bx_offset)) {
        state->below &= (uint8_t)~BELOW_BX;
    }
    if ((state->below & BELOW_BP) != 0) {
        row->bp_saved = CFI_LOST;
        row->bp_offset = 0;
    }
    if ((state->below & BELOW_BX) != 0) {
        row->bx_saved = CFI_LOST;
        row->bx_offset = 0;
    }
}

/* Whether the CFA is found by rbp, which is the function's own then. */
static bool is_found_by_fp(const struct cfi_rule *rule)
{
    return (rule->kind == CFI_OFFSET || rule->kind == CFI_DEREF) &&
           rule->cfa_register == ARCH_DWARF_BP;
}

static void leave_place(uint8_t *saved, int32_t *offset, bool is_popped)
{
    if (*saved == CFI_AT_BP) {
        *saved = is_popped ? CFI_SAME : CFI_LOST;
        *offset = 0;
    }
}

/* Goes by a row of so many bytes, behind those in which the CFA was found by rbp. */
static void leave_frame(struct cfi_rule *row, uint64_t bytes)
{
    bool is_popped = row->kind == CFI_OFFSET && row->cfa_register == ARCH_DWARF_SP;
    if (is_popped || bytes > POP_BYTES_MAX) {
        leave_place(&row->bp_saved, &row->bp_offset, is_popped);
        leave_place(&row->bx_saved, &row->bx_offset, is_popped);
    }
}

/* The row for a state: one that a lookup can follow, a root's, or CFI_UNSUPPORTED. */
static struct cfi_rule make_row(const struct dwarf_cie *cie, struct state *state, uint64_t bytes)
{
    if (state->rule.ra_saved == CFI_LOST) {
        return (struct cfi_rule){.kind = CFI_ROOT};
    }
    if (state->rule.ra_saved != CFI_AT_CFA && state->rule.ra_saved != CFI_AT_SP) {
        return (struct cfi_rule){.kind = CFI_UNSUPPORTED};
    }
    struct cfi_rule row = state->rule;
    if (state->below != 0) {
        lose_below(state, &row);
    }
    if (is_found_by_fp(&row)) {
        state->rests_on_fp = true;
    } else if (state->rests_on_fp) {
        leave_frame(&row, bytes);
    }
    row.keeps_fp = cie->keeps_fp && row.kind == CFI_OFFSET && row.cfa_register == ARCH_DWARF_SP &&
                   row.cfa_offset >= ARCH_FRAME_CFA_OFFSET;
    return row;
}

/* Adds the row that ends here, if it has not been. */
static int add_row(struct machine *machine)
{
    if (machine->row_start == machine->location) {
        return 0;
    }
    const struct cfi_rule row =
        make_row(machine->cie, &machine->state, machine->location - machine->row_start);
    int r = cfi_builder_add(machine->builder, machine->row_start, machine->location, &row);
    machine->row_start = machine->location;
    return r;
}

static int advance_to(struct machine *machine, uint64_t location)
{
    if (machine->builder == NULL || location < machine->location) {
        return -EBADMSG;
    }
    machine->location = location < machine->end ? location : machine->end;
    return 0;
}

static int advance_by(struct machine *machine, uint64_t units)
{
    uint64_t location = 0;
    if (__builtin_mul_overflow(units, machine->cie->code_align, &location) ||
        __builtin_add_overflow(location, machine->location, &location)) {
        location = UINT64_MAX;
    }
    return advance_to(machine, location);
}

static int read_and_advance(struct machine *machine, size_t operand_bytes)
{
    uint64_t units = 0;
    if (!dwarf_read_unsigned(&machine->program, operand_bytes, &units)) {
        return -EBADMSG;
    }
    return advance_by(machine, units);
}

static int set_location(struct machine *machine)
{
    uint64_t location = 0;
    if (!dwarf_read_pointer(&machine->program, machine->cie->pointer_encoding,
                            machine->cie->data_address, &location)) {
        return -EBADMSG;
    }
    return advance_to(machine, location);
}

/* Gives rbp or rbx a place, which is not new where it is the same. */
static void move_place(struct state *state, uint8_t bit, uint8_t *saved, int32_t *offset,
                       uint8_t new_saved, int32_t new_offset)
{
    if (*saved != new_saved || *offset != new_offset) {
        state->below |= bit;
        *saved = new_saved;
        *offset = new_offset;
    }
}

/* Says where a register is, if it is one that is followed. */
static void set_place(struct state *state, uint64_t column, enum cfi_saved saved, int64_t offset)
{
    struct cfi_rule *rule = &state->rule;
    bool is_memory = saved == CFI_AT_CFA || saved == CFI_AT_SP || saved == CFI_AT_BP;
    bool fits = !is_memory || offset == (int32_t)offset;
    int32_t kept = is_memory && fits ? (int32_t)offset : 0;
    switch (column) {
    case ARCH_DWARF_RA:
        rule->ra_saved = fits ? (uint8_t)saved : CFI_SAME;
        rule->ra_offset = kept;
        break;
    case ARCH_DWARF_BP:
        move_place(state, BELOW_BP, &rule->bp_saved, &rule->bp_offset,
                   fits ? (uint8_t)saved : CFI_LOST, kept);
        break;
    case ARCH_DWARF_BX:
        move_place(state, BELOW_BX, &rule->bx_saved, &rule->bx_offset,
                   fits ? (uint8_t)saved : CFI_LOST, kept);
        break;
    default:
        break;
    }
}

/* For places that no table can express: a value computed, or in another register. */
static void set_unknown(struct state *state, uint64_t column)
{
    set_place(state, column, column == ARCH_DWARF_RA ? CFI_SAME : CFI_LOST, 0);
}

/* A place of the row that held where the function began. */
static void restore_place(struct machine *machine, uint64_t column)
{
    const struct cfi_rule *initial = &machine->cie->initial;
    switch (column) {
    case ARCH_DWARF_RA:
        set_place(&machine->state, column, initial->ra_saved, initial->ra_offset);
        break;
    case ARCH_DWARF_BP:
        set_place(&machine->state, column, initial->bp_saved, initial->bp_offset);
        break;
    case ARCH_DWARF_BX:
        set_place(&machine->state, column, initial->bx_saved, initial->bx_offset);
        break;
    default:
        break;
    }
}

static int64_t scale(const struct machine *machine, int64_t units)
{
    int64_t offset = 0;
    bool overflows = __builtin_mul_overflow(units, machine->cie->data_align, &offset);
    return overflows ? INT64_MAX : offset;
}

static bool read_register(struct machine *machine, uint64_t *ret)
{
    uint64_t number = 0;
    bool is_whole = dwarf_read_uleb(&machine->program, &number);
    *ret = dwarf_register(&machine->program, number);
    return is_whole;
}

/* An offset as it stands, or in units of the CIE's data alignment. */
static bool read_offset(struct machine *machine, bool is_signed, bool is_scaled, int64_t *ret)
{
    uint64_t value = 0;
    int64_t offset = 0;
    if (is_signed) {
        if (!dwarf_read_sleb(&machine->program, &offset)) {
            return false;
        }
    } else {
        if (!dwarf_read_uleb(&machine->program, &value)) {
            return false;
        }
        offset = value <= INT64_MAX ? (int64_t)value : INT64_MAX;
    }
    *ret = is_scaled ? scale(machine, offset) : offset;
    return true;
}

static bool read_expression(struct machine *machine, struct dwarf_cursor *ret)
{
    uint64_t size_bytes = 0;
    return dwarf_read_uleb(&machine->program, &size_bytes) &&
           dwarf_read_block(&machine->program, size_bytes, ret);
}

static void define_cfa(struct cfi_rule *state, uint64_t base_register, int64_t offset)
{
    bool fits = base_register < ARCH_REGISTERS_COUNT && offset == (int32_t)offset;
    state->kind = fits ? CFI_OFFSET : CFI_UNSUPPORTED;
    state->cfa_register = fits ? (uint8_t)base_register : 0;
    state->cfa_offset = fits ? (int32_t)offset : 0;
    state->cfa_addend = 0;
    state->cfa_index = 0;
}

/* Instructions that change one half of a CFA need one that has halves. */
static void define_cfa_register(struct cfi_rule *state, uint64_t base_register)
{
    if (state->kind == CFI_OFFSET) {
        define_cfa(state, base_register, state->cfa_offset);
    } else {
        state->kind = CFI_UNSUPPORTED;
    }
}

static void define_cfa_offset(struct cfi_rule *state, int64_t offset)
{
    if (state->kind == CFI_OFFSET) {
        define_cfa(state, state->cfa_register, offset);
    } else {
        state->kind = CFI_UNSUPPORTED;
    }
}

/* Instructions about the CFA. */
static int run_definition(struct machine *machine, enum instruction instruction)
{
    uint64_t base_register = 0;
    int64_t offset = 0;
    struct dwarf_cursor expression;
    bool is_signed = instruction == CFA_DEFINE_SIGNED || instruction == CFA_DEFINE_OFFSET_SIGNED;
    if (instruction == CFA_DEFINE_EXPRESSION) {
        if (!read_expression(machine, &expression)) {
            return -EBADMSG;
        }
        dwarf_expression_cfa(expression, &machine->state.rule);
        return 0;
    }
    bool has_register = instruction != CFA_DEFINE_OFFSET && instruction != CFA_DEFINE_OFFSET_SIGNED;
    bool has_offset = instruction != CFA_DEFINE_REGISTER;
    if ((has_register && !read_register(machine, &base_register)) ||
        (has_offset && !read_offset(machine, is_signed, is_signed, &offset))) {
        return -EBADMSG;
    }
    if (has_register && has_offset) {
        define_cfa(&machine->state.rule, base_register, offset);
    } else if (has_register) {
        define_cfa_register(&machine->state.rule, base_register);
    } else {
        define_cfa_offset(&machine->state.rule, offset);
    }
    return 0;
}

static int save_at_offset(struct machine *machine, uint64_t column, bool is_signed, bool is_negated)
{
    int64_t offset = 0;
    if (!read_offset(machine, is_signed, true, &offset)) {
        return -EBADMSG;
    }
    if (is_negated) {
        offset = offset == INT64_MIN ? INT64_MAX : -offset;
    }
    set_place(&machine->state, column, CFI_AT_CFA, offset);
    machine->saves_result[0] |= column == ARCH_DWARF_AX;
    machine->saves_result[1] |= column == ARCH_DWARF_DX;
    return 0;
}

static int save_at_expression(struct machine *machine, uint64_t column)
{
    struct dwarf_cursor expression;
    int64_t offset = 0;
    if (!read_expression(machine, &expression)) {
        return -EBADMSG;
    }
    enum cfi_saved saved = dwarf_expression_place(expression, &offset);
    if (saved == CFI_LOST) {
        set_unknown(&machine->state, column);
    } else {
        set_place(&machine->state, column, saved, offset);
    }
    return 0;
}

/* Reads the operand of a rule that cannot be expressed. */
static int skip_rule(struct machine *machine, enum instruction instruction, uint64_t column)
{
    struct dwarf_cursor expression;
    uint64_t other = 0;
    int64_t offset = 0;
    bool is_whole =
        instruction == CFA_VALUE_EXPRESSION ? read_expression(machine, &expression)
        : instruction == CFA_REGISTER
            ? read_register(machine, &other)
            : read_offset(machine, instruction == CFA_VALUE_OFFSET_SIGNED, true, &offset);
    set_unknown(&machine->state, column);
    return is_whole ? 0 : -EBADMSG;
}

/* Instructions about one register, which comes first. */
static int run_register_rule(struct machine *machine, enum instruction instruction)
{
    uint64_t column = 0;
    if (!read_register(machine, &column)) {
        return -EBADMSG;
    }
    switch ((unsigned)instruction) {
    case CFA_RESTORE_EXTENDED:
        restore_place(machine, column);
        return 0;
    case CFA_UNDEFINED:
        set_place(&machine->state, column, CFI_LOST, 0);
        return 0;
    case CFA_SAME_VALUE:
        set_place(&machine->state, column, CFI_SAME, 0);
        return 0;
    case CFA_EXPRESSION:
        return save_at_expression(machine, column);
    case CFA_OFFSET_EXTENDED:
    case CFA_OFFSET_EXTENDED_SIGNED:
        return save_at_offset(machine, column, instruction == CFA_OFFSET_EXTENDED_SIGNED, false);
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        return save_at_offset(machine, column, false, true);
    default:
        return skip_rule(machine, instruction, column);
    }
}

static int remember_state(struct machine *machine)
{
    if (machine->remembered_count == REMEMBERED_MAX) {
        return -EBADMSG;
    }
    machine->remembered[machine->remembered_count++] = machine->state;
    return 0;
}

static int restore_state(struct machine *machine)
{
    if (machine->remembered_count == 0) {
        return -EBADMSG;
    }
    machine->state = machine->remembered[--machine->remembered_count];
    return 0;
}

static int run_extended(struct machine *machine, uint8_t instruction)
{
    uint64_t ignored = 0;
    switch (instruction) {
    case CFA_NOP:
        return 0;
    case CFA_SET_LOCATION:
        return set_location(machine);
    case CFA_ADVANCE1:
        return read_and_advance(machine, 1);
    case CFA_ADVANCE2:
        return read_and_advance(machine, 2);
    case CFA_ADVANCE4:
        return read_and_advance(machine, 4);
    case CFA_MIPS_ADVANCE8:
        return read_and_advance(machine, 8);
    case CFA_REMEMBER_STATE:
        return remember_state(machine);
    case CFA_RESTORE_STATE:
        return restore_state(machine);
    case CFA_DEFINE:
    case CFA_DEFINE_REGISTER:
    case CFA_DEFINE_OFFSET:
    case CFA_DEFINE_EXPRESSION:
    case CFA_DEFINE_SIGNED:
    case CFA_DEFINE_OFFSET_SIGNED:
        return run_definition(machine, instruction);
    case CFA_OFFSET_EXTENDED:
    case CFA_RESTORE_EXTENDED:
    case CFA_UNDEFINED:
    case CFA_SAME_VALUE:
    case CFA_REGISTER:
    case CFA_EXPRESSION:
    case CFA_OFFSET_EXTENDED_SIGNED:
    case CFA_VALUE_OFFSET:
    case CFA_VALUE_OFFSET_SIGNED:
    case CFA_VALUE_EXPRESSION:
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        return run_register_rule(machine, instruction);
    case CFA_GNU_ARGUMENTS_SIZE:
        return dwarf_read_uleb(&machine->program, &ignored) ? 0 : -EBADMSG;
    default: /* CFA_GNU_WINDOW_SAVE, and operations of unknown length */
        return -EBADMSG;
    }
}

/* An instruction that may change the state. */
static int run_change(struct machine *machine, uint8_t byte)
{
    switch (byte & 0xc0) {
    case CFA_OFFSET:
        return save_at_offset(machine, dwarf_register(&machine->program, byte & 0x3f), false,
                              false);
    case CFA_RESTORE:
        restore_place(machine, dwarf_register(&machine->program, byte & 0x3f));
        return 0;
    default:
        return run_extended(machine, byte);
    }
}

static int run_program(struct machine *machine)
{
    uint8_t byte = 0;
    int r = 0;
    while (r == 0 && machine->location < machine->end && dwarf_read_u8(&machine->program, &byte)) {
        bool is_advance = (byte & 0xc0) == CFA_ADVANCE;
        r = is_advance ? advance_by(machine, byte & 0x3f) : add_row(machine);
        if (r == 0 && !is_advance) {
            r = run_change(machine, byte);
        }
    }
    return r;
}

int dwarf_cfa_begin(struct dwarf_cie *cie, struct dwarf_cursor program)
{
    cie->initial = (struct cfi_rule){
        .kind = CFI_UNSUPPORTED,
        .signal_frame = cie->is_signal_frame,
        .ra_saved = CFI_SAME,
    };
    struct machine machine = {
        .cie = cie,
        .program = program,
        .state.rule = cie->initial,
        .end = 1,
    };
    int r = run_program(&machine);
    if (r == 0) {
        cie->initial = machine.state.rule;
    }
    return r;
}

/* Whether the last row is as that of a thunk through which functions return. */
static bool is_return_thunk(const struct machine *machine, uint64_t start, uint64_t end)
{
    const struct cfi_rule *rule = &machine->state.rule;
    uint64_t bytes = end - machine->row_start;
    return machine->row_start - start == CODE_THUNKS_RETURN_AT &&
           bytes >= CODE_THUNKS_RETURN_BYTES &&
           bytes <= CODE_THUNKS_RETURN_BYTES + CODE_THUNKS_TRAP_BYTES && rule->kind == CFI_OFFSET &&
           rule->cfa_register == ARCH_DWARF_SP && rule->cfa_offset == 2 * ARCH_WORD_BYTES &&
           rule->signal_frame == 0;
}

int dwarf_cfa_run(const struct dwarf_cie *cie, struct dwarf_cursor program, uint64_t start,
                  uint64_t end, struct cfi_builder *builder)
{
    struct machine machine;
    machine.cie = cie;
    machine.builder = builder;
    machine.program = program;
    machine.state = (struct state){.rule = cie->initial, .below = BELOW_BOTH};
    machine.remembered_count = 0;
    machine.row_start = start;
    machine.location = start;
    machine.end = end;
    machine.saves_result[0] = false;
    machine.saves_result[1] = false;
    int r = cie->is_supported ? run_program(&machine) : -EBADMSG;
    if (r < 0 && r != -EBADMSG) {
        return r;
    }
    bool is_whole = r == 0;
    if (is_whole) {
        machine.location = end;
    }
    /* They are saved for the handler that the function may go on in, which gets its arguments so.
     */
    bool saves_both = machine.saves_result[0] && machine.saves_result[1];
    if ((saves_both && cie->initial.signal_frame == 0) || is_return_thunk(&machine, start, end)) {
        cfi_builder_resumer(builder, start, end);
    }
    r = add_row(&machine);
    if (r == 0 && !is_whole) {
        static const struct cfi_rule unsupported = {.kind = CFI_UNSUPPORTED};
        r = cfi_builder_add(builder, machine.location, end, &unsupported);
    }
    return r;
}
