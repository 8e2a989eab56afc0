/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds where the code of an entry ends that has no size: at the latest where something else begins
 * of which the file tells. entry_code.c reads the instructions up to there.
 */
#include "cfi_entry.h"

#include "segments.h"

struct border {
    uint64_t start;
    uint64_t end; /* the entry ends there, or before */
};

static void move_border(struct border *border, uint64_t address)
{
    if (address > border->start && address < border->end) {
        border->end = address;
    }
}

/* Where one begins or ends. */
static int on_symbol(const GElf_Sym *symbol, const char *name, void *userdata)
{
    struct border *border = userdata;
    unsigned char type = GELF_ST_TYPE(symbol->st_info);
    bool is_code = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
    (void)name;
    if (is_code && symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS) {
        move_border(border, symbol->st_value);
        move_border(border, symbol->st_size <= UINT64_MAX - symbol->st_value
                                ? symbol->st_value + symbol->st_size
                                : symbol->st_value);
    }
    return 0;
}

static void add_section_end(const struct elf_file *file, struct border *border)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    while ((section = elf_nextscn(file->elf, section)) != NULL) {
        if (gelf_getshdr(section, &header) != NULL && (header.sh_flags & SHF_EXECINSTR) != 0 &&
            header.sh_addr <= border->start && header.sh_size <= UINT64_MAX - header.sh_addr) {
            move_border(border, header.sh_addr + header.sh_size);
        }
    }
}

struct entry_code cfi_entry_measure(const struct elf_file *file, const struct cfi_builder *builder,
                                    uint64_t start)
{
    uint8_t code[ENTRY_CODE_BYTES_MAX];
    const struct symbol_segment *segment =
        segments_find(file->segments, file->segment_count, start);
    if (segment == NULL || cfi_builder_next(builder, start) == start) {
        return (struct entry_code){0};
    }
    uint64_t before = start - segment->vaddr;
    struct border border = {start, segment->vaddr + segment->size_bytes};
    move_border(&border, start + sizeof code);
    move_border(&border, cfi_builder_next(builder, start));
    add_section_end(file, &border);
    /* Without symbols that can be read there are none to end at. */
    (void)elf_file_symbols(file, on_symbol, &border);
    size_t bytes = elf_file_read(file, segment->offset + before, code, border.end - start);
    return entry_code_follow(code, bytes, start, elf_file_machine(file) == ELF_MACHINE_X86_32BIT);
}
