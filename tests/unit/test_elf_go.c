/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files with a table of Go's functions, where linkers put it: what is named, and what is not. The
 * functions are in a section of code that comes first.
 */
#include "elf_go.h"

#include "built_tables.h"
#include "eh_frame.h"
#include "elf_image.h"
#include "elf_symbols.h"
#include "go_table.h"

#define CODE_BYTES   0x400
#define LEAD_BYTES   64 /* what comes before the table in a section that has more */
#define MODULE_WORDS 23
#define SECTION_CODE 1
#define SECTION_GO   2

static const struct go_table_function functions[] = {
    {0x000, "main.work", 0},           {0x040, "runtime.goexit", 1},
    {0x080, "runtime.systemstack", 2}, {0x0c0, "runtime.asmcgocall", 2},
    {0x100, "runtime.asmcgocall", 0},  {0x140, "runtime.mcall", 2},
    {0x180, "main.main", 0},
};

#define COUNT COUNT_OF(functions)
#define END   UINT64_C(0x200)

/* A file in the making. */
struct program {
    struct go_table table;
    uint8_t section[LEAD_BYTES + GO_TABLE_BYTES_MAX];
    uint64_t module[MODULE_WORDS];
    Elf64_Rela relocations[64];
    struct elf_image image;
};

/* All files are laid out alike: the addresses are known before there is anything in them. */
static struct program *make_program(const char *section_name)
{
    static const uint8_t code[CODE_BYTES];
    struct program *program = calloc(1, sizeof *program);
    assert_non_null(program);
    program->image = (struct elf_image){
        .sections =
            {
                {".text", SHT_PROGBITS, SHF_EXECINSTR, code, sizeof code, 0, 0},
                {section_name, SHT_PROGBITS, 0, program->section, sizeof program->section, 0, 0},
                {".none", SHT_PROGBITS, 0, program->relocations, sizeof program->relocations, 0,
                 sizeof *program->relocations},
                {".none", SHT_PROGBITS, 0, program->module, sizeof program->module, 0, 0},
                {".none", SHT_PROGBITS, 0, code, 16, 0, 0},
            },
        .section_count = 5,
    };
    return program;
}

static uint64_t text_of(const struct program *program)
{
    return elf_image_offset(&program->image, SECTION_CODE);
}

static uint64_t section_of(const struct program *program)
{
    return elf_image_offset(&program->image, SECTION_GO);
}

static void put_table(struct program *program, enum go_version version, uint64_t text, size_t at)
{
    program->table = go_table_make(version, functions, COUNT, END, text);
    memcpy(program->section + at, program->table.bytes, program->table.size_bytes);
}

static int on_function(const struct go_function *function, void *userdata)
{
    char *all = userdata;
    size_t used = strlen(all);
    (void)snprintf(all + used, 1024 - used, "%jx %s\n", (uintmax_t)function->start, function->name);
    return 0;
}

/* Whether all of the functions are found where they are; none at all is the other answer. */
static bool is_read(const struct program *program)
{
    char found[1024] = "";
    char expected[1024] = "";
    struct elf_file file;
    cleanup_(closep) int fd = elf_image_make(&program->image);
    assert_int_equal(elf_file_init(&file, fd), 0);
    assert_int_equal(elf_go_functions(&file, on_function, found), 0);
    elf_file_done(&file);
    for (size_t i = 0; i < COUNT; i++) {
        const struct go_function function = {.start = text_of(program) + functions[i].start,
                                             .name = functions[i].name};
        (void)on_function(&function, expected);
    }
    if (found[0] != '\0') {
        assert_string_equal(found, expected);
    }
    return found[0] != '\0';
}

TEST(finds_the_table_where_linkers_put_it)
{
    static const struct {
        const char *section, *other;
        size_t at;
        bool is_found;
    } cases[] = {
        {".gopclntab", ".none", 0, true},
        {".data.rel.ro.gopclntab", ".none", 0, true},
        {".data.rel.ro", ".go.buildinfo", 0, true},
        {".data.rel.ro", ".go.buildinfo", LEAD_BYTES, true},
        {".data.rel.ro", ".go.buildinfo", LEAD_BYTES - 4, false}, /* it is aligned */
        {".data.rel.ro", ".none", LEAD_BYTES, false},             /* not a program of Go's */
        {".rodata", ".go.buildinfo", 0, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(freep) struct program *program = make_program(cases[i].section);
        program->image.sections[4].name = cases[i].other;
        put_table(program, GO_1_18, text_of(program), cases[i].at);
        assert_int_equal(is_read(program), cases[i].is_found);
    }
}

TEST(leaves_a_program_with_symbols_to_them)
{
    cleanup_(freep) struct program *program = make_program(".gopclntab");
    put_table(program, GO_1_20, text_of(program), 0);
    assert_true(is_read(program));
    program->image.sections[4].type = SHT_SYMTAB;
    assert_false(is_read(program));
}

static Elf64_Rela relative(uint64_t at, uint64_t value)
{
    return (Elf64_Rela){at, ELF64_R_INFO(0, R_X86_64_RELATIVE), (Elf64_Sxword)value};
}

/* Puts zeros where the table has an address, and a relocation for it. */
static void relocate(struct program *program, size_t number, size_t at)
{
    uint64_t value = 0;
    memcpy(&value, program->section + at, sizeof value);
    memset(program->section + at, 0, sizeof value);
    program->relocations[number] = relative(section_of(program) + at, value);
}

TEST(applies_the_relocations_of_the_table)
{
    for (enum go_version version = 0; version < GO_VERSIONS; version++) {
        cleanup_(freep) struct program *program = make_program(".data.rel.ro");
        size_t number = 0;
        program->image.sections[4].name = ".go.buildinfo";
        put_table(program, version, text_of(program), LEAD_BYTES);
        if (version >= GO_1_18) {
            relocate(program, number++, LEAD_BYTES + 24);
        } else {
            const struct go_table *table = &program->table;
            relocate(program, number++, LEAD_BYTES + table->index + COUNT * 16);
            for (size_t i = 0; i < COUNT; i++) {
                relocate(program, number++, LEAD_BYTES + table->index + i * 16);
                relocate(program, number++,
                         LEAD_BYTES + table->first_record + i * table->record_bytes);
            }
        }
        /* Two that reach over an end, and one of another kind, touch nothing. */
        uint64_t section = section_of(program);
        program->relocations[number++] = relative(section - 4, UINT64_MAX);
        program->relocations[number++] =
            relative(section + sizeof program->section - 7, UINT64_MAX);
        program->relocations[number++] =
            (Elf64_Rela){section + LEAD_BYTES + 8, ELF64_R_INFO(0, R_X86_64_64), -1};
        assert_false(is_read(program));
        program->image.sections[2].type = SHT_RELA;
        assert_true(is_read(program));
    }
}

TEST(asks_the_module_for_the_text_of_a_table_that_has_none)
{
    static const size_t words[] = {0, 20, 21, 22}; /* the table, the first, the end, the text */
    cleanup_(freep) struct program *program = make_program(".gopclntab");
    put_table(program, GO_1_20, 0, 0);
    program->module[0] = section_of(program);
    program->module[20] = text_of(program);
    program->module[21] = text_of(program) + END;
    program->module[22] = text_of(program);
    assert_false(is_read(program));
    program->image.sections[3].name = ".go.module";
    assert_true(is_read(program));
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        program->module[words[i]]++;
        assert_false(is_read(program));
        program->module[words[i]]--;
    }
    program->image.sections[3].size_bytes--;
    assert_false(is_read(program));
    program->image.sections[3].size_bytes++;

    /* In a position-independent program these are relocations, too. */
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        program->relocations[i] = relative(elf_image_offset(&program->image, 4) + words[i] * 8,
                                           program->module[words[i]]);
        program->module[words[i]] = 0;
    }
    assert_false(is_read(program));
    program->image.sections[2].type = SHT_RELA;
    assert_true(is_read(program));
}

/* Adds a .dynsym of one function, as programs have that were linked with C. */
static void put_dynsym(struct program *program, Elf64_Sym symbols[2], const char *name,
                       uint64_t start, uint64_t size_bytes)
{
    static char names[32];
    (void)snprintf(names + 1, sizeof names - 1, "%s", name);
    symbols[1] = (Elf64_Sym){
        .st_name = 1,
        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
        .st_shndx = SECTION_CODE,
        .st_value = start,
        .st_size = size_bytes,
    };
    program->image.sections[5] = (struct elf_image_section){
        ".dynsym", SHT_DYNSYM, 0, symbols, 2 * sizeof *symbols, 7, sizeof *symbols};
    program->image.sections[6] =
        (struct elf_image_section){".dynstr", SHT_STRTAB, 0, names, sizeof names, 0, 0};
    program->image.section_count = 7;
}

static struct made_symbols read_symbols(const struct program *program)
{
    struct symbol_builder *builder = symbol_builder_new();
    cleanup_(closep) int fd = elf_image_make(&program->image);
    assert_int_equal(elf_symbols_read(fd, -1, builder), 0);
    return finish_symbols(builder);
}

struct expected_name {
    uint64_t offset; /* from the start of the text */
    const char *name;
};

static void expect_names(const struct program *program, const struct expected_name *expected,
                         size_t count)
{
    cleanup_(free_symbols) struct made_symbols made = read_symbols(program);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(symbol_at(&made.table, text_of(program) + expected[i].offset),
                            expected[i].name);
    }
}

TEST(names_code_of_go_and_of_c_and_nothing_between)
{
    static const struct expected_name expected[] = {
        {-UINT64_C(1), ""}, {0, "main.work"},           {0x3f, "main.work"}, {END - 1, "main.main"},
        {END, ""},          {END + 0x40, "c_function"}, {END + 0x60, ""}};
    Elf64_Sym symbols[2] = {{0}};
    cleanup_(freep) struct program *program = make_program(".gopclntab");
    put_dynsym(program, symbols, "c_function", 0, 0x20);
    uint64_t text = text_of(program);
    symbols[1].st_value = text + END + 0x40;
    put_table(program, GO_1_20, text, 0);
    expect_names(program, expected, COUNT_OF(expected));
}

TEST(ends_a_function_before_the_padding)
{
    static const struct expected_name expected[] = {
        {0x2f, "main.work"},      {0x30, ""},           {0x40, "runtime.goexit"},
        {0x7f, "runtime.goexit"}, {0x1df, "main.main"}, {0x1e0, ""}};
    uint8_t code[CODE_BYTES] = {0};
    cleanup_(freep) struct program *program = make_program(".gopclntab");
    uint64_t text = text_of(program);
    program->image.sections[0].bytes = code;
    memset(code + 0x30, 0xcc, 0x10);  /* ends the first one */
    memset(code + 0x40, 0xcc, 0x40);  /* nothing but padding: that is no way to know */
    memset(code + 0x1e0, 0xcc, 0x40); /* the last one's, and what is behind it */
    put_table(program, GO_1_20, text, 0);
    expect_names(program, expected, COUNT_OF(expected));
}

TEST(leaves_out_what_is_in_no_code)
{
    static const uint64_t texts[] = {UINT64_C(0x10000000), UINT64_MAX - 0x1000};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        cleanup_(freep) struct program *program = make_program(".gopclntab");
        put_table(program, GO_1_20, texts[i], 0);
        cleanup_(free_symbols) struct made_symbols made = read_symbols(program);
        assert_int_equal(made.table.symbol_count, 0);
    }
}

TEST(knows_roots_and_changes_of_stack_by_their_names)
{
    static const enum cfi_kind kinds[COUNT] = {
        CFI_NONE, CFI_ROOT, CFI_SWITCH, CFI_SWITCH, CFI_NONE, CFI_ROOT, CFI_NONE,
    };
    struct cfi_builder *builder = cfi_builder_new();
    cleanup_(freep) struct program *program = make_program(".gopclntab");
    put_table(program, GO_1_20, text_of(program), 0);
    cleanup_(closep) int fd = elf_image_make(&program->image);
    assert_int_equal(eh_frame_read(fd, builder), 0);
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t start = text_of(program) + functions[i].start;
        assert_int_equal(cfi_table_find(&made.table, start)->kind, kinds[i]);
        assert_int_equal(cfi_table_find(&made.table, start + 0x3f)->kind, kinds[i]);
    }
}
