/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files with functions that begin stacks by their names, and with what only looks so. The code of a
 * file stands in a section of its own, where call frames cover the function at FRAMED_AT.
 */
#include "cfi_roots.h"

#include "built_tables.h"
#include "eh_frame.h"
#include "elf_image.h"

#define CODE_BYTES   256
#define ENTRY_AT     0x20 /* in the code, as the next */
#define FRAMED_AT    0x80
#define FRAMED_BYTES 16
#define FRAMES_BYTES 64
#define NAMES_BYTES  64
#define SECTION_CODE 1
#define SYMBOLS_MAX  4

#define NOP 0x90

struct module {
    uint8_t code[CODE_BYTES];
    uint8_t frames[FRAMES_BYTES];
    Elf64_Sym symbols[SYMBOLS_MAX];
    size_t symbol_count;
    char names[NAMES_BYTES];
    size_t names_bytes;
    struct elf_image image;
};

static uint64_t code_of(const struct module *module)
{
    return elf_image_offset(&module->image, SECTION_CODE);
}

/* A CIE, and the FDE of the function that has call frames: CFA = rsp + 8. */
static void put_frames(struct module *module)
{
    static const uint8_t cie[] = {22,   0,  0, 0, 0,    0, 0, 0,    1, 'z', 'R', 0, 1,
                                  0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1, 0,   0,   0, 0};
    static const uint8_t fde[] = {21, 0, 0, 0, 30, 0, 0, 0};
    uint64_t range[] = {code_of(module) + FRAMED_AT, FRAMED_BYTES};
    memcpy(module->frames, cie, sizeof cie);
    memcpy(module->frames + sizeof cie, fde, sizeof fde);
    memcpy(module->frames + sizeof cie + sizeof fde, range, sizeof range);
}

/* All modules are laid out alike. Free it. */
static struct module *make_module(void)
{
    struct module *module = calloc(1, sizeof *module);
    assert_non_null(module);
    module->image = (struct elf_image){
        .sections =
            {
                {".text", SHT_PROGBITS, SHF_EXECINSTR, module->code, sizeof module->code, 0, 0},
                {".eh_frame", SHT_PROGBITS, SHF_ALLOC, module->frames, sizeof module->frames, 0, 0},
                {".none", SHT_PROGBITS, 0, module->code, 16, 0, 0},
                {".symtab", SHT_SYMTAB, 0, module->symbols, sizeof module->symbols, 5,
                 sizeof *module->symbols},
                {".strtab", SHT_STRTAB, 0, module->names, sizeof module->names, 0, 0},
            },
        .section_count = 5,
    };
    memset(module->code, NOP, sizeof module->code);
    module->symbol_count = 1;
    module->names_bytes = 1;
    put_frames(module);
    return module;
}

static void put_symbol(struct module *module, const char *name, uint64_t at, uint64_t size_bytes,
                       unsigned char type)
{
    assert_true(module->symbol_count < SYMBOLS_MAX);
    module->symbols[module->symbol_count++] = (Elf64_Sym){
        .st_name = (Elf64_Word)module->names_bytes,
        .st_info = (unsigned char)ELF64_ST_INFO(STB_GLOBAL, type),
        .st_shndx = SECTION_CODE,
        .st_value = code_of(module) + at,
        .st_size = size_bytes,
    };
    size_t bytes = strlen(name) + 1;
    assert_true(bytes <= NAMES_BYTES - module->names_bytes);
    memcpy(module->names + module->names_bytes, name, bytes);
    module->names_bytes += bytes;
}

/* cleanup_(free_cfi) */
static struct made_cfi read_fd(int fd)
{
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(eh_frame_read(fd, builder), 0);
    return finish_cfi(builder);
}

static enum cfi_kind kind_at(const struct made_cfi *made, uint64_t address)
{
    return (enum cfi_kind)cfi_table_find(&made->table, address)->kind;
}

static enum cfi_kind kind_in(const struct module *module, uint64_t at)
{
    cleanup_(closep) int fd = elf_image_make(&module->image);
    cleanup_(free_cfi) struct made_cfi made = read_fd(fd);
    return kind_at(&made, code_of(module) + at);
}

TEST(knows_names_of_go_in_files_of_go_only)
{
    static const struct {
        const char *section;
        bool is_go;
    } cases[] = {
        {".none", false},      {".go.buildinfo", true},          {".note.go.buildid", true},
        {".gopclntab", true},  {".data.rel.ro.gopclntab", true}, {".go_export", false},
        {".gosymtab2", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool is_go = cases[i].is_go;
        cleanup_(freep) struct module *module = make_module();
        module->image.sections[2].name = cases[i].section;
        put_symbol(module, "runtime.mcall", FRAMED_AT, FRAMED_BYTES, STT_FUNC);
        put_symbol(module, "time.now", 0, 8, STT_FUNC);
        put_symbol(module, "_start", ENTRY_AT, 8, STT_NOTYPE);
        assert_int_equal(kind_in(module, FRAMED_AT), is_go ? CFI_ROOT : CFI_OFFSET);
        assert_int_equal(kind_in(module, 0), is_go ? CFI_SWITCH : CFI_NONE);
        assert_int_equal(kind_in(module, ENTRY_AT), CFI_ROOT);
    }
}

TEST(knows_where_made_contexts_begin_in_any_file)
{
    cleanup_(freep) struct module *module = make_module();
    put_symbol(module, "__start_context", FRAMED_AT, FRAMED_BYTES, STT_FUNC);
    assert_int_equal(kind_in(module, FRAMED_AT), CFI_ROOT);
}
