/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All wanted addresses go through the file together: of each unit that holds some, the tree is
 * walked once (lines_scopes.c) and the line table built once, in which the addresses are then
 * looked up by halving. Units that hold none cost a look at their first entry.
 *
 * libdw makes over 100 bytes of each row of a line table, and a row may be one byte of the file,
 * so what it is let read is bounded: units beyond that have functions, but no lines.
 */
#include "lines_dwarf.h"

#include "cleanup.h"
#include "grow.h"
#include "lines_scopes.h"

#include <gelf.h>

#include <stdbool.h>
#include <string.h>

#define WORK_PER_BYTE   16
#define WORK_MIN        (UINT64_C(1) << 20)
#define LINE_UNIT_BYTES (UINT64_C(4) << 20)
#define LINE_BYTES      (UINT64_C(32) << 20)
#define LONG_LENGTH     UINT32_MAX /* the length that follows has 64 bits */

struct reading {
    struct lines_walk walk;
    struct inlines *table;       /* borrowed */
    const uint8_t *line_section; /* borrowed; NULL: there is none */
    uint64_t line_section_bytes;
    uint64_t line_left_bytes; /* of what libdw is let read */
    bool *is_claimed;         /* owned; by address: a unit has it */
    size_t *claimed;          /* owned; the addresses of the unit at hand */
    size_t claimed_count;
};

static void reading_done(struct reading *reading)
{
    free(reading->walk.nodes);
    free(reading->is_claimed);
    free(reading->claimed);
}

/* Finds .debug_line, and how many bytes there are of everything. Of two sections that may be it,
 * neither is: libdw could read the other one. */
static void read_sections(struct reading *reading, Elf *elf)
{
    uint64_t sum_bytes = 0;
    size_t line_count = 0;
    size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) {
        return;
    }
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        const char *name = NULL;
        if (gelf_getshdr(section, &header) == NULL || header.sh_type == SHT_NOBITS ||
            (name = elf_strptr(elf, names, header.sh_name)) == NULL ||
            strstr(name, "debug_") == NULL) {
            continue;
        }
        sum_bytes += header.sh_size;
        if (strstr(name, "debug_line") != NULL && strstr(name, "debug_line_str") == NULL) {
            const Elf_Data *data = line_count++ == 0 ? elf_getdata(section, NULL) : NULL;
            reading->line_section = data == NULL ? NULL : data->d_buf;
            reading->line_section_bytes = data == NULL ? 0 : data->d_size;
        }
    }
    reading->walk.work_left = WORK_MIN + WORK_PER_BYTE * sum_bytes;
}

/* How many bytes the unit's line table is made from; UINT64_MAX where that cannot be told. */
static uint64_t line_table_bytes(const struct reading *reading, Dwarf_Die *unit)
{
    Dwarf_Attribute attribute;
    Dwarf_Word offset = 0;
    uint32_t length = 0;
    if (reading->line_section == NULL ||
        dwarf_formudata(dwarf_attr(unit, DW_AT_stmt_list, &attribute), &offset) != 0 ||
        reading->line_section_bytes < sizeof length ||
        offset > reading->line_section_bytes - sizeof length) {
        return UINT64_MAX;
    }
    memcpy(&length, reading->line_section + offset, sizeof length);
    return length == LONG_LENGTH ? UINT64_MAX : length;
}

/* Whether the unit's line table may be asked for; what it costs is noted. */
static bool allow_lines(struct reading *reading, Dwarf_Die *unit)
{
    uint64_t size_bytes = line_table_bytes(reading, unit);
    if (size_bytes > LINE_UNIT_BYTES || size_bytes > reading->line_left_bytes) {
        return false;
    }
    reading->line_left_bytes -= size_bytes;
    return true;
}

/* Where the address is in the unit's line table. */
static int find_line(struct reading *reading, Dwarf_Die *unit, uint64_t vaddr,
                     struct inline_frame *frame)
{
    Dwarf_Line *line = dwarf_getsrc_die(unit, vaddr);
    int number = 0;
    if (line == NULL || dwarf_lineno(line, &number) != 0 || number <= 0) {
        return 0;
    }
    frame->line = (uint32_t)number;
    return lines_add_path(&reading->walk, dwarf_linesrc(line, NULL, NULL), &frame->file);
}

/* Adds the frames of an address: its functions from the innermost outward, each where it was. */
static int add_chain(struct reading *reading, Dwarf_Die *unit, struct lines_address *address,
                     bool has_lines)
{
    struct inlines *table = reading->table;
    struct inline_frame frame = {.name = INTERN_NONE, .file = INTERN_NONE};
    size_t first = table->frame_count;
    uint32_t node = address->node;
    int r = has_lines ? find_line(reading, unit, address->vaddr, &frame) : 0;
    if (r < 0 || (node == INTERN_NONE && frame.file == INTERN_NONE)) {
        return r;
    }
    do {
        if (table->frame_count - first >= LINES_CHAIN_COUNT_MAX ||
            table->frame_count >= LINES_FRAME_COUNT_MAX) {
            return -EBADMSG;
        }
        if (grow(table->frames, table->frame_capacity, table->frame_count + 1) < 0) {
            return -ENOMEM;
        }
        const struct lines_node *function = node == INTERN_NONE ? NULL : &reading->walk.nodes[node];
        frame.name = function == NULL ? INTERN_NONE : function->name;
        table->frames[table->frame_count++] = frame;
        node = function == NULL ? INTERN_NONE : function->outer;
        if (function != NULL) {
            frame.file = function->call_file;
            frame.line = function->call_line;
        }
    } while (node != INTERN_NONE);
    address->chain.first = (uint32_t)first;
    address->chain.count = (uint32_t)(table->frame_count - first);
    return 0;
}

/* Marks the addresses that the unit's ranges hold and no unit before. */
static int claim_addresses(struct reading *reading, Dwarf_Die *unit)
{
    struct lines_walk *walk = &reading->walk;
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    ptrdiff_t offset = 0;
    reading->claimed_count = 0;
    while ((offset = dwarf_ranges(unit, offset, &base, &start, &end)) > 0) {
        size_t i = start == 0 ? walk->address_count : lines_find_address(walk, start);
        for (; i < walk->address_count && walk->addresses[i].vaddr < end; i++) {
            if (!reading->is_claimed[i]) {
                reading->is_claimed[i] = true;
                reading->claimed[reading->claimed_count++] = i;
            }
            walk->work_left -= walk->work_left > 0;
        }
        walk->work_left -= walk->work_left > 0;
        if (walk->work_left == 0) {
            return -EBADMSG;
        }
    }
    return 0;
}

static int read_unit(struct reading *reading, Dwarf_Die *unit)
{
    struct lines_walk *walk = &reading->walk;
    int r = claim_addresses(reading, unit);
    if (r < 0 || reading->claimed_count == 0) {
        return r;
    }
    bool has_lines = allow_lines(reading, unit);
    Dwarf_Attribute attribute;
    walk->folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    walk->dead_end = 0;
    walk->has_files = has_lines;
    r = lines_scopes_read(walk, unit);
    for (size_t i = 0; i < reading->claimed_count && r == 0; i++) {
        struct lines_address *address = &walk->addresses[reading->claimed[i]];
        r = add_chain(reading, unit, address, has_lines && address->vaddr >= walk->dead_end);
    }
    return r;
}

int lines_dwarf_read(Dwarf *dwarf, struct lines_address *addresses, size_t address_count,
                     struct intern *texts, struct inlines *table)
{
    cleanup_(reading_done) struct reading reading = {
        .walk = {.addresses = addresses, .address_count = address_count, .texts = texts},
        .table = table,
        .line_left_bytes = LINE_BYTES,
        .is_claimed = calloc(address_count + 1, sizeof *reading.is_claimed),
        .claimed = calloc(address_count + 1, sizeof *reading.claimed),
    };
    if (reading.is_claimed == NULL || reading.claimed == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < address_count; i++) {
        addresses[i].chain = (struct inline_chain){0};
        addresses[i].scope = 0;
        addresses[i].node = INTERN_NONE;
    }
    read_sections(&reading, dwarf_getelf(dwarf));
    Dwarf_CU *unit = NULL;
    Dwarf_Die entry;
    int r = 0;
    int next = 0;
    while (r == 0 && (next = dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &entry, NULL)) == 0) {
        int tag = dwarf_tag(&entry);
        if (tag == DW_TAG_compile_unit || tag == DW_TAG_skeleton_unit) {
            r = read_unit(&reading, &entry);
        }
    }
    return r == 0 && next < 0 ? -EBADMSG : r;
}
