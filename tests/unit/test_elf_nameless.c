/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Symbols are the same with their names and without: those that have none with an end are left out,
 * wherever the last end is.
 */
#include "elf_file.h"

#include "cleanup.h"
#include "elf_image.h"
#include "unit_test.h"

#define NAMES_BYTES 10000
#define SYMBOLS     5

struct seen {
    uint64_t values[SYMBOLS];
    size_t count;
    bool has_names;
};

static int on_symbol(const GElf_Sym *symbol, const char *name, void *userdata)
{
    struct seen *seen = userdata;
    assert_true(seen->count < SYMBOLS);
    assert_true((name != NULL) == seen->has_names);
    seen->values[seen->count++] = symbol->st_value;
    return 0;
}

/* Of symbols whose names begin in steps of 2,500 bytes, those with a name, where the last NUL of
 * all names is at `last_end`; NAMES_BYTES: there is none. */
static size_t count_seen(size_t last_end)
{
    static char names[NAMES_BYTES];
    Elf64_Sym symbols[SYMBOLS] = {{.st_name = 0}};
    memset(names, 'n', sizeof names);
    if (last_end < sizeof names) {
        names[last_end] = '\0';
    }
    for (size_t i = 1; i < SYMBOLS; i++) {
        symbols[i].st_name = (Elf64_Word)((i - 1) * 2500);
        symbols[i].st_value = i;
    }
    const struct elf_image image = {
        .sections = {{".symtab", SHT_SYMTAB, 0, symbols, sizeof symbols, 2, sizeof *symbols},
                     {".strtab", SHT_STRTAB, 0, names, sizeof names, 0, 0}},
        .section_count = 2,
    };
    struct elf_file file;
    struct seen named = {.has_names = true};
    struct seen nameless = {.count = 0};
    cleanup_(closep) int fd = elf_image_make(&image);
    assert_int_equal(elf_file_init(&file, fd), 0);
    assert_int_equal(elf_file_nameless(&file, on_symbol, &nameless), 0);
    assert_int_equal(elf_file_symbols(&file, on_symbol, &named), 0);
    elf_file_done(&file);
    assert_int_equal(nameless.count, named.count);
    assert_memory_equal(nameless.values, named.values, sizeof named.values);
    return nameless.count;
}

TEST(leaves_out_what_has_no_end)
{
    assert_int_equal(count_seen(NAMES_BYTES - 1), 4);
    assert_int_equal(count_seen(7501), 4);
    assert_int_equal(count_seen(7500), 3);
    assert_int_equal(count_seen(5904), 3);
    assert_int_equal(count_seen(5903), 3);
    assert_int_equal(count_seen(1807), 1);
    assert_int_equal(count_seen(1), 1);
    assert_int_equal(count_seen(0), 0);
    assert_int_equal(count_seen(NAMES_BYTES), 0);
}
