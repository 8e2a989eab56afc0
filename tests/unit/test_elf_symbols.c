/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Real files against nm as the oracle, and files that have been damaged. nm knows sizes and names;
 * where it shows a function at an address, the table's name for that address must be one that nm
 * gives for it. An indirect function (nm's `i`) gives its resolver no name.
 */
#include "elf_symbols.h"

#include "built_tables.h"
#include "elf_image.h"

#include <errno.h>
#include <inttypes.h>

#define LINE_BYTES 16384

/* What assembly leaves behind: a label in code, a mark for tools in code, a global mark where a
 * function begins, a label in data. */
__asm__(".pushsection .text.test_labels, \"ax\"\n"
        "\"$test_mark\": .byte 0x90\n"
        "test_code_label: .byte 0x90\n"
        ".globl test_section_mark\n"
        "test_section_mark:\n"
        ".type test_marked_function, @function\n"
        ".size test_marked_function, 1\n"
        "test_marked_function: .byte 0x90\n"
        ".popsection\n"
        ".pushsection .data.test_labels, \"aw\"\n"
        "test_data_label: .byte 0\n"
        ".popsection\n");

/* What elf_symbols_read() says; `ret` is left alone if that is an error. */
static int read_table(int fd, struct made_symbols *ret)
{
    struct symbol_builder *builder = symbol_builder_new();
    assert_non_null(builder);
    int r = elf_symbols_read(fd, -1, builder);
    if (r == 0) {
        *ret = finish_symbols(builder);
    } else {
        symbol_builder_free(builder);
    }
    return r;
}

static struct made_symbols read_good(int fd)
{
    struct made_symbols made = {.bytes = NULL};
    assert_int_equal(read_table(fd, &made), 0);
    return made;
}

static void expect_error(int fd, int error)
{
    struct made_symbols made = {.bytes = NULL};
    assert_int_equal(read_table(fd, &made), error);
}

/* Of whatever may be broken: a sanitizer sees what is wrong. */
static void read_any(int fd)
{
    cleanup_(free_symbols) struct made_symbols made = {.bytes = NULL};
    (void)read_table(fd, &made);
}

struct known {
    uint64_t address;
    char *name;
};

struct knowledge {
    struct known *all;
    size_t count;
    size_t sized_count;
};

static struct knowledge ask_nm(const char *options, const char *path)
{
    static char line[LINE_BYTES];
    struct knowledge knowledge = {0};
    (void)snprintf(line, sizeof line, "LC_ALL=C nm -P --defined-only %s '%s' 2>/dev/null", options,
                   path);
    FILE *nm = popen(line, "r");
    assert_non_null(nm);
    while (fgets(line, sizeof line, nm) != NULL) { /* "NAME TYPE ADDRESS [SIZE]" */
        static char name[LINE_BYTES];
        char type = '\0';
        uint64_t address = 0;
        uint64_t size = 0;
        int count = sscanf(line, "%s %c %" SCNx64 " %" SCNx64, name, &type, &address, &size);
        if (count >= 3 && strchr("TtWw", type) != NULL) {
            name[strcspn(name, "@")] = '\0';
            knowledge.all = reallocarray(knowledge.all, knowledge.count + 1, sizeof *knowledge.all);
            knowledge.all[knowledge.count++] = (struct known){address, strdup(name)};
            knowledge.sized_count += size > 0;
        }
    }
    (void)pclose(nm);
    return knowledge;
}

static bool is_known(const struct knowledge *knowledge, uint64_t address, const char *name)
{
    for (size_t i = 0; i < knowledge->count; i++) {
        if (knowledge->all[i].address == address && strcmp(knowledge->all[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Every symbol of the table is one that nm shows, and most that nm shows are in the table. */
static void compare_with_nm(const char *path, const char *options)
{
    cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    cleanup_(free_symbols) struct made_symbols made = read_good(fd);
    const struct symbol_table *table = &made.table;
    struct knowledge knowledge = ask_nm(options, path);
    size_t covered = 0;
    assert_true(table->symbol_count > 10);
    for (size_t i = 0; i < table->symbol_count; i++) {
        const char *name = symbol_table_name(table, i);
        char plain[SYMBOL_NAME_BYTES_MAX + 1];
        (void)snprintf(plain, sizeof plain, "%.*s", (int)strcspn(name, "@"), name);
        /* nm knows nothing of linkage tables. */
        bool is_plt = strlen(name) > 4 && strcmp(name + strlen(name) - 4, "@plt") == 0;
        if (!is_plt && !is_known(&knowledge, table->symbols[i].start, plain)) {
            fail_msg("%s: %s at %" PRIx64 " is not known to nm", path, name,
                     table->symbols[i].start);
        }
    }
    for (size_t i = 0; i < knowledge.count; i++) {
        ptrdiff_t index = symbol_table_find(table, knowledge.all[i].address);
        covered += index >= 0 && table->symbols[index].start == knowledge.all[i].address;
    }
    assert_true(covered >= knowledge.sized_count);
    for (size_t i = 0; i < knowledge.count; i++) {
        free(knowledge.all[i].name);
    }
    free(knowledge.all);
}

TEST(agrees_with_nm_on_the_c_library)
{
    compare_with_nm(libc_path(), "-D");
}

TEST(agrees_with_nm_on_this_program)
{
    char path[4096];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(bytes > 0);
    path[bytes] = '\0';
    compare_with_nm(path, "");
}

static ptrdiff_t find_symbol(const struct symbol_table *table, const char *name)
{
    for (size_t i = 0; i < table->symbol_count; i++) {
        if (strcmp(symbol_table_name(table, i), name) == 0) {
            return (ptrdiff_t)i;
        }
    }
    return -1;
}

TEST(takes_labels_of_code_only_and_functions_before_them)
{
    cleanup_(closep) int fd = open_self();
    cleanup_(free_symbols) struct made_symbols made = read_good(fd);
    assert_true(find_symbol(&made.table, "test_code_label") >= 0);
    assert_int_equal(find_symbol(&made.table, "$test_mark"), -1);
    assert_int_equal(find_symbol(&made.table, "test_data_label"), -1);
    assert_true(find_symbol(&made.table, "test_marked_function") >= 0);
    assert_int_equal(find_symbol(&made.table, "test_section_mark"), -1);
}

/* A library of a section of code, symbols in it, and call frames. */
#define CODE_BYTES   256
#define SYMBOLS_MAX  5
#define FRAMES_MAX   3
#define SECTION_CODE 1

struct placed {
    const char *name;
    uint64_t at; /* in the code */
    uint64_t size_bytes;
    unsigned char type;
    unsigned char bind;
};

struct framed {
    uint64_t at;
    uint64_t size_bytes;
};

static const uint8_t cie[] = {22,   0,  0, 0, 0,    0, 0, 0,    1, 'z', 'R', 0, 1,
                              0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1, 0,   0,   0, 0};

/* An FDE with addresses, and no data. */
struct frame {
    uint32_t length;
    uint32_t cie_distance;
    uint64_t range[2];
    uint8_t data[8];
} __attribute__((packed));

struct library {
    uint8_t frames[sizeof cie + FRAMES_MAX * sizeof(struct frame)];
    Elf64_Sym symbols[SYMBOLS_MAX + 1];
    char names[64];
    struct elf_image image;
    uint64_t code; /* where it is */
};

static void put_placed(struct library *library, const struct placed *placed, size_t count)
{
    size_t used = 1;
    for (size_t i = 0; i < count && placed[i].name != NULL; i++) {
        library->symbols[i + 1] = (Elf64_Sym){
            .st_name = (Elf64_Word)used,
            .st_info = (unsigned char)ELF64_ST_INFO(placed[i].bind, placed[i].type),
            .st_shndx = SECTION_CODE,
            .st_value = library->code + placed[i].at,
            .st_size = placed[i].size_bytes,
        };
        memcpy(library->names + used, placed[i].name, strlen(placed[i].name) + 1);
        used += strlen(placed[i].name) + 1;
    }
}

static void put_framed(struct library *library, const struct framed *framed, size_t count)
{
    memcpy(library->frames, cie, sizeof cie);
    for (size_t i = 0; i < count && framed[i].at > 0; i++) {
        size_t at = sizeof cie + i * sizeof(struct frame);
        struct frame frame = {
            .length = sizeof frame - sizeof frame.length,
            .cie_distance = (uint32_t)at + sizeof frame.length,
            .range = {library->code + framed[i].at, framed[i].size_bytes},
        };
        memcpy(library->frames + at, &frame, sizeof frame);
    }
}

static struct made_symbols read_library(const struct placed placed[SYMBOLS_MAX],
                                        const struct framed framed[FRAMES_MAX])
{
    static const uint8_t code[CODE_BYTES];
    struct library library = {
        .image = {
            .sections = {{".text", SHT_PROGBITS, SHF_EXECINSTR, code, sizeof code, 0, 0},
                         {".eh_frame", SHT_PROGBITS, SHF_ALLOC, library.frames,
                          sizeof library.frames, 0, 0},
                         {".symtab", SHT_SYMTAB, 0, library.symbols, sizeof library.symbols, 4,
                          sizeof *library.symbols},
                         {".strtab", SHT_STRTAB, 0, library.names, sizeof library.names, 0, 0}},
            .section_count = 4}};
    library.code = elf_image_offset(&library.image, SECTION_CODE);
    put_placed(&library, placed, SYMBOLS_MAX);
    put_framed(&library, framed, FRAMES_MAX);
    cleanup_(closep) int fd = elf_image_make(&library.image);
    return read_good(fd);
}

/* "0-10 name" for each stretch of code with one name, "0-10" without one. */
static void expect_library(const struct placed placed[SYMBOLS_MAX],
                           const struct framed framed[FRAMES_MAX], const char *expected)
{
    char words[512] = "";
    cleanup_(free_symbols) struct made_symbols made = read_library(placed, framed);
    const uint64_t code = elf_image_offset(&(struct elf_image){.section_count = 4}, SECTION_CODE);
    for (uint64_t at = 0, next = 0; at < CODE_BYTES; at = next) {
        const char *name = symbol_at(&made.table, code + at);
        while (next < CODE_BYTES && strcmp(symbol_at(&made.table, code + next), name) == 0) {
            next++;
        }
        size_t used = strlen(words);
        (void)snprintf(words + used, sizeof words - used, "%s%" PRIx64 "-%" PRIx64 "%s%s",
                       at == 0 ? "" : ", ", at, next, name[0] == '\0' ? "" : " ", name);
    }
    assert_string_equal(words, expected);
}

#define SYMBOLS(...) ((const struct placed[SYMBOLS_MAX]){__VA_ARGS__})
#define FRAMES(...)  ((const struct framed[FRAMES_MAX]){__VA_ARGS__})
#define NO_FRAMES    FRAMES({0, 0})

TEST(gives_a_resolver_no_name_but_its_own)
{
    const struct placed work = {"work", 0x40, 0x20, STT_GNU_IFUNC, STB_GLOBAL};
    expect_library(SYMBOLS(work), NO_FRAMES, "0-100");
    expect_library(SYMBOLS(work, {"choose", 0x40, 0x20, STT_FUNC, STB_LOCAL}), NO_FRAMES,
                   "0-40, 40-60 choose, 60-100");
    /* Whatever has no size has the resolver's there, and none of it before or within. */
    expect_library(SYMBOLS({"mark", 0x40, 0, STT_NOTYPE, STB_LOCAL}, work), NO_FRAMES,
                   "0-40, 40-60 mark, 60-100");
    expect_library(SYMBOLS(work, {"before", 0x10, 0, STT_FUNC, STB_GLOBAL},
                           {"within", 0x50, 0, STT_NOTYPE, STB_LOCAL},
                           {"behind", 0x70, 0, STT_FUNC, STB_LOCAL}),
                   NO_FRAMES, "0-10, 10-40 before, 40-70, 70-100 behind");
    expect_library(SYMBOLS({"before", 0x10, 0, STT_FUNC, STB_GLOBAL},
                           {"work", 0x40, 0, STT_GNU_IFUNC, STB_GLOBAL}),
                   NO_FRAMES, "0-10, 10-40 before, 40-100");
}

TEST(ends_a_symbol_without_a_size_where_its_call_frames_do)
{
    const struct placed first = {"first", 0x10, 0, STT_FUNC, STB_GLOBAL};
    const struct placed last = {"last", 0x80, 0, STT_NOTYPE, STB_LOCAL};
    expect_library(SYMBOLS(first, last), NO_FRAMES, "0-10, 10-80 first, 80-100 last");
    expect_library(SYMBOLS(first, last), FRAMES({0x80, 8}, {0x10, 0x18}),
                   "0-10, 10-28 first, 28-80, 80-88 last, 88-100");
    /* A label in it ends where it ends; two names are of one function. */
    expect_library(SYMBOLS(first, last, {"label", 0x20, 0, STT_NOTYPE, STB_LOCAL},
                           {"_first", 0x10, 0, STT_FUNC, STB_GLOBAL}),
                   FRAMES({0x10, 0x18}), "0-10, 10-20 first, 20-28 label, 28-80, 80-100 last");
    /* What has no call frames ends before what has some. */
    expect_library(SYMBOLS(last, first), FRAMES({0xa0, 8}, {0x30, 8}, {0x20, 4}),
                   "0-10, 10-20 first, 20-80, 80-a0 last, a0-100");
    /* Of entries that contradict each other the nearest end counts, and an empty one is none. */
    expect_library(SYMBOLS(first, last), FRAMES({0x10, 0x18}, {0x10, 0x30}, {0x18, 4}),
                   "0-10, 10-18 first, 18-80, 80-100 last");
    expect_library(SYMBOLS(first, last), FRAMES({0x10, 0}, {0x80, UINT64_MAX}),
                   "0-10, 10-80 first, 80-100 last");
    /* A size says more. */
    expect_library(SYMBOLS({"sized", 0x10, 0x40, STT_FUNC, STB_GLOBAL}), FRAMES({0x10, 0x18}),
                   "0-10, 10-50 sized, 50-100");
}

TEST(names_a_function_of_this_program_by_its_file_offset)
{
    uint64_t vaddr = 0;
    cleanup_(closep) int fd = open_self();
    cleanup_(free_symbols) struct made_symbols made = read_good(fd);
    const struct symbol_table *table = &made.table;
    assert_true(table->segment_count >= 1);
    assert_true(table->build_id_bytes == 0 || table->build_id_bytes == 20);

    for (size_t i = 0; i < table->segment_count; i++) {
        assert_true(symbol_table_vaddr(table, table->segments[i].offset, &vaddr));
        assert_int_equal(vaddr, table->segments[i].vaddr);
    }
    assert_true(find_symbol(table, "find_symbol") >= 0);
    assert_true(find_symbol(table, "_start") >= 0);
    /* It has no size, and what follows it in memory is the PLT. */
    ptrdiff_t init = find_symbol(table, "_init");
    assert_true(init < 0 || table->symbols[init].size_bytes < 64);
}

TEST(refuses_what_is_no_program)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {"", 0}, {"x", 1}, {ELFMAG, SELFMAG}, {"!<arch>\n", 8}, {"#!/bin/sh\nexit 0\n", 17},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(closep) int fd = memory_file(cases[i].bytes, cases[i].size);
        expect_error(fd, -EBADMSG);
    }

    size_t size = 0;
    cleanup_(freep) uint8_t *self = read_self(&size);
    ((Elf64_Ehdr *)(void *)self)->e_type = ET_REL;
    cleanup_(closep) int fd = memory_file(self, size);
    expect_error(fd, -EBADMSG);
}

TEST(survives_files_cut_anywhere)
{
    size_t size = 0;
    cleanup_(freep) uint8_t *self = read_self(&size);
    cleanup_(closep) int fd = memory_file(self, size);
    for (size_t step = 0; step < 400; step++) {
        size_t length = size - size * step / 400;
        assert_int_equal(ftruncate(fd, (off_t)length), 0);
        read_any(fd);
    }
}

/* Where libelf and we take numbers from: the headers, and the symbols. */
TEST(survives_corrupted_headers_and_symbols)
{
    size_t size = 0;
    cleanup_(freep) uint8_t *self = read_self(&size);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)self;
    cleanup_(closep) int fd = memory_file(self, size);
    srand(1);
    for (int run = 0; run < 3000; run++) {
        size_t at = (size_t)rand() % sizeof *header;
        if (run % 3 == 1) {
            at = header->e_phoff + (size_t)rand() % (header->e_phnum * sizeof(Elf64_Phdr));
        } else if (run % 3 == 2) {
            at = header->e_shoff + (size_t)rand() % (header->e_shnum * sizeof(Elf64_Shdr));
        }
        uint8_t value = rand() % 2 == 0 ? (uint8_t)rand() : 0xff;
        assert_int_equal(pwrite(fd, &value, 1, (off_t)at), 1);
        read_any(fd);
        if (run % 4 == 3) {
            assert_int_equal(pwrite(fd, self, size, 0), size);
        }
    }
    /* Sections that go past all addresses. */
    Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(self + header->e_shoff);
    for (size_t i = 0; i < header->e_shnum; i++) {
        sections[i].sh_addr = UINT64_MAX;
    }
    assert_int_equal(pwrite(fd, self, size, 0), size);
    read_any(fd);
}

#define HOSTILE_SYMBOLS ((size_t)100000)
#define HOSTILE_STRING  ((size_t)600000)

/* A program whose functions all stand at one long string, each `step` bytes further into it. */
static int hostile_file(size_t step)
{
    static Elf64_Sym symbols[HOSTILE_SYMBOLS];
    static char names[HOSTILE_STRING];
    for (size_t i = 0; i < HOSTILE_SYMBOLS; i++) {
        symbols[i] = (Elf64_Sym){.st_name = (Elf64_Word)(1 + i * step),
                                 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                 .st_shndx = 1,
                                 .st_value = 0x1000 + i * 16,
                                 .st_size = 16};
    }
    for (size_t i = 0; i < sizeof names - 1; i++) { /* no two names that begin apart are equal */
        names[i] = (char)('a' + (step > 0 ? rand() % 23 : 0));
    }
    const struct elf_image image = {
        .sections = {{".symtab", SHT_SYMTAB, 0, symbols, sizeof symbols, 2, sizeof *symbols},
                     {".strtab", SHT_STRTAB, 0, names, sizeof names, 0, 0}},
        .section_count = 2,
    };
    return elf_image_make(&image);
}

TEST(makes_no_large_table_of_a_small_file)
{
    size_t size_bytes = 0;
    cleanup_(freep) void *bytes = NULL;
    cleanup_(closep) int fd = hostile_file(0);
    struct symbol_builder *builder = symbol_builder_new();
    assert_int_equal(elf_symbols_read(fd, -1, builder), 0);
    assert_int_equal(symbol_builder_finish(builder, &bytes, &size_bytes), 0);
    assert_in_range(size_bytes, HOSTILE_SYMBOLS * sizeof(struct symbol),
                    HOSTILE_SYMBOLS * sizeof(struct symbol) + (size_t)2 * SYMBOL_NAME_BYTES_MAX);
    symbol_builder_free(builder);

    /* Names that lie inside each other are none that can be kept once. */
    cleanup_(closep) int other_fd = hostile_file(5);
    expect_error(other_fd, -E2BIG);
    /* And what another file has to say of it makes that no better. */
    builder = symbol_builder_new();
    assert_int_equal(elf_symbols_read(other_fd, other_fd, builder), -E2BIG);
    symbol_builder_free(builder);
}

/* How many symbols are read of hostile_file(0) when its table claims to have so many bytes, all but
 * the first of which are a hole. */
static size_t count_in_hole(uint64_t table_bytes)
{
    const size_t section =
        sizeof(Elf64_Ehdr) + ELF_IMAGE_SEGMENTS_MAX * sizeof(Elf64_Phdr) + sizeof(Elf64_Shdr);
    cleanup_(closep) int fd = hostile_file(0);
    assert_int_equal(ftruncate(fd, (off_t)1 << 30), 0);
    assert_int_equal(pwrite(fd, &table_bytes, sizeof table_bytes,
                            (off_t)(section + offsetof(Elf64_Shdr, sh_size))),
                     sizeof table_bytes);
    cleanup_(free_symbols) struct made_symbols made = read_good(fd);
    return made.table.symbol_count;
}

TEST(leaves_a_table_alone_that_would_keep_others_waiting)
{
    const uint64_t limit_bytes = UINT64_C(128) << 20;
    assert_int_equal(count_in_hole(HOSTILE_SYMBOLS * sizeof(Elf64_Sym)), HOSTILE_SYMBOLS - 1);
    assert_int_equal(count_in_hole(limit_bytes + sizeof(Elf64_Sym)), 0);
}
