/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sorted list of addresses at which functions begin. The target of a call is a function, if what
 * was decoded is one, and so is a symbol of that type with a size. Another symbol may be a label
 * inside of a function, and so may what a pointer leads to; it counts as a start only if its own
 * return says so. What Go's table lists is called for certain: Go's runtime unwinds by that table.
 * An entry of a lazy procedure linkage table has two starts: the jump through its slot leads to the
 * code behind it at first.
 */
#include "code_starts.h"

#include "arch_x86_64.h"
#include "array.h"
#include "cfi_format.h"
#include "cleanup.h"
#include "elf_go.h"
#include "elf_pointers.h"
#include "segments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STARTS_MAX       ((size_t)4 << 20)
#define BLOCKS           64 /* as many as a word has bits */
#define GAPS_BYTES_MAX   ((uint64_t)1 << 20)
#define GAP_SHIFT_MIN    4 /* most functions begin at a multiple of so many bytes */
#define PLT_ENTRY_BYTES  16
#define PLT_ENTRY_SMALL  8
#define PLT_JUMP_BYTES   6 /* jmp *DISTANCE(%rip) */
#define PLT_DIRECT_JUMP  0xe9
#define PLT_DIRECT_BYTES 5

/* Small: a hostile file has millions of them. */
struct start {
    uint64_t address; /* first: they are sorted by it */
    uint32_t bytes;   /* 0: unknown; no more are told of more */
    uint8_t kind;
    bool is_pointed; /* a pointer leads there */
};

struct code_starts {
    struct start *all;
    size_t count;
    size_t capacity;
};

struct reading {
    struct code_starts *starts;
    struct code_pointers *pointers;
    const struct cfi_table *table;
    const struct code_stretch *stretches; /* NULL: all */
    size_t stretch_count;
    /* Most addresses lie in none of them: which of the blocks from `low` on has a part of one. */
    uint64_t blocks;
    uint64_t low;
    unsigned int block_shift; /* a block's size, as a power of 2 */
    /* Without stretches, a bit for each block of the table's pages: there is a byte in it that no
     * row covers. Few addresses are in such a block, and only these are looked up. */
    uint8_t *gaps; /* owned */
    unsigned int gap_shift;
};

struct code_starts *code_starts_new(void)
{
    return calloc(1, sizeof(struct code_starts));
}

struct code_starts *code_starts_free(struct code_starts *starts)
{
    if (starts != NULL) {
        free(starts->all);
        free(starts);
    }
    return NULL;
}

static int add_start(struct code_starts *starts, const struct start *start)
{
    if (starts->count == STARTS_MAX) {
        return -E2BIG;
    }
    void *all = starts->all;
    int r = array_grow(&all, &starts->capacity, starts->count + 1, sizeof *starts->all);
    starts->all = all;
    if (r == 0) {
        starts->all[starts->count++] = *start;
    }
    return r;
}

int code_starts_add(struct code_starts *starts, uint64_t address, uint64_t bytes,
                    enum code_start kind)
{
    uint64_t known = bytes > UINT64_MAX - address ? 0 : bytes;
    return add_start(starts, &(struct start){
                                 .address = address,
                                 .bytes = known < UINT32_MAX ? (uint32_t)known : UINT32_MAX,
                                 .kind = (uint8_t)kind,
                             });
}

static void mark_blocks(struct reading *reading)
{
    if (reading->stretches == NULL || reading->stretch_count == 0) {
        return;
    }
    const struct code_stretch *last = &reading->stretches[reading->stretch_count - 1];
    reading->low = reading->stretches[0].start;
    while ((last->end - reading->low) >> reading->block_shift >= BLOCKS) {
        reading->block_shift++;
    }
    for (size_t i = 0; i < reading->stretch_count; i++) {
        const struct code_stretch *stretch = &reading->stretches[i];
        uint64_t end = (stretch->end - reading->low) >> reading->block_shift;
        for (uint64_t at = (stretch->start - reading->low) >> reading->block_shift; at <= end;
             at++) {
            reading->blocks |= UINT64_C(1) << at;
        }
    }
}

static int find_gaps(struct reading *reading)
{
    const struct cfi_table *table = reading->table;
    const uint64_t end = table->base + table->page_count * CFI_PAGE_BYTES;
    reading->gap_shift = GAP_SHIFT_MIN;
    while ((end - table->base) >> reading->gap_shift >= GAPS_BYTES_MAX * 8) {
        reading->gap_shift++;
    }
    reading->gaps = calloc(((end - table->base) >> reading->gap_shift) / 8 + 1, 1);
    if (reading->gaps == NULL) {
        return -ENOMEM;
    }
    struct cfi_span span = cfi_table_span(table, table->base);
    for (; span.row != NULL; span = cfi_table_span_behind(table, &span)) {
        if (!cfi_rule_covers(span.rule)) {
            uint64_t last = (span.end - 1 - table->base) >> reading->gap_shift;
            for (uint64_t at = (span.start - table->base) >> reading->gap_shift; at <= last; at++) {
                reading->gaps[at / 8] |= (uint8_t)(1U << at % 8);
            }
        }
    }
    return 0;
}

static bool is_in_gap(const struct reading *reading, uint64_t address)
{
    const struct cfi_table *table = reading->table;
    uint64_t at = address - table->base;
    bool is_on_page = at < table->page_count * CFI_PAGE_BYTES;
    at >>= reading->gap_shift;
    return !is_on_page || (reading->gaps[at / 8] >> at % 8 & 1) != 0;
}

static bool is_wanted(const struct reading *reading, uint64_t address)
{
    size_t low = 0;
    size_t high = reading->stretch_count;
    uint64_t block = (address - reading->low) >> reading->block_shift;
    if (reading->stretches == NULL) {
        return is_in_gap(reading, address);
    }
    if (block >= BLOCKS || (reading->blocks >> block & 1) == 0) {
        return false;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (reading->stretches[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < reading->stretch_count && reading->stretches[low].start <= address;
}

static bool is_uncovered(const struct reading *reading, uint64_t address)
{
    return is_wanted(reading, address) &&
           segments_find(reading->table->segments, reading->table->segment_count, address) !=
               NULL &&
           !cfi_rule_covers(cfi_table_find(reading->table, address));
}

static int add_uncovered(const struct reading *reading, uint64_t address, uint64_t bytes,
                         enum code_start kind)
{
    return is_uncovered(reading, address) ? code_starts_add(reading->starts, address, bytes, kind)
                                          : 0;
}

void code_pointers_done(struct code_pointers *pointers)
{
    free(pointers->values);
    *pointers = (struct code_pointers){0};
}

/* Notes one, as long as there is room for all. */
static void note_pointer(struct code_pointers *pointers, uint64_t value)
{
    void *values = pointers->values;
    pointers->is_whole =
        pointers->is_whole && pointers->count < CODE_POINTERS_MAX &&
        array_grow(&values, &pointers->capacity, pointers->count + 1, sizeof value) == 0;
    pointers->values = values;
    if (pointers->is_whole) {
        pointers->values[pointers->count++] = value;
    }
}

static int add_pointer(const struct reading *reading, uint64_t value)
{
    const struct start start = {.address = value, .kind = CODE_START_LABEL, .is_pointed = true};
    return is_uncovered(reading, value) ? add_start(reading->starts, &start) : 0;
}

static int on_pointer(uint64_t place, uint64_t value, void *userdata)
{
    const struct reading *reading = userdata;
    (void)place;
    note_pointer(reading->pointers, value);
    int r = add_pointer(reading, value);
    reading->pointers->is_whole = reading->pointers->is_whole && r == 0;
    return r;
}

/* Of the file, or as they were noted when it was read before. */
static int add_pointers(const struct reading *reading, const struct elf_file *file)
{
    struct code_pointers *pointers = reading->pointers;
    int r = 0;
    if (!pointers->is_whole) {
        code_pointers_done(pointers);
        pointers->is_whole = true;
        struct reading noting = *reading;
        pointers->result = elf_pointers_to_code(file, on_pointer, &noting);
        return pointers->result;
    }
    for (size_t i = 0; r == 0 && i < pointers->count; i++) {
        r = add_pointer(reading, pointers->values[i]);
    }
    return r == 0 ? pointers->result : r;
}

static int on_symbol(const GElf_Sym *symbol, const char *name, void *userdata)
{
    (void)name;
    unsigned char type = GELF_ST_TYPE(symbol->st_info);
    bool is_function = (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_size > 0;
    if (symbol->st_shndx == SHN_UNDEF ||
        (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)) {
        return 0;
    }
    return add_uncovered(userdata, symbol->st_value, is_function ? symbol->st_size : 0,
                         is_function ? CODE_START_FUNCTION : CODE_START_LABEL);
}

static int on_go_function(const struct go_function *function, void *userdata)
{
    return add_uncovered(userdata, function->start, function->end - function->start,
                         CODE_START_CALLED);
}

/* Whether one of the entries jumps to the first, which so is not called, but gone on with. */
static bool has_common_entry(const uint8_t *code, size_t bytes)
{
    for (size_t at = 0; at + PLT_DIRECT_BYTES <= bytes; at++) {
        int32_t distance = 0;
        memcpy(&distance, code + at + 1, sizeof distance);
        if (code[at] == PLT_DIRECT_JUMP && (int64_t)at + PLT_DIRECT_BYTES + distance == 0) {
            return true;
        }
    }
    return false;
}

/* What is behind the jump through the slot, if that is not the end of the entry; or 0. */
static size_t lazy_half(const uint8_t *entry, size_t bytes)
{
    static const uint8_t jump[] = ARCH_JUMP_THROUGH_SLOT;
    for (size_t at = 0; at + PLT_JUMP_BYTES < bytes; at++) {
        if (memcmp(entry + at, jump, sizeof jump) == 0) {
            return at + PLT_JUMP_BYTES;
        }
    }
    return 0;
}

static int add_linkage(const struct reading *reading, const struct elf_file *file, const char *name)
{
    GElf_Shdr section;
    cleanup_(freep) uint8_t *code = NULL;
    size_t bytes = 0;
    int r = elf_file_code(file, name, &section, &code, &bytes);
    if (code == NULL) {
        return r;
    }
    size_t step = section.sh_entsize == PLT_ENTRY_SMALL ? PLT_ENTRY_SMALL : PLT_ENTRY_BYTES;
    bool common = has_common_entry(code, bytes);
    for (size_t at = common ? step : 0; r == 0 && at + step <= bytes; at += step) {
        size_t lazy = lazy_half(code + at, step);
        r = add_uncovered(reading, section.sh_addr + at, 0, CODE_START_CALLED);
        if (r == 0 && lazy != 0 && common) {
            r = add_uncovered(reading, section.sh_addr + at + lazy, 0, CODE_START_CALLED);
        }
    }
    return r;
}

int code_starts_read(struct code_starts *starts, const struct elf_file *file,
                     const struct cfi_table *table, const struct code_stretch *stretches,
                     size_t stretch_count, struct code_pointers *pointers)
{
    static const char *const linkage[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
    struct reading reading = {
        .starts = starts,
        .pointers = pointers,
        .table = table,
        .stretches = stretches,
        .stretch_count = stretch_count,
    };
    int r = 0;
    if (stretches == NULL) {
        r = find_gaps(&reading);
    } else {
        mark_blocks(&reading);
    }
    if (r < 0) {
        return r;
    }
    r = elf_file_nameless(file, on_symbol, &reading);
    if (r == 0 || r == -EBADMSG) {
        r = elf_go_functions(file, on_go_function, &reading);
    }
    for (size_t i = 0; r == 0 && i < sizeof linkage / sizeof *linkage; i++) {
        r = add_linkage(&reading, file, linkage[i]);
    }
    r = r == 0 ? add_pointers(&reading, file) : r;
    free(reading.gaps);
    return r;
}

int code_starts_sort(struct code_starts *starts)
{
    struct start *all = starts->all;
    size_t count = 0;
    int r = array_sort_by_number(all, starts->count, sizeof *all, NULL, NULL);
    /* One at each address has all that is said of it. */
    for (size_t i = 0; r == 0 && i < starts->count; i++) {
        if (count > 0 && all[count - 1].address == all[i].address) {
            struct start *same = &all[count - 1];
            same->kind = same->kind > all[i].kind ? same->kind : all[i].kind;
            same->bytes = same->bytes > all[i].bytes ? same->bytes : all[i].bytes;
            same->is_pointed = same->is_pointed || all[i].is_pointed;
        } else {
            all[count++] = all[i];
        }
    }
    starts->count = r == 0 ? count : starts->count;
    return r;
}

static size_t lower_bound(const struct code_starts *starts, uint64_t address)
{
    size_t low = 0;
    size_t high = starts->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (starts->all[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

enum code_start code_starts_find(const struct code_starts *starts, uint64_t address)
{
    size_t at = lower_bound(starts, address);
    return at < starts->count && starts->all[at].address == address
               ? (enum code_start)starts->all[at].kind
               : CODE_START_NONE;
}

size_t code_starts_number(const struct code_starts *starts, uint64_t address)
{
    return lower_bound(starts, address);
}

uint64_t code_starts_address(const struct code_starts *starts, size_t number)
{
    return number < starts->count ? starts->all[number].address : UINT64_MAX;
}

enum code_start code_starts_kind(const struct code_starts *starts, size_t number)
{
    return (enum code_start)starts->all[number].kind;
}

bool code_starts_is_pointed(const struct code_starts *starts, size_t number)
{
    return starts->all[number].is_pointed;
}

bool code_starts_is_within(const struct code_starts *starts, uint64_t from, uint64_t to)
{
    size_t at = lower_bound(starts, from);
    if (at == starts->count || starts->all[at].address != from) {
        if (at == 0) {
            return false;
        }
        at--;
    }
    const struct start *start = &starts->all[at];
    return start->address <= from && to - start->address < start->bytes;
}
