/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads symbols through libelf. The file is foreign: what libelf hands out is checked once more
 * where it is used as a size or an offset, and the number of sections of each kind that count is
 * one. Only addresses in executable segments become symbols: nothing else can be in a stack.
 * Debugging information and compressed sections are left alone.
 */
#include "elf_symbols.h"

#include "build_id.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTES_BYTES_MAX ((uint64_t)65536)

struct reading {
    Elf *elf;
    int fd;
    uint64_t file_bytes;
    struct symbol_builder *builder;
    struct symbol_segment segments[SYMBOL_TABLE_SEGMENTS_MAX];
    size_t segment_count;
};

/* One symbol section with its names. */
struct symbol_section {
    Elf_Data *symbols;
    size_t symbol_count;
    const char *names;
    size_t names_bytes;
};

static bool is_in_file(const struct reading *reading, uint64_t offset, uint64_t bytes)
{
    return offset <= reading->file_bytes && bytes <= reading->file_bytes - offset;
}

static int read_segment(struct reading *reading, const GElf_Phdr *header)
{
    struct symbol_segment segment = {
        .offset = header->p_offset,
        .vaddr = header->p_vaddr,
        .size_bytes = header->p_filesz,
    };
    if (segment.size_bytes == 0 || segment.offset > UINT64_MAX - segment.size_bytes ||
        segment.vaddr > UINT64_MAX - segment.size_bytes) {
        return 0;
    }
    if (reading->segment_count == SYMBOL_TABLE_SEGMENTS_MAX) {
        return -E2BIG;
    }
    reading->segments[reading->segment_count++] = segment;
    int r = symbol_builder_segment(reading->builder, &segment);
    return r < 0 ? r : symbol_builder_barrier(reading->builder, segment.vaddr + segment.size_bytes);
}

/* Takes the build-id out of a PT_NOTE, where the kernel looks for it too. */
static int read_notes(struct reading *reading, const GElf_Phdr *header, bool *found)
{
    uint64_t bytes = header->p_filesz < NOTES_BYTES_MAX ? header->p_filesz : NOTES_BYTES_MAX;
    if (*found || !is_in_file(reading, header->p_offset, bytes)) {
        return 0;
    }
    uint8_t *notes = malloc(bytes + 1);
    if (notes == NULL) {
        return -ENOMEM;
    }
    const uint8_t *id = NULL;
    size_t id_bytes = 0;
    int r = 0;
    ssize_t got = pread(reading->fd, notes, bytes, (off_t)header->p_offset);
    if (got > 0 && build_id_find(notes, (size_t)got, header->p_align, &id, &id_bytes)) {
        r = symbol_builder_build_id(reading->builder, id, id_bytes);
        *found = true;
    }
    free(notes);
    return r;
}

static int read_program_headers(struct reading *reading)
{
    size_t count = 0;
    if (elf_getphdrnum(reading->elf, &count) != 0) {
        return -EBADMSG;
    }
    bool found_build_id = false;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(reading->elf, (int)i, &header) == NULL) {
            return -EBADMSG;
        }
        int r = 0;
        if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) {
            r = read_segment(reading, &header);
        } else if (header.p_type == PT_NOTE) {
            r = read_notes(reading, &header, &found_build_id);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static bool is_executable(const struct reading *reading, uint64_t vaddr)
{
    for (size_t i = 0; i < reading->segment_count; i++) {
        const struct symbol_segment *segment = &reading->segments[i];
        if (vaddr >= segment->vaddr && vaddr - segment->vaddr < segment->size_bytes) {
            return true;
        }
    }
    return false;
}

/* Assembly labels count as functions only where code is, and not the ones that tools put there. */
static bool is_label_wanted(struct reading *reading, const GElf_Sym *symbol, const char *name)
{
    GElf_Shdr header;
    Elf_Scn *section =
        symbol->st_shndx < SHN_LORESERVE ? elf_getscn(reading->elf, symbol->st_shndx) : NULL;
    return section != NULL && gelf_getshdr(section, &header) != NULL &&
           (header.sh_flags & SHF_EXECINSTR) != 0 && name[0] != '$' && strncmp(name, ".L", 2) != 0;
}

static bool is_wanted(struct reading *reading, const GElf_Sym *symbol, const char *name)
{
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS ||
        symbol->st_shndx == SHN_COMMON || !is_executable(reading, symbol->st_value)) {
        return false;
    }
    switch (GELF_ST_TYPE(symbol->st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
        return true;
    case STT_NOTYPE:
        return is_label_wanted(reading, symbol, name);
    default:
        return false;
    }
}

static int rank_of(const GElf_Sym *symbol)
{
    switch (GELF_ST_BIND(symbol->st_info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
        return 0;
    case STB_WEAK:
        return 1;
    default:
        return 2;
    }
}

static int read_symbols(struct reading *reading, const struct symbol_section *section)
{
    for (size_t i = 1; i < section->symbol_count; i++) {
        GElf_Sym symbol;
        if (gelf_getsym(section->symbols, (int)i, &symbol) == NULL) {
            return -EBADMSG;
        }
        if (symbol.st_name >= section->names_bytes) {
            continue;
        }
        const char *name = section->names + symbol.st_name;
        if (!is_wanted(reading, &symbol, name)) {
            continue;
        }
        int r = symbol_builder_add(reading->builder, symbol.st_value, symbol.st_size,
                                   rank_of(&symbol), name);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* The bytes of a section that lies in the file as it is, or NULL. */
static Elf_Data *section_data(const struct reading *reading, Elf_Scn *section,
                              const GElf_Shdr *header)
{
    if (header->sh_type == SHT_NOBITS || (header->sh_flags & SHF_COMPRESSED) != 0 ||
        !is_in_file(reading, header->sh_offset, header->sh_size)) {
        return NULL;
    }
    Elf_Data *data = elf_getdata(section, NULL);
    return data != NULL && data->d_buf != NULL && data->d_size > 0 ? data : NULL;
}

static int read_symbol_section(struct reading *reading, Elf_Scn *section, const GElf_Shdr *header)
{
    GElf_Shdr names_header;
    Elf_Scn *names_section = elf_getscn(reading->elf, header->sh_link);
    if (names_section == NULL || gelf_getshdr(names_section, &names_header) == NULL ||
        names_header.sh_type != SHT_STRTAB) {
        return -EBADMSG;
    }
    Elf_Data *symbols = section_data(reading, section, header);
    Elf_Data *names = section_data(reading, names_section, &names_header);
    size_t symbol_bytes = gelf_fsize(reading->elf, ELF_T_SYM, 1, EV_CURRENT);
    if (symbols == NULL || names == NULL || symbols->d_type != ELF_T_SYM || symbol_bytes == 0 ||
        symbols->d_size / symbol_bytes > INT32_MAX) {
        return -EBADMSG;
    }

    /* Names after the last NUL have no end. */
    const char *end = memrchr(names->d_buf, '\0', names->d_size);
    struct symbol_section input = {
        .symbols = symbols,
        .symbol_count = symbols->d_size / symbol_bytes,
        .names = names->d_buf,
        .names_bytes = end == NULL ? 0 : (size_t)(end - (const char *)names->d_buf),
    };
    return read_symbols(reading, &input);
}

/* Walks the sections: code ends where one ends, and the first table of each kind is read. */
static int read_sections(struct reading *reading)
{
    bool seen_symtab = false;
    bool seen_dynsym = false;
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(reading->elf, section)) != NULL) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL) {
            return -EBADMSG;
        }
        int r = 0;
        if (header.sh_type == SHT_SYMTAB && !seen_symtab) {
            seen_symtab = true;
            r = read_symbol_section(reading, section, &header);
        } else if (header.sh_type == SHT_DYNSYM && !seen_dynsym) {
            seen_dynsym = true;
            r = read_symbol_section(reading, section, &header);
        } else if ((header.sh_flags & SHF_EXECINSTR) != 0 &&
                   header.sh_addr <= UINT64_MAX - header.sh_size) {
            r = symbol_builder_barrier(reading->builder, header.sh_addr + header.sh_size);
        }
        /* One table that cannot be read leaves the other; no memory leaves nothing. */
        if (r < 0 && r != -EBADMSG) {
            return r;
        }
    }
    return 0;
}

static int read_elf(struct reading *reading)
{
    GElf_Ehdr header;
    if (elf_kind(reading->elf) != ELF_K_ELF || gelf_getehdr(reading->elf, &header) == NULL ||
        (header.e_type != ET_EXEC && header.e_type != ET_DYN)) {
        return -EBADMSG;
    }
    int r = read_program_headers(reading);
    return r < 0 ? r : read_sections(reading);
}

int elf_symbols_read(int fd, struct symbol_builder *builder)
{
    struct stat status;
    if (fstat(fd, &status) < 0) {
        return -errno;
    }
    if (elf_version(EV_CURRENT) == EV_NONE) {
        return -EBADMSG;
    }
    struct reading reading = {
        .elf = elf_begin(fd, ELF_C_READ, NULL),
        .fd = fd,
        .file_bytes = status.st_size < 0 ? 0 : (uint64_t)status.st_size,
        .builder = builder,
    };
    if (reading.elf == NULL) {
        return -EBADMSG;
    }
    symbol_builder_limit(builder, reading.file_bytes);
    int r = read_elf(&reading);
    (void)elf_end(reading.elf);
    return r;
}
