/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads headers of 64-bit ELF files, which any user may have made: each read has a fixed size, and
 * nothing in the file is followed but the places of headers, notes and names.
 */
#include "elf_facts.h"

#include "cleanup.h"

#include <elf.h>
#include <string.h>

#define HEADERS_MAX     64
#define SECTIONS_MAX    256
#define NOTES_BYTES_MAX ((size_t)4096)
#define NAMES_BYTES_MAX ((size_t)16384)
#define BUILD_ID_MAX    ((ELF_FACTS_BUILD_ID_BYTES - 1) / 2)

static bool read_at(int fd, void *into, size_t size_bytes, uint64_t offset)
{
    return offset <= INT64_MAX && pread(fd, into, size_bytes, (off_t)offset) == (ssize_t)size_bytes;
}

/* Reads what there is, up to `size_bytes`. */
static size_t read_some(int fd, void *into, uint64_t size_bytes, size_t capacity_bytes,
                        uint64_t offset)
{
    size_t wanted = size_bytes < capacity_bytes ? (size_t)size_bytes : capacity_bytes;
    ssize_t got = offset > INT64_MAX ? -1 : pread(fd, into, wanted, (off_t)offset);
    return got < 0 ? 0 : (size_t)got;
}

void elf_facts_build_id(const uint8_t *notes, size_t notes_bytes, char *into)
{
    size_t at = 0;
    into[0] = '\0';
    while (notes_bytes - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        at += sizeof note;
        uint64_t name_bytes = ((uint64_t)note.n_namesz + 3) & ~UINT64_C(3);
        uint64_t content_bytes = ((uint64_t)note.n_descsz + 3) & ~UINT64_C(3);
        if (name_bytes + content_bytes > notes_bytes - at) {
            return;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(notes + at, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 &&
            note.n_descsz <= BUILD_ID_MAX) {
            for (size_t i = 0; i < note.n_descsz; i++) {
                (void)sprintf(into + 2 * i, "%02x", notes[at + name_bytes + i]);
            }
            return;
        }
        at += (size_t)(name_bytes + content_bytes);
    }
}

static void read_build_id(int fd, const Elf64_Ehdr *file, struct elf_facts *ret)
{
    for (size_t i = 0; i < file->e_phnum && i < HEADERS_MAX && ret->build_id[0] == '\0'; i++) {
        Elf64_Phdr header;
        uint8_t notes[NOTES_BYTES_MAX];
        if (!read_at(fd, &header, sizeof header, file->e_phoff + i * sizeof header)) {
            return;
        }
        if (header.p_type == PT_NOTE) {
            size_t bytes = read_some(fd, notes, header.p_filesz, sizeof notes, header.p_offset);
            elf_facts_build_id(notes, bytes, ret->build_id);
        }
    }
}

static void take_section(const char *name, struct elf_facts *ret)
{
    static const char *const symbols[] = {".symtab", ".gnu_debugdata", ".gopclntab"};
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        ret->has_symbols = ret->has_symbols || strcmp(name, symbols[i]) == 0;
    }
    ret->has_debug =
        ret->has_debug || strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0;
}

static void read_sections(int fd, const Elf64_Ehdr *file, struct elf_facts *ret)
{
    Elf64_Shdr names_header;
    char names[NAMES_BYTES_MAX + 1];
    if (file->e_shentsize != sizeof names_header || file->e_shstrndx >= file->e_shnum ||
        !read_at(fd, &names_header, sizeof names_header,
                 file->e_shoff + (uint64_t)file->e_shstrndx * sizeof names_header)) {
        return;
    }
    size_t names_bytes =
        read_some(fd, names, names_header.sh_size, NAMES_BYTES_MAX, names_header.sh_offset);
    names[names_bytes] = '\0';
    for (size_t i = 0; i < file->e_shnum && i < SECTIONS_MAX; i++) {
        Elf64_Shdr header;
        if (!read_at(fd, &header, sizeof header, file->e_shoff + i * sizeof header)) {
            return;
        }
        if (header.sh_name < names_bytes) {
            take_section(names + header.sh_name, ret);
        }
    }
}

void elf_facts_read(int fd, struct elf_facts *ret)
{
    Elf64_Ehdr file;
    *ret = (struct elf_facts){0};
    if (!read_at(fd, &file, sizeof file, 0) || memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 ||
        file.e_ident[EI_CLASS] != ELFCLASS64 || file.e_ident[EI_DATA] != ELFDATA2LSB ||
        file.e_phentsize != sizeof(Elf64_Phdr)) {
        return;
    }
    ret->is_elf = true;
    read_build_id(fd, &file, ret);
    read_sections(fd, &file, ret);
}
