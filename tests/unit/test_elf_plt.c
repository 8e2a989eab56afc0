/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A library with one linkage table of each kind, made by hand, in which every name is known.
 */
#include "elf_plt.h"

#include "built_tables.h"
#include "elf_image.h"

/* The sections of the image, by number. */
enum section {
    SECTION_PLT = 1,
    SECTION_PLT_SEC,
    SECTION_PLT_GOT,
    SECTION_RELA,
    SECTION_DYNSYM,
    SECTION_DYNSTR,
    SECTIONS = SECTION_DYNSTR,
};

#define SLOT(n)      (UINT64_C(0x100000) + 8 * (n))
#define SLOT_NO_NAME SLOT(90)
struct tables {
    uint8_t plt[48];
    uint8_t plt_sec[32];
    uint8_t plt_got[16];
    Elf64_Rela relocations[8];
    Elf64_Sym symbols[4];
    char names[32];
    struct elf_image image;
};

/* Writes an entry whose jump begins `at` bytes into it. */
static void put_entry(const struct tables *tables, uint8_t *code, enum section section,
                      size_t entry, size_t at, uint64_t slot)
{
    uint64_t next = elf_image_offset(&tables->image, section) + entry + at + 6;
    int32_t distance = (int32_t)(slot - next);
    memset(code + entry, 0x90, section == SECTION_PLT_GOT ? 8 : 16);
    memcpy(code + entry + at, "\xff\x25", 2);
    memcpy(code + entry + at + 2, &distance, sizeof distance);
}

static struct made_symbols read_image(const struct elf_image *image)
{
    struct elf_file file;
    cleanup_(closep) int fd = elf_image_make(image);
    struct symbol_builder *builder = symbol_builder_new();
    assert_int_equal(elf_file_init(&file, fd), 0);
    assert_int_equal(elf_plt_add(&file, builder), 0);
    elf_file_done(&file);
    return finish_symbols(builder);
}

static Elf64_Rela relocation(uint64_t slot, uint32_t symbol, uint32_t type)
{
    return (Elf64_Rela){.r_offset = slot, .r_info = ELF64_R_INFO((uint64_t)symbol, type)};
}

/* Three functions in tables of every layout: an entry that leads nowhere, one with a mark for
 * indirect branches in front, one of eight bytes. */
static void fill_tables(struct tables *tables)
{
    memset(tables, 0, sizeof *tables);
    memcpy(tables->names, "\0one\0two\0three", 15);
    tables->symbols[1].st_name = 1;
    tables->symbols[2].st_name = 5;
    tables->symbols[3].st_name = 9;
    tables->relocations[0] = relocation(SLOT(3), 3, R_X86_64_GLOB_DAT);
    tables->relocations[1] = relocation(SLOT(1), 1, R_X86_64_JUMP_SLOT);
    tables->relocations[2] = relocation(SLOT(2), 2, R_X86_64_JUMP_SLOT);
    tables->relocations[3] = relocation(SLOT_NO_NAME, 0, R_X86_64_IRELATIVE);
    tables->relocations[4] = relocation(SLOT(4), 77, R_X86_64_JUMP_SLOT); /* no such symbol */
    tables->image = (struct elf_image){
        .sections = {{".plt", SHT_PROGBITS, SHF_EXECINSTR, tables->plt, 48, 0, 16},
                     {".plt.sec", SHT_PROGBITS, SHF_EXECINSTR, tables->plt_sec, 32, 0, 0},
                     {".plt.got", SHT_PROGBITS, SHF_EXECINSTR, tables->plt_got, 16, 0, 8},
                     {".rela.plt", SHT_RELA, 0, tables->relocations, sizeof tables->relocations,
                      SECTION_DYNSYM, sizeof *tables->relocations},
                     {".dynsym", SHT_DYNSYM, 0, tables->symbols, sizeof tables->symbols,
                      SECTION_DYNSTR, sizeof *tables->symbols},
                     {".dynstr", SHT_STRTAB, 0, tables->names, sizeof tables->names, 0, 0}},
        .section_count = SECTIONS,
    };
    put_entry(tables, tables->plt, SECTION_PLT, 0, 6, SLOT_NO_NAME + 8);
    put_entry(tables, tables->plt, SECTION_PLT, 16, 0, SLOT(1));
    put_entry(tables, tables->plt, SECTION_PLT, 32, 0, SLOT_NO_NAME);
    put_entry(tables, tables->plt_sec, SECTION_PLT_SEC, 0, 4, SLOT(2));
    put_entry(tables, tables->plt_sec, SECTION_PLT_SEC, 16, 5, SLOT(4));
    put_entry(tables, tables->plt_got, SECTION_PLT_GOT, 0, 0, SLOT(3));
    memset(tables->plt_got + 8, 0x90, 8);
}

TEST(names_the_entries_of_every_layout)
{
    struct tables tables;
    fill_tables(&tables);
    const struct {
        uint64_t start;
        uint32_t size_bytes;
        const char *name;
    } expected[] = {
        {elf_image_offset(&tables.image, SECTION_PLT) + 16, 16, "one@plt"},
        {elf_image_offset(&tables.image, SECTION_PLT_SEC), 16, "two@plt"},
        {elf_image_offset(&tables.image, SECTION_PLT_GOT), 8, "three@plt"},
    };
    cleanup_(free_symbols) struct made_symbols made = read_image(&tables.image);
    assert_int_equal(made.table.symbol_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(made.table.symbols[i].start, expected[i].start);
        assert_int_equal(made.table.symbols[i].size_bytes, expected[i].size_bytes);
        assert_string_equal(symbol_table_name(&made.table, i), expected[i].name);
    }
}

TEST(names_nothing_by_relocations_that_are_broken)
{
    static const struct {
        enum section section;
        uint32_t type;
        uint32_t link;
        size_t size_bytes;
    } cases[] = {
        {SECTION_RELA, SHT_PROGBITS, SECTION_DYNSYM, 24},
        {SECTION_RELA, SHT_RELA, SECTION_DYNSTR, 24},
        {SECTION_RELA, SHT_RELA, 99, 24},
        {SECTION_RELA, SHT_RELA, SECTION_DYNSYM, 23},
        {SECTION_DYNSYM, SHT_NOBITS, SECTION_DYNSTR, 96},
        {SECTION_DYNSYM, SHT_DYNSYM, 99, 96},
        {SECTION_DYNSYM, SHT_DYNSYM, SECTION_DYNSTR, 5},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tables tables;
        fill_tables(&tables);
        struct elf_image_section *section = &tables.image.sections[cases[i].section - 1];
        section->type = cases[i].type;
        section->link = cases[i].link;
        section->size_bytes = cases[i].size_bytes;
        cleanup_(free_symbols) struct made_symbols made = read_image(&tables.image);
        assert_int_equal(made.table.symbol_count, 0);
    }
}

TEST(takes_no_entries_from_a_section_without_code)
{
    struct tables tables;
    fill_tables(&tables);
    tables.image.sections[SECTION_PLT_SEC - 1].type = SHT_NOBITS;
    cleanup_(free_symbols) struct made_symbols made = read_image(&tables.image);
    assert_int_equal(made.table.symbol_count, 2);
}

/* Every single bit of what the names come from. */
TEST(survives_bits_that_are_flipped)
{
    struct tables tables;
    fill_tables(&tables);
    uint8_t *bytes = (uint8_t *)tables.relocations;
    for (size_t bit = 0; bit < 8 * (sizeof tables.relocations + sizeof tables.symbols); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cleanup_(free_symbols) struct made_symbols made = read_image(&tables.image);
        assert_in_range(made.table.symbol_count, 0, 5);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}
