/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Real files against elfutils, which reads the same sections with code of its own. Neither's words
 * are compared with the other's, but what they mean: each one's rule is evaluated over the same
 * invented registers and memory, and must find the same CFA, return address, rbp and rbx. Of 32-bit
 * files registers have other numbers there, and every value is the lower half.
 */
#include "arch_x86_64.h"
#include "built_tables.h"
#include "eh_frame.h"
#include "entry_code.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <glob.h>
#include <inttypes.h>
#include <sys/auxv.h>

#ifndef ROWS_MAX
#define ROWS_MAX 6000 /* of each file, from a place that changes with it */
#endif
#define RANDOM_COUNT 1500
#define STACK_MAX    32

/* One invented stop of a program. */
struct world {
    uint64_t seed;
    uint64_t registers[ARCH_REGISTERS_COUNT + 1]; /* the last is rip */
    bool is_32bit;
};

enum outcome {
    OUTCOME_NONE,   /* nothing is said of the address */
    OUTCOME_ROOT,   /* the return address is undefined */
    OUTCOME_CALLER, /* `values` are known */
    OUTCOME_CANNOT, /* there is a rule, and it cannot be evaluated */
};

enum column {
    COLUMN_CFA,
    COLUMN_RA,
    COLUMN_BP,
    COLUMN_BX,
    COLUMN_COUNT
};

struct answer {
    enum outcome outcome;
    bool is_signal_frame;
    bool is_known[COLUMN_COUNT]; /* false: nowhere */
    bool is_by_fp[COLUMN_COUNT]; /* rbp leads to the place */
    uint64_t values[COLUMN_COUNT];
};

/* What is compared in one file. */
struct subject {
    const char *path;
    struct cfi_table table;
    Dwarf_CFI *cfi;
    uint64_t entry; /* where the kernel begins, if it is a program */
    struct world world;
    size_t compared_count;
    size_t lost_count;        /* registers that ours cannot express */
    size_t popped_count;      /* whose place GCC gives by rbp when it has popped that */
    size_t unsupported_count; /* rows that ours cannot express */
};

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return value ^ value >> 32;
}

static uint64_t narrow(const struct world *world, uint64_t value)
{
    return world->is_32bit ? (uint32_t)value : value;
}

static uint64_t load(const struct world *world, uint64_t address)
{
    return narrow(world, mix(narrow(world, address) ^ world->seed));
}

/* A machine for the operations that libdw hands out. */
struct evaluation {
    const struct world *world;
    uint64_t cfa;
    uint64_t stack[STACK_MAX];
    size_t depth;
    bool is_value; /* the result is the value itself and not where it is */
};

static bool push(struct evaluation *on, uint64_t value)
{
    if (on->depth == STACK_MAX) {
        return false;
    }
    on->stack[on->depth++] = value;
    return true;
}

static bool push_register(struct evaluation *on, uint64_t number, uint64_t offset)
{
    /* The numbers of the Intel386 ABI: eax, ecx, edx, ebx, esp, ebp, esi, edi, eip. */
    static const uint8_t of_32bit[] = {0, 2, 1, 3, 7, 6, 4, 5, 16};
    if (on->world->is_32bit && number >= sizeof of_32bit) {
        return false;
    }
    number = on->world->is_32bit ? of_32bit[number] : number;
    return number <= ARCH_REGISTERS_COUNT &&
           push(on, narrow(on->world, on->world->registers[number] + offset));
}

static bool combine(struct evaluation *on, uint8_t atom)
{
    if (on->depth < 2) {
        return false;
    }
    uint64_t b = on->stack[--on->depth];
    uint64_t a = on->stack[--on->depth];
    switch (atom) {
    case DW_OP_plus:
        return push(on, narrow(on->world, a + b));
    case DW_OP_minus:
        return push(on, narrow(on->world, a - b));
    case DW_OP_mul:
        return push(on, a * b);
    case DW_OP_and:
        return push(on, a & b);
    case DW_OP_shl:
        return push(on, b < 64 ? a << b : 0);
    case DW_OP_ge:
        return push(on, (int64_t)a >= (int64_t)b);
    default:
        return false;
    }
}

static bool step(struct evaluation *on, const Dwarf_Op *op)
{
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
        return push_register(on, op->atom - (unsigned)DW_OP_breg0, op->number);
    }
    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
        return push(on, op->atom - (unsigned)DW_OP_lit0);
    }
    switch (op->atom) {
    case DW_OP_nop:
        return true;
    case DW_OP_bregx:
        return push_register(on, op->number, op->number2);
    case DW_OP_regx:
        on->is_value = true;
        return push_register(on, op->number, 0);
    case DW_OP_call_frame_cfa:
        return push(on, on->cfa);
    case DW_OP_stack_value:
        on->is_value = true;
        return true;
    case DW_OP_const1u ... DW_OP_consts:
        return push(on, op->number);
    case DW_OP_plus_uconst:
        return push(on, op->number) && combine(on, DW_OP_plus);
    case DW_OP_deref:
        if (on->depth == 0) {
            return false;
        }
        return push(on, load(on->world, on->stack[--on->depth]));
    default:
        return combine(on, op->atom);
    }
}

static bool evaluate(struct evaluation *on, const Dwarf_Op *ops, size_t count, uint64_t *ret)
{
    for (size_t i = 0; i < count; i++) {
        if (!step(on, &ops[i])) {
            return false;
        }
    }
    if (on->depth == 0) {
        return false;
    }
    *ret = on->stack[on->depth - 1];
    return true;
}

/* Whether an expression uses rbp, or ebp. */
static bool is_by_fp(const struct world *world, const Dwarf_Op *ops, size_t count)
{
    const unsigned number = world->is_32bit ? 5 : ARCH_DWARF_BP;
    bool is_found = false;
    for (size_t i = 0; i < count; i++) {
        is_found |= ops[i].atom == DW_OP_breg0 + number ||
                    (ops[i].atom == DW_OP_bregx && ops[i].number == number);
    }
    return is_found;
}

/* A register that rules name, by its number here and in elfutils' answers. */
struct asked {
    int number;
    int number_32bit;
};
static const struct asked asked[COLUMN_COUNT] = {
    [COLUMN_RA] = {ARCH_DWARF_RA, 8},
    [COLUMN_BP] = {ARCH_DWARF_BP, 5},
    [COLUMN_BX] = {ARCH_DWARF_BX, 3},
};

/* One register's value in the caller, as libdw sees it. */
static bool ask_register(Dwarf_Frame *frame, const struct world *world, enum column column,
                         struct answer *answer)
{
    int number = world->is_32bit ? asked[column].number_32bit : asked[column].number;
    Dwarf_Op memory[3];
    Dwarf_Op *ops = NULL;
    size_t count = 0;
    if (dwarf_frame_register(frame, number, memory, &ops, &count) != 0) {
        return false;
    }
    answer->is_known[column] = true;
    if (count == 0) {
        /* Undefined. Of rbx elfutils says so too where nothing is said of it: its list of what the
         * ABI preserves has the number of rax in its place. */
        bool is_undefined = ops == memory && (world->is_32bit || column != COLUMN_BX);
        answer->is_known[column] = !is_undefined;
        answer->values[column] = world->registers[asked[column].number];
        return true;
    }
    answer->is_by_fp[column] = is_by_fp(world, ops, count);
    struct evaluation evaluation = {.world = world, .cfa = answer->values[COLUMN_CFA]};
    if (!evaluate(&evaluation, ops, count, &answer->values[column])) {
        return false;
    }
    if (!evaluation.is_value) {
        answer->values[column] = load(world, answer->values[column]);
    }
    return true;
}

static bool ask_cfa(Dwarf_Frame *frame, const struct world *world, struct answer *answer)
{
    Dwarf_Op *ops = NULL;
    size_t count = 0;
    struct evaluation evaluation = {.world = world};
    if (dwarf_frame_cfa(frame, &ops, &count) != 0) {
        return false;
    }
    answer->is_by_fp[COLUMN_CFA] = is_by_fp(world, ops, count);
    return evaluate(&evaluation, ops, count, &answer->values[COLUMN_CFA]);
}

static struct answer ask_elfutils(const struct subject *subject, uint64_t address,
                                  Dwarf_Addr *ret_end)
{
    struct answer answer = {.outcome = OUTCOME_NONE};
    Dwarf_Frame *frame = NULL;
    if (dwarf_cfi_addrframe(subject->cfi, address, &frame) != 0) {
        return answer;
    }
    cleanup_(freep) Dwarf_Frame *owned = frame;
    Dwarf_Op *ops = NULL;
    size_t count = 0;
    Dwarf_Addr start = 0;
    answer.outcome = OUTCOME_CANNOT;
    int ra = dwarf_frame_info(frame, &start, ret_end, &answer.is_signal_frame);
    Dwarf_Op memory[3];
    int expected_ra = subject->world.is_32bit ? asked[COLUMN_RA].number_32bit : ARCH_DWARF_RA;
    if (ra == expected_ra && dwarf_frame_register(frame, ra, memory, &ops, &count) == 0 &&
        count == 0 && ops == memory) {
        answer.outcome = OUTCOME_ROOT;
    } else if (ra == expected_ra && ask_cfa(frame, &subject->world, &answer) &&
               ask_register(frame, &subject->world, COLUMN_RA, &answer) &&
               ask_register(frame, &subject->world, COLUMN_BP, &answer) &&
               ask_register(frame, &subject->world, COLUMN_BX, &answer)) {
        answer.is_known[COLUMN_CFA] = true;
        answer.outcome = OUTCOME_CALLER;
    }
    return answer;
}

/* Where a rule says that a register is. */
struct place {
    uint8_t saved;
    int32_t offset;
    int number;
};

static bool follow(const struct world *world, const struct place *place, uint64_t cfa,
                   uint64_t *ret)
{
    uint64_t from = cfa;
    switch ((enum cfi_saved)place->saved) {
    case CFI_SAME:
        *ret = world->registers[place->number];
        return true;
    case CFI_LOST:
        return false;
    case CFI_AT_SP:
        from = world->registers[ARCH_DWARF_SP];
        break;
    case CFI_AT_BP:
        from = world->registers[ARCH_DWARF_BP];
        break;
    case CFI_AT_CFA:
        break;
    }
    *ret = load(world, from + (uint64_t)(int64_t)place->offset);
    return true;
}

static struct answer ask_table(const struct subject *subject, uint64_t address)
{
    const struct world *world = &subject->world;
    const struct cfi_rule *rule = cfi_table_find(&subject->table, address);
    struct answer answer = {
        .outcome = OUTCOME_CALLER,
        .is_signal_frame = rule->signal_frame != 0,
        .is_known[COLUMN_CFA] = true,
    };
    uint64_t cfa = world->registers[rule->cfa_register] + (uint64_t)(int64_t)rule->cfa_offset;
    switch ((enum cfi_kind)rule->kind) {
    case CFI_NONE:
        answer.outcome = OUTCOME_NONE;
        return answer;
    case CFI_UNSUPPORTED:
    case CFI_END:
        answer.outcome = OUTCOME_CANNOT;
        return answer;
    case CFI_ROOT:
        answer.outcome = OUTCOME_ROOT;
        return answer;
    case CFI_OFFSET:
    case CFI_SWITCH:
    case CFI_FORK:
        break;
    case CFI_DEREF_INDEX:
        cfa += 8 * world->registers[rule->cfa_index];
        cfa = load(world, cfa) + (uint64_t)(int64_t)rule->cfa_addend;
        break;
    case CFI_DEREF:
        cfa = load(world, cfa) + (uint64_t)(int64_t)rule->cfa_addend;
        break;
    case CFI_PLT:
        cfa += (address & 15) >= (uint64_t)rule->cfa_addend ? (world->is_32bit ? 4 : 8) : 0;
        break;
    }
    const struct place places[COLUMN_COUNT] = {
        [COLUMN_RA] = {rule->ra_saved, rule->ra_offset, ARCH_DWARF_RA},
        [COLUMN_BP] = {rule->bp_saved, rule->bp_offset, ARCH_DWARF_BP},
        [COLUMN_BX] = {rule->bx_saved, rule->bx_offset, ARCH_DWARF_BX},
    };
    cfa = narrow(world, cfa);
    answer.values[COLUMN_CFA] = cfa;
    for (size_t i = COLUMN_RA; i < COLUMN_COUNT; i++) {
        answer.is_known[i] = follow(world, &places[i], cfa, &answer.values[i]);
    }
    return answer;
}

/* A program's entry has no caller, whether its call-frame information says so or is not there. */
static bool is_entry(const struct subject *subject, uint64_t address)
{
    return subject->entry != 0 && address >= subject->entry &&
           address - subject->entry < ENTRY_CODE_BYTES_MAX;
}

/* A thunk of position-independent code without call frames: eight bytes are more than it has. */
static bool is_thunk(const struct subject *subject, uint64_t address)
{
    const struct cfi_span span = cfi_table_span(&subject->table, address);
    return subject->world.is_32bit && span.end - span.start <= 8 && span.rule->kind == CFI_OFFSET &&
           span.rule->cfa_register == ARCH_DWARF_SP && span.rule->cfa_offset == 4;
}

/* Both answer alike, or ours says that it cannot. */
static void compare_at(struct subject *subject, uint64_t address, Dwarf_Addr *ret_end)
{
    static const char *const names[COLUMN_COUNT] = {"CFA", "return address", "rbp", "rbx"};
    subject->world.registers[ARCH_DWARF_RA] = address;
    struct answer theirs = ask_elfutils(subject, address, ret_end);
    struct answer ours = ask_table(subject, address);
    subject->compared_count++;
    if (ours.outcome == OUTCOME_CANNOT && theirs.outcome != OUTCOME_NONE) {
        subject->unsupported_count++;
        return;
    }
    if (ours.outcome == OUTCOME_ROOT && theirs.outcome == OUTCOME_NONE &&
        is_entry(subject, address)) {
        return;
    }
    if (theirs.outcome == OUTCOME_NONE && is_thunk(subject, address)) {
        return;
    }
    if (ours.outcome != theirs.outcome) {
        fail_msg("%s at %" PRIx64 ": outcome %d, by elfutils %d", subject->path, address,
                 ours.outcome, theirs.outcome);
    }
    if (ours.outcome != OUTCOME_CALLER) {
        return;
    }
    assert_int_equal(ours.is_signal_frame, theirs.is_signal_frame);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        bool differs = ours.is_known[i] != theirs.is_known[i] || ours.values[i] != theirs.values[i];
        if (differs && theirs.is_by_fp[i] && !theirs.is_by_fp[COLUMN_CFA]) {
            subject->popped_count++;
        } else if (!ours.is_known[i] && theirs.is_known[i]) {
            subject->lost_count++;
        } else if (differs) {
            fail_msg("%s at %" PRIx64 ": another %s than elfutils'", subject->path, address,
                     names[i]);
        }
    }
}

/* Compares where each of elfutils' rows begins and ends, from `address` on. */
static void compare_rows(struct subject *subject, uint64_t address, uint64_t end)
{
    for (size_t rows = 0; rows < ROWS_MAX && address < end; rows++) {
        Dwarf_Addr next = 0;
        compare_at(subject, address, &next);
        if (next <= address) { /* a gap; functions begin at even addresses, mostly */
            address++;
            continue;
        }
        Dwarf_Addr unused = 0;
        compare_at(subject, next - 1, &unused);
        address = next;
    }
}

static void compare_segment(struct subject *subject, const struct symbol_segment *segment)
{
    uint64_t state = segment->size_bytes;
    uint64_t end = segment->vaddr + segment->size_bytes;
    for (size_t i = 0; i < RANDOM_COUNT; i++) {
        Dwarf_Addr unused = 0;
        state = mix(state + 1);
        compare_at(subject, segment->vaddr + state % segment->size_bytes, &unused);
    }
    compare_rows(subject, segment->vaddr, end);
    compare_rows(subject, segment->vaddr + mix(segment->size_bytes) % segment->size_bytes, end);
}

static void compare_with_elfutils(int fd, const char *path)
{
    struct subject subject = {.path = path, .world = {.seed = mix(strlen(path))}};
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(eh_frame_read(fd, builder), 0);
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    subject.table = made.table;
    subject.world.is_32bit = subject.table.is_32bit;
    for (size_t i = 0; i < ARCH_REGISTERS_COUNT; i++) {
        subject.world.registers[i] = narrow(&subject.world, mix(subject.world.seed + i));
    }

    assert_int_not_equal(elf_version(EV_CURRENT), EV_NONE);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    assert_non_null(elf);
    subject.cfi = dwarf_getcfi_elf(elf);
    GElf_Ehdr header;
    subject.entry = gelf_getehdr(elf, &header) == NULL ? 0 : header.e_entry;
    assert_non_null(subject.cfi);
    for (size_t i = 0; i < subject.table.segment_count; i++) {
        compare_segment(&subject, &subject.table.segments[i]);
    }
    (void)dwarf_cfi_end(subject.cfi);
    (void)elf_end(elf);

    const struct cfi_stats *stats = &subject.table.stats;
    print_message("%s: %zu compared, %zu not supported, %zu registers lost, %zu popped; of %" PRIu64
                  " bytes %" PRIu64 " not supported\n",
                  path, subject.compared_count, subject.unsupported_count, subject.lost_count,
                  subject.popped_count, stats->covered_bytes, stats->unsupported_bytes);
    assert_true(stats->covered_bytes > 0);
    assert_true(stats->unsupported_bytes * 1000 <= stats->covered_bytes);
    assert_true(subject.lost_count * 1000 <= subject.compared_count);
}

/* Compares the files that a pattern finds; gives how many. */
static size_t compare_matches(const char *pattern)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) {
        return 0;
    }
    size_t count = found.gl_pathc;
    for (size_t i = 0; i < count; i++) {
        cleanup_(closep) int fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        compare_with_elfutils(fd, found.gl_pathv[i]);
    }
    globfree(&found);
    return count;
}

static size_t compare_patterns(const char *const *patterns, size_t pattern_count)
{
    size_t count = 0;
    for (size_t i = 0; i < pattern_count; i++) {
        count += compare_matches(patterns[i]);
    }
    return count;
}

static int compare_loaded(struct dl_phdr_info *info, size_t size, void *userdata)
{
    (void)size;
    size_t *count = userdata;
    if (info->dlpi_name[0] == '/') {
        *count += compare_matches(info->dlpi_name);
    }
    return 0;
}

TEST(agrees_on_this_program_and_its_libraries)
{
    size_t count = compare_matches("/proc/self/exe");
    (void)dl_iterate_phdr(compare_loaded, &count);
    assert_true(count >= 3);
}

/* Assembly, C++, interpreters and a compiler, as far as they are installed. */
TEST(agrees_on_programs_of_all_kinds)
{
    static const char *const patterns[] = {
        "/usr/lib/x86_64-linux-gnu/libcrypto.so.[0-9]",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.[0-9]",
        "/usr/bin/python3",
        "/usr/bin/perl",
        "/usr/lib/gcc/x86_64-linux-gnu/[0-9]*/cc1",
        TRUTH_DIR "/f_epilog.truth", /* GCC gives the place of rbp by rbp behind its pop */
    };
    assert_true(compare_patterns(patterns, COUNT_OF(patterns)) > 0);
}

/* Of a C library for 32 bits, C++'s and the dynamic linker, and of programs that are built here. */
TEST(agrees_on_files_of_32_bits)
{
    static const char *const patterns[] = {
        "/usr/lib32/libc.so.6",      "/usr/lib32/libm.so.6",     "/usr/lib32/ld-linux.so.2",
        "/usr/lib32/libstdc++.so.6", "/usr/lib32/libgcc_s.so.1", TRUTH_DIR "/x_drap*.truth",
        TRUTH_DIR "/x_[!d]*.truth", /* x_debug has no .eh_frame */
    };
    if (compare_patterns(patterns, COUNT_OF(patterns)) == 0) {
        skip();
    }
}

TEST(agrees_on_the_vdso)
{
    const Elf64_Ehdr *vdso = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
    if (vdso == NULL) {
        skip();
        return;
    }
    size_t size_bytes = vdso->e_shoff + (size_t)vdso->e_shnum * vdso->e_shentsize;
    cleanup_(closep) int fd = memory_file(vdso, size_bytes);
    compare_with_elfutils(fd, "vdso");
}
