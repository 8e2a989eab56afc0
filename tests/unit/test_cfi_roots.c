/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files with functions that begin stacks, by their names or as the file's entry, and with what only
 * looks so. The code of a file stands in a section of its own, where call frames cover the function
 * at FRAMED_AT.
 */
#include "cfi_roots.h"

#include "built_tables.h"
#include "eh_frame.h"
#include "elf_image.h"
#include "entry_code.h"

#define CODE_BYTES   256
#define ENTRY_AT     0x20 /* in the code, as the next */
#define FRAMED_AT    0x80
#define FRAMED_BYTES 16
#define FRAMES_BYTES 64
#define NAMES_BYTES  64
#define SECTION_CODE 1
#define SYMBOLS_MAX  4

#define CLEAR    0x31, 0xed /* xor %ebp, %ebp */
#define CALL_FAR 0xe8, 0, 0, 0x10, 0
#define TRAP     0x0f, 0x0b
#define RETURN   0xc3
#define NOP      0x90

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
        .type = ET_EXEC,
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

static void put_code(struct module *module, size_t at, const uint8_t *code, size_t bytes)
{
    memcpy(module->code + at, code, bytes);
}

#define PUT_CODE(module, at, ...)                                                                  \
    put_code(module, at, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

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

/* How many bytes are a root from `at` on, up to what has call frames. */
static uint64_t root_bytes(const struct module *module, uint64_t at)
{
    cleanup_(closep) int fd = elf_image_make(&module->image);
    cleanup_(free_cfi) struct made_cfi made = read_fd(fd);
    uint64_t bytes = 0;
    while (kind_at(&made, code_of(module) + at + bytes) == CFI_ROOT) {
        bytes++;
    }
    for (uint64_t i = at + bytes; i < FRAMED_AT; i++) {
        assert_int_equal(kind_at(&made, code_of(module) + i), CFI_NONE);
    }
    assert_int_equal(kind_at(&made, code_of(module) + FRAMED_AT), CFI_OFFSET);
    return bytes;
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

TEST(follows_the_code_of_a_start_without_a_size)
{
    static const char *const names[] = {"_start", "_dl_start_user", "_start_other"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        cleanup_(freep) struct module *module = make_module();
        put_symbol(module, names[i], ENTRY_AT, 0, STT_NOTYPE);
        PUT_CODE(module, ENTRY_AT, CALL_FAR, TRAP, RETURN);
        assert_int_equal(root_bytes(module, ENTRY_AT), i < 2 ? 7 : 0);
        /* A function that has the name is none. */
        PUT_CODE(module, ENTRY_AT, CALL_FAR, RETURN);
        assert_int_equal(root_bytes(module, ENTRY_AT), 0);
        /* Its own size says enough. */
        module->symbols[1].st_size = 16;
        assert_int_equal(root_bytes(module, ENTRY_AT), i < 2 ? 16 : 0);
    }
}

TEST(follows_the_code_of_an_entry)
{
    cleanup_(freep) struct module *module = make_module();
    module->image.entry = code_of(module) + 8;
    assert_int_equal(root_bytes(module, 8), ENTRY_CODE_BYTES_MAX);
    module->image.entry = 0;
    PUT_CODE(module, ENTRY_AT, CLEAR, CALL_FAR, TRAP, RETURN);
    assert_int_equal(root_bytes(module, ENTRY_AT), 0);
    module->image.entry = code_of(module) + ENTRY_AT;
    assert_int_equal(root_bytes(module, ENTRY_AT), 9);
    PUT_CODE(module, ENTRY_AT, NOP, NOP, CALL_FAR, RETURN);
    assert_int_equal(root_bytes(module, ENTRY_AT), 0);
    /* What the module says of its code comes first, and of no code nothing is said. */
    module->image.entry = code_of(module) + FRAMED_AT;
    assert_int_equal(root_bytes(module, ENTRY_AT), 0);
    module->image.entry = UINT64_C(1) << 40;
    assert_int_equal(root_bytes(module, ENTRY_AT), 0);
}

TEST(takes_an_entry_that_may_be_a_library_s_only_if_it_begins_a_stack)
{
    static const struct {
        uint16_t type;
        bool has_linker;
        bool is_root;
    } cases[] = {
        {ET_EXEC, false, true},
        {ET_DYN, true, true},
        {ET_DYN, false, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(freep) struct module *module = make_module();
        struct elf_image *image = &module->image;
        size_t size_bytes = elf_image_offset(image, image->section_count + 1);
        image->type = cases[i].type;
        image->entry = code_of(module) + ENTRY_AT;
        image->segments[0] =
            (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = size_bytes};
        image->segments[1] = (Elf64_Phdr){.p_type = cases[i].has_linker ? PT_INTERP : PT_NULL};
        image->segment_count = 2;
        PUT_CODE(module, ENTRY_AT, NOP, NOP, CALL_FAR, TRAP);
        assert_int_equal(root_bytes(module, ENTRY_AT), cases[i].is_root ? 9 : 0);
        PUT_CODE(module, ENTRY_AT, CLEAR, CALL_FAR, TRAP);
        assert_int_equal(root_bytes(module, ENTRY_AT), 9);
    }
}

TEST(ends_an_entry_where_something_else_begins)
{
    cleanup_(freep) struct module *module = make_module();
    PUT_CODE(module, FRAMED_AT - 16, CLEAR);
    module->image.entry = code_of(module) + FRAMED_AT - 16;
    assert_int_equal(root_bytes(module, FRAMED_AT - 16), 16);
    assert_int_equal(kind_in(module, FRAMED_AT + FRAMED_BYTES), CFI_NONE);
    put_symbol(module, "entry", FRAMED_AT - 16, 14, STT_FUNC);
    assert_int_equal(root_bytes(module, FRAMED_AT - 16), 14);
    put_symbol(module, "before", 0, FRAMED_AT - 4, STT_FUNC);
    assert_int_equal(root_bytes(module, FRAMED_AT - 16), 12);
    put_symbol(module, "next", FRAMED_AT - 8, 0, STT_NOTYPE);
    assert_int_equal(root_bytes(module, FRAMED_AT - 16), 8);
    /* Data, and what another file has, are not there. */
    module->symbols[3].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    assert_int_equal(root_bytes(module, FRAMED_AT - 16), 12);
    module->symbols[3].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    module->symbols[3].st_shndx = SHN_UNDEF;
    assert_int_equal(root_bytes(module, FRAMED_AT - 16), 12);
    module->symbols[3].st_shndx = SHN_ABS;
    assert_int_equal(root_bytes(module, FRAMED_AT - 16), 12);
    /* The section, behind which there are zeros, and the file. */
    const uint64_t end = elf_image_offset(&module->image, 4);
    module->image.sections[2].flags = SHF_EXECINSTR;
    module->image.entry = end - 8;
    assert_int_equal(kind_in(module, end - 1 - code_of(module)), CFI_ROOT);
    assert_int_equal(kind_in(module, end - code_of(module)), CFI_NONE);
    module->image.entry = elf_image_offset(&module->image, 6) - 1;
    assert_int_equal(kind_in(module, module->image.entry + 1 - code_of(module)), CFI_NONE);
}

/* A file of 32 bits with an empty .eh_frame, and code at its entry. */
struct small_file {
    Elf32_Ehdr header;
    Elf32_Phdr segments[2];
    uint8_t frames_header[8];
    uint32_t frames;
    uint8_t code[64];
};

TEST(reads_the_entry_of_a_32_bit_file)
{
    struct small_file file = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
                               EV_CURRENT},
                   .e_type = ET_DYN,
                   .e_machine = EM_386,
                   .e_version = EV_CURRENT,
                   .e_entry = offsetof(struct small_file, code),
                   .e_phoff = offsetof(struct small_file, segments),
                   .e_ehsize = sizeof(Elf32_Ehdr),
                   .e_phentsize = sizeof(Elf32_Phdr),
                   .e_phnum = 2},
        .segments = {{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sizeof file},
                     {.p_type = PT_GNU_EH_FRAME,
                      .p_offset = offsetof(struct small_file, frames_header),
                      .p_vaddr = offsetof(struct small_file, frames_header),
                      .p_filesz = sizeof file.frames_header}},
        /* .eh_frame is 4 bytes behind the place that says so. */
        .frames_header = {1, 0x1b, 0xff, 0xff, 4},
        /* push %es, which 64 bits do not have. */
        .code = {0x06, CLEAR, CALL_FAR, TRAP, RETURN},
    };
    for (int returns = 0; returns < 2; returns++) {
        cleanup_(closep) int fd = memory_file(&file, sizeof file);
        cleanup_(free_cfi) struct made_cfi made = read_fd(fd);
        uint64_t entry = file.header.e_entry;
        assert_true(made.table.is_32bit);
        assert_int_equal(kind_at(&made, entry + 9), returns ? CFI_NONE : CFI_ROOT);
        assert_int_equal(kind_at(&made, entry + 10), CFI_NONE);
        file.code[1] = file.code[2] = NOP;
        file.code[8] = RETURN;
    }
}
