/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opens ELF files through libelf. Values from libelf are checked once more before they are used as
 * a size or an offset. One symbol section of each kind is read. Compressed sections, and those
 * without bytes in the file, are ignored.
 */
#include "elf_file.h"

#include "build_id.h"
#include "cleanup.h"
#include "segments.h"

#include <string.h>
#include <sys/stat.h>

/* Programs have a dozen of them. In those behind, no address and no type is looked for. */
#define PROGRAM_HEADERS_MAX 64

#define NOTES_BYTES_MAX ((uint64_t)65536) /* of all of them together */
#define CODE_BYTES_MAX  ((uint64_t)16 << 20)

/* Of a table of symbols and of their names: a file with more than five million symbols would keep
 * the others waiting, and can be all holes. */
#define SYMBOLS_BYTES_MAX ((uint64_t)128 << 20)
#define NAMES_BYTES_MAX   ((uint64_t)512 << 20)
#define NAMES_READ_BYTES  ((size_t)4 << 10)

#define SYMBOLS_AHEAD 16

struct symbol_walk {
    const struct elf_file *file;
    bool wants_names;
    elf_symbol_fn on_symbol;
    void *userdata;
};

/* One symbol section with its names. */
struct symbol_section {
    Elf_Data *symbols;
    size_t symbol_count;
    const char *names;  /* NULL: they are not wanted */
    size_t names_bytes; /* names that begin behind them have no end */
};

enum elf_machine elf_file_machine(const struct elf_file *file)
{
    GElf_Ehdr header;
    if (gelf_getehdr(file->elf, &header) == NULL || header.e_ident[EI_DATA] != ELFDATA2LSB) {
        return ELF_MACHINE_OTHER;
    }
    int class = header.e_ident[EI_CLASS];
    if (header.e_machine == EM_X86_64 && class == ELFCLASS64) {
        return ELF_MACHINE_X86_64;
    }
    return header.e_machine == EM_386 && class == ELFCLASS32 ? ELF_MACHINE_X86_32BIT
                                                             : ELF_MACHINE_OTHER;
}

bool elf_file_is_fixed(const struct elf_file *file)
{
    GElf_Ehdr header;
    return gelf_getehdr(file->elf, &header) != NULL && header.e_type == ET_EXEC;
}

bool elf_file_has(const struct elf_file *file, uint64_t offset, uint64_t bytes)
{
    return offset <= file->file_bytes && bytes <= file->file_bytes - offset;
}

size_t elf_file_read(const struct elf_file *file, uint64_t offset, void *buffer, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = pread(file->fd, (char *)buffer + done, bytes - done, (off_t)(offset + done));
        if (got <= 0) {
            break;
        }
        done += (size_t)got;
    }
    return done;
}

static int read_segment(struct elf_file *file, const GElf_Phdr *header)
{
    struct symbol_segment segment = {
        .offset = header->p_offset,
        .vaddr = header->p_vaddr,
        .size_bytes = header->p_filesz,
    };
    if (!segment_is_valid(&segment)) {
        return 0;
    }
    if (file->segment_count == SYMBOL_TABLE_SEGMENTS_MAX) {
        return -E2BIG;
    }
    file->segments[file->segment_count++] = segment;
    return 0;
}

/* Takes the build-id out of a PT_NOTE, where the kernel looks for it too. */
static int read_notes(struct elf_file *file, const GElf_Phdr *header, uint64_t *left_bytes)
{
    uint64_t bytes = header->p_filesz < *left_bytes ? header->p_filesz : *left_bytes;
    if (file->build_id_bytes > 0 || !elf_file_has(file, header->p_offset, bytes)) {
        return 0;
    }
    *left_bytes -= bytes;
    cleanup_(freep) uint8_t *notes = malloc(bytes + 1);
    if (notes == NULL) {
        return -ENOMEM;
    }
    const uint8_t *id = NULL;
    size_t id_bytes = 0;
    size_t got = elf_file_read(file, header->p_offset, notes, bytes);
    if (build_id_find(notes, got, header->p_align, &id, &id_bytes)) {
        memcpy(file->build_id, id, id_bytes);
        file->build_id_bytes = id_bytes;
    }
    return 0;
}

static int read_program_headers(struct elf_file *file)
{
    uint64_t notes_left_bytes = NOTES_BYTES_MAX;
    size_t count = 0;
    if (elf_getphdrnum(file->elf, &count) != 0) {
        return -EBADMSG;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(file->elf, (int)i, &header) == NULL) {
            return -EBADMSG;
        }
        int r = 0;
        if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) {
            r = read_segment(file, &header);
        } else if (header.p_type == PT_NOTE) {
            r = read_notes(file, &header, &notes_left_bytes);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_elf(struct elf_file *file)
{
    GElf_Ehdr header;
    if (elf_kind(file->elf) != ELF_K_ELF || gelf_getehdr(file->elf, &header) == NULL ||
        (header.e_type != ET_EXEC && header.e_type != ET_DYN)) {
        return -EBADMSG;
    }
    return read_program_headers(file);
}

int elf_file_init(struct elf_file *ret, int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0) {
        return -errno;
    }
    if (elf_version(EV_CURRENT) == EV_NONE) {
        return -EBADMSG;
    }
    struct elf_file file = {
        .elf = elf_begin(fd, ELF_C_READ, NULL),
        .fd = fd,
        .file_bytes = status.st_size < 0 ? 0 : (uint64_t)status.st_size,
    };
    if (file.elf == NULL) {
        return -EBADMSG;
    }
    int r = read_elf(&file);
    if (r < 0) {
        (void)elf_end(file.elf);
        return r;
    }
    *ret = file;
    return 0;
}

void elf_file_done(struct elf_file *file)
{
    (void)elf_end(file->elf);
    file->elf = NULL;
}

/* Names lie in any order, and most of a large file's in no cache: they are asked for ahead. */
static void prefetch_name(const struct symbol_section *section, const GElf_Sym *symbols, size_t i)
{
    if (section->names != NULL && i < section->symbol_count &&
        symbols[i].st_name < section->names_bytes) {
        __builtin_prefetch(section->names + symbols[i].st_name);
    }
}

static int call_for_symbols(const struct symbol_walk *walk, const struct symbol_section *section)
{
    /* libelf has turned them into the host's form, which for 64 bits is the general one. */
    const GElf_Sym *symbols =
        gelf_getclass(walk->file->elf) == ELFCLASS64 ? section->symbols->d_buf : NULL;
    for (size_t i = 1; i < section->symbol_count; i++) {
        GElf_Sym symbol;
        if (symbols != NULL) {
            symbol = symbols[i];
            prefetch_name(section, symbols, i + SYMBOLS_AHEAD);
        } else if (gelf_getsym(section->symbols, (int)i, &symbol) == NULL) {
            return -EBADMSG;
        }
        if (symbol.st_name >= section->names_bytes) {
            continue;
        }
        const char *name = section->names == NULL ? NULL : section->names + symbol.st_name;
        int r = walk->on_symbol(&symbol, name, walk->userdata);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* Whether a section lies in the file as it is. */
static bool has_data(const struct elf_file *file, const GElf_Shdr *header)
{
    return header->sh_type != SHT_NOBITS && (header->sh_flags & SHF_COMPRESSED) == 0 &&
           elf_file_has(file, header->sh_offset, header->sh_size);
}

Elf_Data *elf_file_data(const struct elf_file *file, Elf_Scn *section, const GElf_Shdr *header)
{
    if (!has_data(file, header)) {
        return NULL;
    }
    Elf_Data *data = elf_getdata(section, NULL);
    return data != NULL && data->d_buf != NULL && data->d_size > 0 ? data : NULL;
}

/* Names after the last NUL have no end. */
static bool find_names(const struct elf_file *file, Elf_Scn *section, const GElf_Shdr *header,
                       struct symbol_section *ret)
{
    Elf_Data *names = elf_file_data(file, section, header);
    if (names == NULL) {
        return false;
    }
    const char *end = memrchr(names->d_buf, '\0', names->d_size);
    ret->names = names->d_buf;
    ret->names_bytes = end == NULL ? 0 : (size_t)(end - (const char *)names->d_buf);
    return true;
}

/* The same without the names, which mostly are the larger part of what a file has of symbols. */
static bool measure_names(const struct elf_file *file, const GElf_Shdr *header, size_t *ret_bytes)
{
    char names[NAMES_READ_BYTES];
    if (!has_data(file, header) || header->sh_size == 0) {
        return false;
    }
    *ret_bytes = 0;
    const char *end = NULL;
    for (uint64_t left = header->sh_size; left > 0 && end == NULL;) {
        size_t bytes = left < sizeof names ? (size_t)left : sizeof names;
        left -= bytes;
        size_t there = elf_file_read(file, header->sh_offset + left, names, bytes);
        end = memrchr(names, '\0', there);
        *ret_bytes = end == NULL ? 0 : left + (size_t)(end - names);
    }
    return true;
}

static int walk_section(const struct symbol_walk *walk, Elf_Scn *section, const GElf_Shdr *header)
{
    const struct elf_file *file = walk->file;
    GElf_Shdr names_header;
    Elf_Scn *names_section = elf_getscn(file->elf, header->sh_link);
    if (names_section == NULL || gelf_getshdr(names_section, &names_header) == NULL ||
        names_header.sh_type != SHT_STRTAB || header->sh_size > SYMBOLS_BYTES_MAX ||
        names_header.sh_size > NAMES_BYTES_MAX) {
        return -EBADMSG;
    }
    Elf_Data *symbols = elf_file_data(file, section, header);
    size_t symbol_bytes = gelf_fsize(file->elf, ELF_T_SYM, 1, EV_CURRENT);
    if (symbols == NULL || symbols->d_type != ELF_T_SYM || symbol_bytes == 0 ||
        symbols->d_size / symbol_bytes > INT32_MAX) {
        return -EBADMSG;
    }
    struct symbol_section input = {
        .symbols = symbols,
        .symbol_count = symbols->d_size / symbol_bytes,
    };
    bool is_found = walk->wants_names ? find_names(file, names_section, &names_header, &input)
                                      : measure_names(file, &names_header, &input.names_bytes);
    return is_found ? call_for_symbols(walk, &input) : -EBADMSG;
}

bool elf_file_segment(const struct elf_file *file, uint32_t type, uint64_t vaddr, GElf_Phdr *ret)
{
    size_t count = 0;
    if (elf_getphdrnum(file->elf, &count) != 0) {
        return false;
    }
    for (size_t i = 0; i < count && i < PROGRAM_HEADERS_MAX; i++) {
        if (gelf_getphdr(file->elf, (int)i, ret) != NULL && ret->p_type == type &&
            (type != PT_LOAD || (vaddr >= ret->p_vaddr && vaddr - ret->p_vaddr < ret->p_filesz))) {
            return true;
        }
    }
    return false;
}

size_t elf_file_read_mapped(const struct elf_file *file, uint64_t vaddr, void *buffer, size_t bytes)
{
    GElf_Phdr segment;
    if (!elf_file_segment(file, PT_LOAD, vaddr, &segment)) {
        return 0;
    }
    uint64_t from = vaddr - segment.p_vaddr;
    uint64_t there = segment.p_filesz - from;
    return elf_file_read(file, segment.p_offset + from, buffer, bytes < there ? bytes : there);
}

bool elf_file_section(const struct elf_file *file, const char *name, GElf_Shdr *ret)
{
    size_t names = 0;
    Elf_Scn *section = NULL;
    if (elf_getshdrstrndx(file->elf, &names) != 0) {
        return false;
    }
    while ((section = elf_nextscn(file->elf, section)) != NULL) {
        GElf_Shdr header;
        const char *found = gelf_getshdr(section, &header) == NULL
                                ? NULL
                                : elf_strptr(file->elf, names, header.sh_name);
        if (found != NULL && strcmp(found, name) == 0) {
            *ret = header;
            return true;
        }
    }
    return false;
}

int elf_file_code(const struct elf_file *file, const char *name, GElf_Shdr *ret, uint8_t **ret_code,
                  size_t *ret_bytes)
{
    *ret_code = NULL;
    *ret_bytes = 0;
    if (!elf_file_section(file, name, ret) || ret->sh_type != SHT_PROGBITS ||
        (ret->sh_flags & SHF_EXECINSTR) == 0 || ret->sh_size > CODE_BYTES_MAX ||
        !elf_file_has(file, ret->sh_offset, ret->sh_size)) {
        return 0;
    }
    *ret_code = malloc(ret->sh_size + 1);
    if (*ret_code == NULL) {
        return -ENOMEM;
    }
    *ret_bytes = elf_file_read(file, ret->sh_offset, *ret_code, ret->sh_size);
    return 0;
}

static int walk_symbols(const struct symbol_walk *walk)
{
    bool seen_symtab = false;
    bool seen_dynsym = false;
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(walk->file->elf, section)) != NULL) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL) {
            return -EBADMSG;
        }
        bool *seen = header.sh_type == SHT_SYMTAB   ? &seen_symtab
                     : header.sh_type == SHT_DYNSYM ? &seen_dynsym
                                                    : NULL;
        if (seen == NULL || *seen) {
            continue;
        }
        *seen = true;
        int r = walk_section(walk, section, &header);
        /* One table that cannot be read leaves the other; no memory leaves nothing. */
        if (r < 0 && r != -EBADMSG) {
            return r;
        }
    }
    return 0;
}

int elf_file_symbols(const struct elf_file *file, elf_symbol_fn on_symbol, void *userdata)
{
    return walk_symbols(&(struct symbol_walk){file, true, on_symbol, userdata});
}

int elf_file_nameless(const struct elf_file *file, elf_symbol_fn on_symbol, void *userdata)
{
    return walk_symbols(&(struct symbol_walk){file, false, on_symbol, userdata});
}
