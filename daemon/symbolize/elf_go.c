/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the table of a Go program's functions into memory, as it is when the program runs. The
 * table has a section of its own, unless a C linker has linked a position-independent program. Such
 * a linker merges the table with other data that is constant after relocation, where its first
 * bytes identify it. The addresses in such programs are relocations; the file may have zeros in
 * their place.
 *
 * From Go 1.26 on the table does not have the base of its addresses. The runtime's record of the
 * module has it (since Go 1.18 in these members, since 1.26 in a section of its own). The record is
 * used if it refers to this table and has the table's first and last address: Go's runtime ends a
 * program at once where they differ.
 */
#include "elf_go.h"

#include "arch_x86_64.h"
#include "cleanup.h"
#include "elf_pointers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sections of which Go's linker writes one or more, with any options, and with a C linker
 * behind it; strip leaves them. A plugin has no .go.buildinfo, a program linked with -buildid= no
 * note, and the table of functions keeps its name where no C linker makes a position-independent
 * file. */
static const char *const go_sections[] = {
    ".go.buildinfo",
    ".note.go.buildid",
    ".gopclntab",
    ".data.rel.ro.gopclntab",
};

/* Words of the record of a module. */
enum {
    MODULE_TABLE = 0,
    MODULE_FIRST = 20,
    MODULE_END = 21,
    MODULE_TEXT = 22,
    MODULE_WORDS
};

/* A section's bytes as they are in memory. */
struct content {
    uint8_t *bytes; /* its owner frees it */
    size_t size_bytes;
    uint64_t address;
};

static bool has_symtab(const struct elf_file *file)
{
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(file->elf, section)) != NULL) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) != NULL && header.sh_type == SHT_SYMTAB) {
            return true;
        }
    }
    return false;
}

bool elf_go_is_linked(const struct elf_file *file)
{
    GElf_Shdr header;
    for (size_t i = 0; i < sizeof go_sections / sizeof *go_sections; i++) {
        if (elf_file_section(file, go_sections[i], &header)) {
            return true;
        }
    }
    return false;
}

static int apply_relocation(uint64_t place, uint64_t value, void *userdata)
{
    const struct content *content = userdata;
    uint64_t offset = place - content->address;
    if (place >= content->address && content->size_bytes >= sizeof value &&
        offset <= content->size_bytes - sizeof value) {
        memcpy(content->bytes + offset, &value, sizeof value);
    }
    return 0;
}

/* Returns 0, -ENOENT: there is no such section to read, or -ENOMEM. */
static int read_section(const struct elf_file *file, const char *name, struct content *ret)
{
    GElf_Shdr header;
    if (!elf_file_section(file, name, &header) || header.sh_type != SHT_PROGBITS ||
        (header.sh_flags & SHF_COMPRESSED) != 0 || header.sh_size > ELF_GO_BYTES_MAX ||
        !elf_file_has(file, header.sh_offset, header.sh_size)) {
        return -ENOENT;
    }
    uint8_t *bytes = malloc(header.sh_size + 1);
    if (bytes == NULL) {
        return -ENOMEM;
    }
    *ret = (struct content){
        .bytes = bytes,
        .size_bytes = elf_file_read(file, header.sh_offset, bytes, header.sh_size),
        .address = header.sh_addr,
    };
    return elf_pointers_relocated(file, apply_relocation, ret);
}

/* Opens the first table among a section's bytes. */
static int search_table(const struct content *content, struct go_functions *ret)
{
    int r = -ENOENT;
    for (size_t at = 0; r < 0 && at + GO_FUNCTIONS_MAGIC_BYTES <= content->size_bytes;
         at += sizeof(uint64_t)) {
        if (go_functions_begin(content->bytes + at)) {
            r = go_functions_open(content->bytes + at, content->size_bytes - at, ret);
        }
    }
    return r;
}

static bool find_text(const struct elf_file *file, uint64_t table_address,
                      struct go_functions *table)
{
    uint64_t words[MODULE_WORDS];
    uint64_t first = 0;
    uint64_t end = 0;
    struct content module = {0};
    if (read_section(file, ".go.module", &module) < 0) {
        return false;
    }
    bool is_whole = module.size_bytes >= sizeof words;
    if (is_whole) {
        memcpy(words, module.bytes, sizeof words);
    }
    free(module.bytes);
    go_functions_range(table, &first, &end);
    if (!is_whole || words[MODULE_TABLE] != table_address ||
        words[MODULE_FIRST] - words[MODULE_TEXT] != first ||
        words[MODULE_END] - words[MODULE_TEXT] != end) {
        return false;
    }
    table->text = words[MODULE_TEXT];
    return true;
}

static int walk_content(const struct elf_file *file, const struct content *content,
                        go_function_fn on_function, void *userdata)
{
    struct go_functions table;
    if (search_table(content, &table) < 0) {
        return 0;
    }
    uint64_t address = content->address + (uint64_t)(table.bytes - content->bytes);
    if (table.is_text_needed && !find_text(file, address, &table)) {
        return 0;
    }
    return go_functions_walk(&table, on_function, userdata);
}

/* Reads one section, if it is there. */
static int walk_section(const struct elf_file *file, const char *name, go_function_fn on_function,
                        void *userdata)
{
    struct content content = {0};
    int r = read_section(file, name, &content);
    if (r == 0) {
        r = walk_content(file, &content, on_function, userdata);
        free(content.bytes);
    }
    return r;
}

int elf_go_functions(const struct elf_file *file, go_function_fn on_function, void *userdata)
{
    GElf_Shdr header;
    if (has_symtab(file)) {
        return 0;
    }
    int r = walk_section(file, ".gopclntab", on_function, userdata);
    if (r == -ENOENT) {
        r = walk_section(file, ".data.rel.ro.gopclntab", on_function, userdata);
    }
    /* Most that have the last one are not Go's, and it may be large. */
    if (r == -ENOENT && elf_file_section(file, ".go.buildinfo", &header)) {
        r = walk_section(file, ".data.rel.ro", on_function, userdata);
    }
    return r == -ENOENT ? 0 : r;
}
