/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names the entries of .plt, .plt.sec and .plt.got. Linkers differ in the layout of these sections
 * and in which of them they make. But each entry that is called jumps through a slot of the global
 * offset table, so the code is searched for that jump, in any order. The first entry of a lazy .plt
 * jumps through a slot without a relocation, and gets no name.
 */
#include "elf_plt.h"

#include "arch_x86_64.h"
#include "array.h"
#include "cleanup.h"

#include <string.h>

#define SLOTS_MAX         ((size_t)1 << 20)
#define ENTRY_BYTES_SMALL 8
#define ENTRY_BYTES       16
#define RANK              2 /* whatever else is there has the better name */
#define SUFFIX            "@plt"

struct slot {
    uint64_t address;
    const char *name; /* borrowed from libelf */
};

struct slots {
    struct slot *all;
    size_t count;
    size_t capacity;
};

static int add_slot(struct slots *slots, uint64_t address, const char *name)
{
    void *all = slots->all;
    int r = array_grow(&all, &slots->capacity, slots->count + 1, sizeof *slots->all);
    if (r < 0) {
        return r;
    }
    slots->all = all;
    slots->all[slots->count++] = (struct slot){address, name};
    return 0;
}

static bool fills_function_slot(uint64_t info)
{
    return GELF_R_SYM(info) != 0 &&
           (GELF_R_TYPE(info) == ARCH_RELOC_JUMP_SLOT || GELF_R_TYPE(info) == ARCH_RELOC_GLOB_DAT);
}

/* The slots that one section of relocations fills. */
static int add_slots(const struct elf_file *file, Elf_Scn *section, const GElf_Shdr *header,
                     struct slots *slots)
{
    GElf_Shdr symbols_header;
    Elf_Scn *symbols_section = elf_getscn(file->elf, header->sh_link);
    if (symbols_section == NULL || gelf_getshdr(symbols_section, &symbols_header) == NULL ||
        symbols_header.sh_type != SHT_DYNSYM) {
        return 0;
    }
    Elf_Data *relocations = elf_file_data(file, section, header);
    Elf_Data *symbols = elf_file_data(file, symbols_section, &symbols_header);
    if (relocations == NULL || symbols == NULL || relocations->d_type != ELF_T_RELA ||
        symbols->d_type != ELF_T_SYM) {
        return 0;
    }
    GElf_Rela relocation;
    int r = 0;
    for (int i = 0; r == 0 && slots->count < SLOTS_MAX && i < INT32_MAX &&
                    gelf_getrela(relocations, i, &relocation) != NULL;
         i++) {
        GElf_Sym symbol;
        size_t index = GELF_R_SYM(relocation.r_info);
        if (!fills_function_slot(relocation.r_info) || index > INT32_MAX ||
            gelf_getsym(symbols, (int)index, &symbol) == NULL) {
            continue;
        }
        const char *name = elf_strptr(file->elf, symbols_header.sh_link, symbol.st_name);
        if (name != NULL && name[0] != '\0') {
            r = add_slot(slots, relocation.r_offset, name);
        }
    }
    return r;
}

static bool is_before(const void *a, const void *b, const void *userdata)
{
    (void)userdata;
    return ((const struct slot *)a)->address < ((const struct slot *)b)->address;
}

static int find_slots(const struct elf_file *file, struct slots *slots)
{
    Elf_Scn *section = NULL;
    int r = 0;
    while (r == 0 && (section = elf_nextscn(file->elf, section)) != NULL) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) != NULL && header.sh_type == SHT_RELA) {
            r = add_slots(file, section, &header, slots);
        }
    }
    return r == 0 ? array_sort(slots->all, slots->count, sizeof *slots->all, is_before, NULL) : r;
}

static const char *slot_name(const struct slots *slots, uint64_t address)
{
    size_t low = 0;
    size_t high = slots->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slots->all[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < slots->count && slots->all[low].address == address ? slots->all[low].name : NULL;
}

/* The slot through which the entry at `address` jumps; 0: it does not. */
static uint64_t jump_slot(const uint8_t *entry, size_t bytes, uint64_t address)
{
    static const uint8_t jump[] = ARCH_JUMP_THROUGH_SLOT;
    int32_t distance = 0;
    const size_t jump_bytes = sizeof jump + sizeof distance;
    for (size_t at = 0; at + jump_bytes <= bytes; at++) {
        if (memcmp(entry + at, jump, sizeof jump) == 0) {
            memcpy(&distance, entry + at + sizeof jump, sizeof distance);
            return address + at + jump_bytes + (uint64_t)(int64_t)distance;
        }
    }
    return 0;
}

static int add_entry(struct symbol_builder *builder, uint64_t address, size_t bytes,
                     const char *name)
{
    char text[SYMBOL_NAME_BYTES_MAX + 1];
    const size_t room = sizeof text - sizeof SUFFIX;
    size_t name_bytes = strnlen(name, room);
    memcpy(text, name, name_bytes);
    memcpy(text + name_bytes, SUFFIX, sizeof SUFFIX);
    return symbol_builder_add(builder, address, bytes, RANK, text);
}

static int add_section(const struct elf_file *file, const char *name, const struct slots *slots,
                       struct symbol_builder *builder)
{
    GElf_Shdr section;
    cleanup_(freep) uint8_t *code = NULL;
    size_t bytes = 0;
    int r = elf_file_code(file, name, &section, &code, &bytes);
    if (code == NULL) {
        return r;
    }
    size_t entry_bytes = section.sh_entsize == ENTRY_BYTES_SMALL ? ENTRY_BYTES_SMALL : ENTRY_BYTES;
    for (size_t at = 0; r == 0 && at + entry_bytes <= bytes; at += entry_bytes) {
        uint64_t slot = jump_slot(code + at, entry_bytes, section.sh_addr + at);
        const char *target = slot == 0 ? NULL : slot_name(slots, slot);
        if (target != NULL) {
            r = add_entry(builder, section.sh_addr + at, entry_bytes, target);
        }
    }
    return r;
}

int elf_plt_add(const struct elf_file *file, struct symbol_builder *builder)
{
    static const char *const names[] = {".plt", ".plt.sec", ".plt.got"};
    struct slots slots = {0};
    int r = find_slots(file, &slots);
    for (size_t i = 0; r == 0 && slots.count > 0 && i < sizeof names / sizeof *names; i++) {
        r = add_section(file, names[i], &slots, builder);
    }
    free(slots.all);
    return r;
}
