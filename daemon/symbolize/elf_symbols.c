/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Chooses which symbols are functions. Sources are the file itself, its debug file (mini debug info
 * inside it, or one that the caller found), Go's own table where symbols were stripped, and its
 * linkage tables. Only addresses in executable segments of the file become symbols, since a stack
 * has no others. DWARF is ignored. elf_file.c reads foreign files safely.
 */
#include "elf_symbols.h"

#include "arch_x86_64.h"
#include "cleanup.h"
#include "elf_file.h"
#include "elf_go.h"
#include "elf_plt.h"
#include "mini_debug.h"
#include "segments.h"
#include "sizeless_ends.h"

#include <errno.h>
#include <string.h>

#define RANK_GO           3 /* whatever else is there has the better name */
#define PADDING_BYTES_MAX 64

struct reading {
    struct elf_file file;           /* the one whose code it is */
    const struct elf_file *symbols; /* whose symbols are read now: this or one split off it */
    struct symbol_builder *builder;
    struct sizeless_ends sizeless;
};

/* Assembly labels count as functions only where code is, and not the ones that tools put there. */
static bool is_label_wanted(const struct reading *reading, const GElf_Sym *symbol, const char *name)
{
    GElf_Shdr header;
    Elf_Scn *section = symbol->st_shndx < SHN_LORESERVE
                           ? elf_getscn(reading->symbols->elf, symbol->st_shndx)
                           : NULL;
    return section != NULL && gelf_getshdr(section, &header) != NULL &&
           (header.sh_flags & SHF_EXECINSTR) != 0 && name[0] != '$' && strncmp(name, ".L", 2) != 0;
}

static bool is_wanted(const struct reading *reading, const GElf_Sym *symbol, const char *name)
{
    const struct elf_file *file = &reading->file;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS ||
        symbol->st_shndx == SHN_COMMON ||
        segments_find(file->segments, file->segment_count, symbol->st_value) == NULL) {
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

/* A mark where a section begins is mostly global: it does not take a function's name. */
static int rank_of(const GElf_Sym *symbol)
{
    if (GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE) {
        return 3;
    }
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

static int on_symbol(const GElf_Sym *symbol, const char *name, void *userdata)
{
    struct reading *reading = userdata;
    if (!is_wanted(reading, symbol, name)) {
        return 0;
    }
    /* Its code is the resolver's, which has a symbol of its own or none. */
    if (GELF_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC) {
        return symbol_builder_nameless(reading->builder, symbol->st_value, symbol->st_size);
    }
    int r = symbol->st_size == 0 ? sizeless_ends_want(&reading->sizeless, symbol->st_value) : 0;
    return r < 0 ? r
                 : symbol_builder_add(reading->builder, symbol->st_value, symbol->st_size,
                                      rank_of(symbol), name);
}

static int add_segments(const struct reading *reading)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < reading->file.segment_count; i++) {
        const struct symbol_segment *segment = &reading->file.segments[i];
        r = symbol_builder_segment(reading->builder, segment);
        if (r == 0) {
            r = symbol_builder_barrier(reading->builder, segment->vaddr + segment->size_bytes);
        }
    }
    return r;
}

/* Code ends where its section ends. */
static int add_section_ends(const struct reading *reading)
{
    Elf_Scn *section = NULL;
    int r = 0;
    while (r == 0 && (section = elf_nextscn(reading->file.elf, section)) != NULL) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL) {
            return -EBADMSG;
        }
        if ((header.sh_flags & SHF_EXECINSTR) != 0 &&
            header.sh_addr <= UINT64_MAX - header.sh_size) {
            r = symbol_builder_barrier(reading->builder, header.sh_addr + header.sh_size);
        }
    }
    return r;
}

static int add_symbols(struct reading *reading, const struct elf_file *symbols)
{
    reading->symbols = symbols;
    return elf_file_symbols(symbols, on_symbol, reading);
}

/* What was split off may be broken: that costs what it would have named. */
static int tolerate(int r)
{
    return r == -ENOMEM || r == -E2BIG ? r : 0;
}

static int add_mini_debug(struct reading *reading)
{
    cleanup_(closep) int fd = -1;
    struct elf_file symbols;
    int r = mini_debug_open(&reading->file, &fd);
    if (r == 0) {
        r = elf_file_init(&symbols, fd);
    }
    if (r < 0) {
        return tolerate(r);
    }
    r = add_symbols(reading, &symbols);
    elf_file_done(&symbols);
    return tolerate(r);
}

static bool is_of_one_build(const struct elf_file *a, const struct elf_file *b)
{
    return a->build_id_bytes > 0 && a->build_id_bytes == b->build_id_bytes &&
           memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
}

static int add_debug_file(struct reading *reading, int debug_fd)
{
    struct elf_file symbols;
    int r = elf_file_init(&symbols, debug_fd);
    if (r < 0) {
        return tolerate(r);
    }
    if (is_of_one_build(&reading->file, &symbols)) {
        symbol_builder_limit(reading->builder, reading->file.file_bytes + symbols.file_bytes);
        r = add_symbols(reading, &symbols);
    }
    elf_file_done(&symbols);
    return tolerate(r);
}

/*
 * Where the code of a function ends that reaches to the next one. What returns to the first byte of
 * a function is looked for in the byte before it, which must not have the name of another then.
 * A jump whose last byte looks like padding loses that byte, where no instruction begins.
 */
static uint64_t skip_padding(const struct elf_file *file, const struct symbol_segment *segment,
                             const struct go_function *function)
{
    uint8_t code[PADDING_BYTES_MAX];
    uint64_t bytes = function->end - function->start;
    size_t wanted = bytes < sizeof code ? (size_t)bytes : sizeof code;
    uint64_t offset = segment->offset + (function->end - segment->vaddr) - wanted;
    size_t left = elf_file_read(file, offset, code, wanted) == wanted ? wanted : 0;
    while (left > 0 && code[left - 1] == ARCH_PADDING) {
        left--;
    }
    return left == 0 ? function->end : function->end - (wanted - left);
}

static int on_go_function(const struct go_function *function, void *userdata)
{
    const struct reading *reading = userdata;
    const struct elf_file *file = &reading->file;
    const struct symbol_segment *segment =
        segments_find(file->segments, file->segment_count, function->start);
    if (segment == NULL || function->end - segment->vaddr > segment->size_bytes) {
        return 0;
    }
    uint64_t end = skip_padding(file, segment, function);
    return symbol_builder_add(reading->builder, function->start, end - function->start, RANK_GO,
                              function->name);
}

static int add_functions(struct reading *reading, int debug_fd)
{
    int r = add_symbols(reading, &reading->file);
    if (r == 0) {
        r = add_mini_debug(reading);
    }
    if (r == 0 && debug_fd >= 0) {
        r = add_debug_file(reading, debug_fd);
    }
    if (r == 0) {
        r = elf_go_functions(&reading->file, on_go_function, reading);
    }
    return r == 0 ? elf_plt_add(&reading->file, reading->builder) : r;
}

int elf_symbols_read(int fd, int debug_fd, struct symbol_builder *builder)
{
    struct reading reading = {.builder = builder};
    int r = elf_file_init(&reading.file, fd);
    if (r < 0) {
        return r;
    }
    symbol_builder_limit(builder, reading.file.file_bytes);
    r = symbol_builder_build_id(builder, reading.file.build_id, reading.file.build_id_bytes);
    if (r == 0) {
        r = add_segments(&reading);
    }
    if (r == 0) {
        r = add_functions(&reading, debug_fd);
    }
    if (r == 0) {
        r = add_section_ends(&reading);
    }
    if (r == 0) {
        r = sizeless_ends_add(&reading.sizeless, &reading.file, builder);
    }
    sizeless_ends_done(&reading.sizeless);
    elf_file_done(&reading.file);
    return r;
}
