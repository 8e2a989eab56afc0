/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Walks the entries of .eh_frame (Linux Standard Base, 10.6) and .debug_frame (DWARF 5, 6.4.1):
 * CIEs, with what several functions have in common, and FDEs, each with a reference to a CIE before
 * it and the rows of one function. dwarf_cfa.c runs the instructions in both, where rows are
 * wanted.
 *
 * The section is foreign. A walk goes forward only, and an FDE can refer only to a CIE that the
 * walk has passed, so that each byte is read once and CIEs cannot overlap. An entry with broken
 * content is left out; one that does not fit ends the walk. Functions that are read one by one read
 * their CIEs again, of which the caller bounds the bytes. The part of an FDE's range beyond the
 * executable segment in which it begins is left out.
 */
#include "dwarf_entries.h"

#include "arch_x86_64.h"
#include "array.h"
#include "elf_go.h"
#include "segments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_IS_64_BITS UINT64_C(0xffffffff)

/* Go's linker writes this one. For x86-64 no other does, for 32 bits all do. */
#define GO_DATA_ALIGN (-4)

struct cie_entry {
    uint64_t address;
    struct dwarf_cie cie;
};

struct walk {
    const struct dwarf_section *section;
    const struct elf_file *file;
    dwarf_function_fn on_function;
    void *userdata;
    struct cie_entry *cies; /* by rising address */
    size_t cie_count;
    size_t cie_capacity;
};

/* One entry behind its length. */
struct entry {
    uint64_t address;
    struct dwarf_cursor body;
    size_t id_bytes;
};

/* The augmentation's letters, in their order, each with its part of the data. */
static bool read_augmentation_data(struct dwarf_cursor *cursor, const char *letters,
                                   struct dwarf_cie *cie)
{
    uint8_t encoding = 0;
    uint64_t personality = 0;
    for (; *letters != '\0'; letters++) {
        switch (*letters) {
        case 'R':
            if (!dwarf_read_u8(cursor, &cie->pointer_encoding)) {
                return false;
            }
            break;
        case 'L':
            if (!dwarf_read_u8(cursor, &encoding)) {
                return false;
            }
            break;
        case 'P':
            if (!dwarf_read_u8(cursor, &encoding) ||
                (encoding != DWARF_POINTER_OMITTED &&
                 !dwarf_read_pointer(cursor, encoding & (uint8_t)~DWARF_POINTER_INDIRECT,
                                     UINT64_MAX, &personality))) {
                return false;
            }
            break;
        case 'S':
            cie->is_signal_frame = true;
            break;
        case 'B':
            break;
        default: /* the size of the data says where it ends, its meaning is not needed */
            return cie->has_augmentation_size;
        }
    }
    return true;
}

/* From the augmentation string to the initial instructions, which are what is left. */
static bool read_augmentation(struct dwarf_cursor *cursor, const char *letters,
                              struct dwarf_cie *cie)
{
    uint64_t size_bytes = 0;
    struct dwarf_cursor data;
    if (letters[0] != 'z') {
        return read_augmentation_data(cursor, letters, cie);
    }
    cie->has_augmentation_size = true;
    return dwarf_read_uleb(cursor, &size_bytes) && dwarf_read_block(cursor, size_bytes, &data) &&
           read_augmentation_data(&data, letters + 1, cie);
}

/* What stands between version and augmentation data. */
static bool read_alignment(struct dwarf_cursor *cursor, uint8_t version, const char *letters,
                           struct dwarf_cie *cie)
{
    uint64_t ignored = 0;
    uint64_t return_column = 0;
    uint64_t sizes = 0; /* of an address and of a segment selector */
    bool is_old = strcmp(letters, "eh") == 0;
    size_t address_bytes = cursor->is_32bit ? 4 : 8;
    return (!is_old || dwarf_read_unsigned(cursor, address_bytes, &ignored)) &&
           (version < 4 || (dwarf_read_unsigned(cursor, 2, &sizes) && sizes == address_bytes)) &&
           dwarf_read_uleb(cursor, &cie->code_align) && dwarf_read_sleb(cursor, &cie->data_align) &&
           (version == 1 ? dwarf_read_unsigned(cursor, 1, &return_column)
                         : dwarf_read_uleb(cursor, &return_column)) &&
           dwarf_register(cursor, return_column) == ARCH_DWARF_RA &&
           (is_old || read_augmentation(cursor, letters, cie));
}

static bool is_go(const struct walk *walk, const struct dwarf_cie *cie)
{
    const struct dwarf_section *section = walk->section;
    return section->is_debug && cie->data_align == GO_DATA_ALIGN &&
           (!section->content.is_32bit || elf_go_is_linked(walk->file));
}

/*
 * Go's functions keep no register for their caller but rbp, which they save where no instruction
 * says. Where silence otherwise means that a register has its value still, here it means nothing.
 * For 32 bits they have no frame pointer either.
 */
static void follow_go(struct dwarf_cie *cie, bool is_32bit)
{
    cie->initial.bp_saved = CFI_LOST;
    cie->initial.bx_saved = CFI_LOST;
    cie->keeps_fp = !is_32bit;
}

static int add_cie(struct walk *walk, struct dwarf_cursor body, uint64_t address)
{
    void *cies = walk->cies;
    int r = array_grow(&cies, &walk->cie_capacity, walk->cie_count + 1, sizeof(struct cie_entry));
    walk->cies = cies;
    if (r < 0) {
        return r;
    }
    struct cie_entry *entry = &walk->cies[walk->cie_count++];
    *entry = (struct cie_entry){
        .address = address,
        .cie = {.data_address = walk->section->data_address},
    };
    uint8_t version = 0;
    const char *letters = NULL;
    entry->cie.is_supported = dwarf_read_u8(&body, &version) &&
                              (version == 1 || version == 3 || version == 4) &&
                              dwarf_read_string(&body, &letters) &&
                              read_alignment(&body, version, letters, &entry->cie) &&
                              dwarf_cfa_begin(&entry->cie, body) == 0;
    if (is_go(walk, &entry->cie)) {
        follow_go(&entry->cie, body.is_32bit);
    }
    return 0;
}

static const struct dwarf_cie *find_cie(const struct walk *walk, uint64_t address)
{
    size_t low = 0;
    size_t high = walk->cie_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (walk->cies[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && walk->cies[low - 1].address == address ? &walk->cies[low - 1].cie : NULL;
}

static int add_fde(struct walk *walk, struct dwarf_cursor body, const struct dwarf_cie *cie)
{
    uint64_t start = 0;
    uint64_t bytes = 0;
    uint64_t augmentation_bytes = 0;
    struct dwarf_cursor augmentation;
    if (!dwarf_read_pointer(&body, cie->pointer_encoding, cie->data_address, &start) ||
        !dwarf_read_pointer(&body, cie->pointer_encoding & DWARF_POINTER_FORMAT, 0, &bytes)) {
        return 0;
    }
    const struct symbol_segment *segment =
        segments_find(walk->file->segments, walk->file->segment_count, start);
    if (segment == NULL) {
        return 0;
    }
    uint64_t room = segment->size_bytes - (start - segment->vaddr);
    uint64_t end = start + (bytes < room ? bytes : room);
    if (cie->has_augmentation_size &&
        (!dwarf_read_uleb(&body, &augmentation_bytes) ||
         !dwarf_read_block(&body, augmentation_bytes, &augmentation))) {
        return 0;
    }
    return walk->on_function(cie, body, start, end, walk->userdata);
}

/* Reads one entry off the section; false at its end. */
static bool read_entry(const struct dwarf_section *section, struct dwarf_cursor *rest,
                       struct entry *ret)
{
    uint64_t length = 0;
    struct dwarf_cursor ahead = *rest;
    struct entry entry = {.address = rest->address, .id_bytes = 4};
    if (!dwarf_read_unsigned(&ahead, 4, &length)) {
        return false;
    }
    if (length == LENGTH_IS_64_BITS) {
        entry.id_bytes = section->is_debug ? 8 : 4;
        if (!dwarf_read_unsigned(&ahead, 8, &length)) {
            return false;
        }
    }
    if (!dwarf_read_block(&ahead, length, &entry.body)) {
        return false;
    }
    *rest = ahead;
    *ret = entry;
    return true;
}

/* In .eh_frame an FDE says how far before its own place its CIE is, in .debug_frame where. */
static uint64_t cie_address(const struct dwarf_section *section, const struct entry *entry,
                            uint64_t id)
{
    return section->is_debug ? id : entry->body.address - id;
}

static int add_entry(struct walk *walk, const struct entry *entry)
{
    bool is_debug = walk->section->is_debug;
    uint64_t cie_id = !is_debug ? 0 : entry->id_bytes == 4 ? UINT32_MAX : UINT64_MAX;
    struct dwarf_cursor body = entry->body;
    uint64_t id = 0;
    if (!dwarf_read_unsigned(&body, entry->id_bytes, &id)) {
        return 0;
    }
    if (id == cie_id) {
        return add_cie(walk, body, entry->address);
    }
    const struct dwarf_cie *cie = find_cie(walk, cie_address(walk->section, entry, id));
    return cie == NULL ? 0 : add_fde(walk, body, cie);
}

int dwarf_entries_walk(const struct dwarf_section *section, const struct elf_file *file,
                       dwarf_function_fn on_function, void *userdata)
{
    struct walk walk = {
        .section = section,
        .file = file,
        .on_function = on_function,
        .userdata = userdata,
    };
    struct dwarf_cursor rest = section->content;
    struct entry entry;
    int r = 0;
    while (r == 0 && read_entry(section, &rest, &entry) &&
           (entry.body.left > 0 || !section->ends_with_nothing)) {
        r = add_entry(&walk, &entry);
    }
    free(walk.cies);
    return r;
}

static bool read_entry_at(const struct dwarf_section *section, uint64_t address, struct entry *ret)
{
    struct dwarf_cursor rest = section->content;
    struct dwarf_cursor skipped;
    return address >= rest.address && dwarf_read_block(&rest, address - rest.address, &skipped) &&
           read_entry(section, &rest, ret);
}

int dwarf_entries_read(const struct dwarf_section *section, const struct elf_file *file,
                       uint64_t address, uint64_t *left_bytes, dwarf_function_fn on_function,
                       void *userdata)
{
    struct walk walk = {
        .section = section,
        .file = file,
        .on_function = on_function,
        .userdata = userdata,
    };
    struct entry cie;
    struct entry function;
    uint64_t id = 0;
    int r = 0;
    if (!read_entry_at(section, address, &function)) {
        return 0;
    }
    struct dwarf_cursor body = function.body;
    if (dwarf_read_unsigned(&body, function.id_bytes, &id) &&
        read_entry_at(section, cie_address(section, &function, id), &cie)) {
        if (cie.body.left > *left_bytes) {
            return -E2BIG;
        }
        *left_bytes -= cie.body.left;
        r = add_entry(&walk, &cie);
    }
    if (r == 0) {
        r = add_entry(&walk, &function);
    }
    free(walk.cies);
    return r;
}

int dwarf_entries_add_rows(const struct dwarf_cie *cie, struct dwarf_cursor program, uint64_t start,
                           uint64_t end, void *builder)
{
    return dwarf_cfa_run(cie, program, start, end, builder);
}
