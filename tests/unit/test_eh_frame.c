/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sections of CIEs and FDEs, assembled by hand from the Linux Standard Base, 10.6, in files of
 * their own. Functions are described in code that starts at CODE_START.
 */
#include "eh_frame.h"

#include "built_tables.h"
#include "cfi_words.h"
#include "eh_frame_file.h"

#define SECTION_MAX ((size_t)1 << 20)
#define BODY_MAX    40

/* CFA = rsp + 8, return address at CFA - 8. */
#define PROGRAM 0x0c, 7, 8, 0x90, 1

/* Code alignment 1, data alignment -8, return address in column 16. */
#define ALIGNMENT 1, 0x78, 16

/* CODE_START as eight bytes, and a size of 0x10. */
#define AT_START 0, 0, 0x10, 0, 0, 0, 0, 0
#define SIZE_16  0x10, 0, 0, 0, 0, 0, 0, 0

static const uint8_t plain_cie[] = {1, 'z', 'R', 0, ALIGNMENT, 1, 0x00, PROGRAM};

/* Functions without callers, with a name that says so, and what looks like it, in a file of Go's.
 */
__asm__(".pushsection .go.buildinfo, \"a\"\n"
        ".skip 8\n"
        ".popsection\n"
        ".pushsection .text.test_roots, \"ax\"\n"
        ".globl test_root, test_no_root, test_certain, test_label, test_switch, test_behind\n"
        ".type \"runtime.goexit.abi0\", @function\n"
        "test_root:\n"
        "\"runtime.goexit.abi0\": .skip 24\n"
        ".size \"runtime.goexit.abi0\", 24\n"
        ".type \"runtime.systemstack_switch\", @function\n"
        "test_no_root:\n"
        "\"runtime.systemstack_switch\": .skip 8\n"
        ".size \"runtime.systemstack_switch\", 8\n"
        ".type __start_context, @function\n"
        ".skip 8\n"
        "test_certain:\n"
        "__start_context: .cfi_startproc\n"
        ".skip 8\n"
        ".cfi_endproc\n"
        ".size __start_context, 8\n"
        "test_label:\n"
        "\"runtime.mcall\": .cfi_startproc\n"
        ".skip 8\n"
        ".cfi_endproc\n"
        ".type time.now, @function\n"
        "test_switch:\n"
        "time.now: .cfi_startproc\n"
        ".skip 8\n"
        ".cfi_def_cfa_offset 24\n"
        ".skip 8\n"
        ".cfi_def_cfa rbp, 16\n"
        ".cfi_undefined rip\n"
        ".skip 8\n"
        ".cfi_endproc\n"
        ".size time.now, 24\n"
        ".type \"runtime.nanotime1\", @function\n"
        "\"runtime.nanotime1\": .skip 8\n"
        ".size \"runtime.nanotime1\", 8\n"
        "test_behind: .cfi_startproc\n"
        ".skip 8\n"
        ".cfi_endproc\n"
        ".popsection\n");
extern const char test_switch, test_behind, test_certain, test_label, test_root, test_no_root;
extern const char __executable_start;

struct section {
    uint8_t *bytes;
    size_t size_bytes;
    uint32_t cie; /* where the last CIE is */
};

static void put(struct section *section, const void *bytes, size_t size_bytes)
{
    assert_true(size_bytes <= SECTION_MAX - section->size_bytes);
    memcpy(section->bytes + section->size_bytes, bytes, size_bytes);
    section->size_bytes += size_bytes;
}

static void put_entry(struct section *section, uint32_t id, const void *body, size_t size_bytes)
{
    uint32_t length = (uint32_t)size_bytes + 4;
    put(section, &length, sizeof length);
    put(section, &id, sizeof id);
    put(section, body, size_bytes);
}

static void put_cie(struct section *section, const uint8_t *body, size_t size_bytes)
{
    section->cie = (uint32_t)section->size_bytes;
    put_entry(section, 0, body, size_bytes);
}

static void put_fde(struct section *section, const uint8_t *body, size_t size_bytes)
{
    put_entry(section, (uint32_t)section->size_bytes + 4 - section->cie, body, size_bytes);
}

/* A function with the plain CIE, whose CFA is rsp + offset. */
static void put_function(struct section *section, uint64_t start, uint64_t size_bytes,
                         uint8_t offset)
{
    uint8_t body[19] = {[17] = 0x0e};
    memcpy(body, &start, sizeof start);
    memcpy(body + 8, &size_bytes, sizeof size_bytes);
    body[18] = offset;
    put_fde(section, body, sizeof body);
}

/* cleanup_(free_section) */
static struct section make_section(void)
{
    struct section section = {.bytes = malloc(SECTION_MAX)};
    assert_non_null(section.bytes);
    return section;
}

static void free_section(struct section *section)
{
    free(section->bytes);
}

/* A section that begins with the plain CIE. */
static struct section begin_section(void)
{
    struct section section = make_section();
    put_cie(&section, plain_cie, sizeof plain_cie);
    return section;
}

static int read_fd(int fd, struct made_cfi *ret)
{
    struct cfi_builder *builder = cfi_builder_new();
    int r = eh_frame_read(fd, builder);
    if (r == 0) {
        *ret = finish_cfi(builder);
    } else {
        cfi_builder_free(builder);
    }
    return r;
}

static struct made_cfi read_file(const struct eh_frame_file *file)
{
    struct made_cfi outcome = {.bytes = NULL};
    cleanup_(closep) int fd = eh_frame_file_make(file);
    assert_int_equal(read_fd(fd, &outcome), 0);
    return outcome;
}

/* The file of a section, and what else it has. */
#define FILE_OF(section, ...)                                                                      \
    (&(struct eh_frame_file){.eh_frame = (section).bytes,                                          \
                             .eh_frame_bytes = (section).size_bytes,                               \
                             .machine = EM_X86_64,                                                 \
                             __VA_ARGS__})

static struct made_cfi read_section(const struct section *section)
{
    return read_file(FILE_OF(*section, .claimed_bytes = 0));
}

static int32_t offset_at(const struct made_cfi *outcome, uint64_t vaddr)
{
    return cfi_table_find(&outcome->table, vaddr)->cfa_offset;
}

static enum cfi_kind kind_at(const struct made_cfi *outcome, uint64_t vaddr)
{
    return (enum cfi_kind)cfi_table_find(&outcome->table, vaddr)->kind;
}

struct form {
    const char *what;
    uint8_t cie[BODY_MAX];
    size_t cie_bytes;
    uint8_t fde[BODY_MAX];
    size_t fde_bytes;
    const char *words;
};

/* The relative pointer is at EH_FRAME_START, and 8 + 14 bytes of CIE, and 8. */
static const struct form forms[] = {
    {"no augmentation", BYTES(1, 0, ALIGNMENT, PROGRAM), BYTES(AT_START, SIZE_16), ENTRY},
    {"version 3", BYTES(3, 0, 1, 0x78, 0x90, 0x00, PROGRAM), BYTES(AT_START, SIZE_16), ENTRY},
    {"version 4", BYTES(4, 0, 8, 0, ALIGNMENT, PROGRAM), BYTES(AT_START, SIZE_16), ENTRY},
    {"relative to itself", BYTES(1, 'z', 'R', 0, ALIGNMENT, 1, 0x1b, PROGRAM),
     BYTES(0xaa, 0xfc, 0x0f, 0x00, 0x10, 0, 0, 0, 0), ENTRY},
    {"a personality behind a pointer, and data",
     BYTES(1, 'z', 'P', 'L', 'R', 0, ALIGNMENT, 7, 0x9b, 1, 2, 3, 4, 0x1b, 0x00, PROGRAM),
     BYTES(AT_START, SIZE_16, 4, 9, 9, 9, 9), ENTRY},
    {"no personality", BYTES(1, 'z', 'P', 'R', 0, ALIGNMENT, 2, 0xff, 0x00, PROGRAM),
     BYTES(AT_START, SIZE_16, 0), ENTRY},
    {"a signal frame", BYTES(1, 'z', 'R', 'S', 0, ALIGNMENT, 1, 0x00, PROGRAM),
     BYTES(AT_START, SIZE_16, 0), ENTRY " signal"},
    {"a signal frame without data", BYTES(1, 'S', 0, ALIGNMENT, PROGRAM), BYTES(AT_START, SIZE_16),
     ENTRY " signal"},
    {"a letter of another machine", BYTES(1, 'z', 'B', 'R', 0, ALIGNMENT, 1, 0x00, PROGRAM),
     BYTES(AT_START, SIZE_16, 0), ENTRY},
    {"an unknown letter", BYTES(1, 'z', 'R', 'x', 0, ALIGNMENT, 3, 0x00, 9, 9, PROGRAM),
     BYTES(AT_START, SIZE_16, 0), ENTRY},
    {"old exceptions", BYTES(1, 'e', 'h', 0, 9, 9, 9, 9, 9, 9, 9, 9, ALIGNMENT, PROGRAM),
     BYTES(AT_START, SIZE_16), ENTRY},
    {"an unknown letter, and no size", BYTES(1, 'x', 0, ALIGNMENT, PROGRAM),
     BYTES(AT_START, SIZE_16), "unsupported"},
    {"version 2", BYTES(2, 0, ALIGNMENT, PROGRAM), BYTES(AT_START, SIZE_16), "unsupported"},
    {"another return address", BYTES(1, 0, 1, 0x78, 17, PROGRAM), BYTES(AT_START, SIZE_16),
     "unsupported"},
    {"addresses of four bytes", BYTES(4, 0, 4, 0, ALIGNMENT, PROGRAM), BYTES(AT_START, SIZE_16),
     "unsupported"},
    {"segments", BYTES(4, 0, 8, 2, ALIGNMENT, PROGRAM), BYTES(AT_START, SIZE_16), "unsupported"},
    {"augmentation data beyond the entry", BYTES(1, 'z', 'R', 0, ALIGNMENT, 99, 0x00, PROGRAM),
     BYTES(AT_START, SIZE_16, 0), "unsupported"},
    {"letters beyond their data", BYTES(1, 'z', 'L', 'R', 0, ALIGNMENT, 1, 0x00, PROGRAM),
     BYTES(AT_START, SIZE_16, 0), "unsupported"},
    {"a string that does not end", BYTES(1, 'z', 'R'), BYTES(AT_START, SIZE_16), "unsupported"},
    {"nothing", {0}, 0, BYTES(AT_START, SIZE_16), "unsupported"},
    {"pointers to pointers", BYTES(1, 'z', 'R', 0, ALIGNMENT, 1, 0x80, PROGRAM),
     BYTES(AT_START, SIZE_16, 0), "none"},
    {"half a function", BYTES(1, 0, ALIGNMENT, PROGRAM), BYTES(AT_START, 0x10, 0, 0), "none"},
    {"data beyond the entry", BYTES(1, 'z', 'R', 0, ALIGNMENT, 1, 0x00, PROGRAM),
     BYTES(AT_START, SIZE_16, 99), "none"},
};

TEST(reads_every_form_of_cie)
{
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        cleanup_(free_section) struct section section = make_section();
        put_cie(&section, forms[i].cie, forms[i].cie_bytes);
        put_fde(&section, forms[i].fde, forms[i].fde_bytes);
        cleanup_(free_cfi) struct made_cfi outcome = read_section(&section);
        char words[CFI_WORDS_BYTES];
        cfi_words(cfi_table_find(&outcome.table, CODE_START), words);
        if (strcmp(words, forms[i].words) != 0) {
            fail_msg("%s: %s, expected %s", forms[i].what, words, forms[i].words);
        }
        assert_int_equal(kind_at(&outcome, CODE_START + 16), CFI_NONE);
    }
}

TEST(finds_frames_without_section_headers)
{
    cleanup_(free_section) struct section section = begin_section();
    put_function(&section, CODE_START, 16, 24);
    put(&section, (uint8_t[4]){0}, 4);
    put_function(&section, CODE_START + 16, 16, 32);
    for (int has_no_sections = 0; has_no_sections < 2; has_no_sections++) {
        cleanup_(free_cfi) struct made_cfi outcome =
            read_file(FILE_OF(section, .has_no_sections = has_no_sections));
        assert_int_equal(offset_at(&outcome, CODE_START), 24);
        /* An empty entry ends what has no size of its own. */
        assert_int_equal(offset_at(&outcome, CODE_START + 16), has_no_sections ? 0 : 32);
    }
}

TEST(has_no_rows_for_other_machines)
{
    cleanup_(free_section) struct section section = begin_section();
    put_function(&section, CODE_START, 16, 24);
    struct eh_frame_file *file = FILE_OF(section, .claimed_bytes = 0);
    file->machine = EM_AARCH64;
    cleanup_(free_cfi) struct made_cfi outcome = read_file(file);
    uint64_t vaddr = 0;
    assert_int_equal(outcome.table.row_count, 0);
    assert_true(cfi_table_vaddr(&outcome.table, CODE_START, &vaddr));
}

TEST(refuses_what_is_no_program)
{
    cleanup_(free_cfi) struct made_cfi outcome = {.bytes = NULL};
    cleanup_(closep) int fd = memfd_create("nothing", MFD_CLOEXEC);
    assert_int_equal(read_fd(fd, &outcome), -EBADMSG);
    assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
    assert_int_equal(read_fd(fd, &outcome), -EBADMSG);
}

TEST(loses_only_the_function_that_is_broken)
{
    cleanup_(free_section) struct section section = begin_section();
    put_function(&section, CODE_START, 16, 16);
    uint32_t end = (uint32_t)section.size_bytes;
    uint8_t body[] = {0x30, 0, 0x10, 0, 0, 0, 0, 0, SIZE_16, 0};
    put_entry(&section, end + 4 + 1, body, sizeof body); /* a CIE before the section */
    put_entry(&section, end + 4 - 1, body, sizeof body); /* one that is not there */
    put_entry(&section, 4, body, sizeof body);           /* the FDE itself */
    put_entry(&section, -8U, body, sizeof body);         /* what comes next */
    put_entry(&section, UINT32_MAX, body, sizeof body);  /* far away */
    put_fde(&section, body, 3);                          /* half an address */
    put(&section, (uint8_t[]){2, 0, 0, 0, 9, 9}, 6);     /* half a number */
    put(&section, (uint8_t[]){0, 0, 0, 0}, 4);           /* nothing */
    put_function(&section, CODE_START + 0x10, 16, 24);
    cleanup_(free_cfi) struct made_cfi outcome = read_section(&section);
    assert_int_equal(offset_at(&outcome, CODE_START), 16);
    assert_int_equal(offset_at(&outcome, CODE_START + 0x10), 24);
    assert_int_equal(kind_at(&outcome, CODE_START + 0x30), CFI_NONE);
}

TEST(stops_at_a_length_that_does_not_fit)
{
    static const uint8_t lengths[][12] = {
        {0xff, 0xff, 0xff, 0x7f},
        {0xfe, 0xff, 0xff, 0xff},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
        {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        cleanup_(free_section) struct section section = begin_section();
        put_function(&section, CODE_START, 16, 16);
        put(&section, lengths[i], sizeof lengths[i]);
        put_function(&section, CODE_START + 16, 16, 24);
        cleanup_(free_cfi) struct made_cfi outcome = read_section(&section);
        assert_int_equal(offset_at(&outcome, CODE_START), 16);
        assert_int_equal(kind_at(&outcome, CODE_START + 16), CFI_NONE);
    }
}

TEST(reads_entries_with_long_lengths)
{
    cleanup_(free_section) struct section section = begin_section();
    uint8_t entry[12 + 4 + 17] = {0xff, 0xff, 0xff, 0xff, 4 + 17};
    uint32_t id = (uint32_t)section.size_bytes + 12;
    memcpy(entry + 12, &id, sizeof id);
    memcpy(entry + 16, (uint8_t[]){AT_START, SIZE_16, 0}, 17);
    put(&section, entry, sizeof entry);
    cleanup_(free_cfi) struct made_cfi outcome = read_section(&section);
    assert_int_equal(offset_at(&outcome, CODE_START), 8);
}

TEST(keeps_to_code)
{
    cleanup_(free_section) struct section section = begin_section();
    put_function(&section, CODE_START - 16, 32, 16);
    put_function(&section, CODE_END, 16, 16);
    put_function(&section, 0, UINT64_MAX, 16);
    put_function(&section, CODE_END - 32, UINT64_C(1) << 60, 24);
    put_function(&section, CODE_END - 64, UINT64_MAX, 32);
    cleanup_(free_cfi) struct made_cfi outcome = read_section(&section);
    assert_int_equal(outcome.table.stats.covered_bytes, 64);
    assert_int_equal(offset_at(&outcome, CODE_END - 1), 24);
    assert_int_equal(offset_at(&outcome, CODE_END - 33), 32);
    assert_int_equal(kind_at(&outcome, CODE_END), CFI_NONE);
}

/* A function for each byte, and every second one reaches over thousands that come later. */
TEST(bounds_functions_that_cover_each_other)
{
    cleanup_(free_section) struct section section = begin_section();
    for (uint64_t i = 0; i < 16000; i++) {
        put_function(&section, CODE_START + i, i % 2 == 0 ? 1 : 5000, (uint8_t)(8 + 8 * (i % 7)));
    }
    cleanup_(free_cfi) struct made_cfi outcome = read_section(&section);
    assert_int_equal(offset_at(&outcome, CODE_START), 8);
    assert_int_equal(offset_at(&outcome, CODE_START + 14), 16);
    assert_int_equal(offset_at(&outcome, CODE_START + 5000), 16);
    assert_int_equal(offset_at(&outcome, CODE_START + 5002), 32);
    assert_int_equal(offset_at(&outcome, CODE_START + 5004), 48);
    assert_int_equal(outcome.table.stats.covered_bytes, 15999 + 5000);
}

TEST(survives_files_of_every_length)
{
    cleanup_(free_section) struct section section = begin_section();
    put_function(&section, CODE_START, 16, 16);
    for (int has_no_sections = 0; has_no_sections < 2; has_no_sections++) {
        cleanup_(closep) int fd =
            eh_frame_file_make(FILE_OF(section, .has_no_sections = has_no_sections));
        for (off_t size = lseek(fd, 0, SEEK_END); size >= 0; size--) {
            cleanup_(free_cfi) struct made_cfi outcome = {.bytes = NULL};
            assert_int_equal(ftruncate(fd, size), 0);
            (void)read_fd(fd, &outcome);
        }
    }
}

TEST(ignores_a_section_that_the_file_does_not_hold)
{
    cleanup_(free_section) struct section section = begin_section();
    put_function(&section, CODE_START, 16, 16);
    static const uint64_t claims[] = {UINT64_MAX, UINT64_C(1) << 40, 4096};
    for (size_t i = 0; i < COUNT_OF(claims); i++) {
        /* What the other header finds is right all the same. */
        cleanup_(free_cfi) struct made_cfi outcome =
            read_file(FILE_OF(section, .claimed_bytes = claims[i]));
        assert_int_equal(offset_at(&outcome, CODE_START), 16);
    }
}

/* In this program. */
TEST(knows_roots_and_switches_by_their_names_and_certain_roots_against_call_frames)
{
    static const struct {
        const char *label;
        int offset;
        const char *words;
    } cases[] = {
        {&test_root, 0, "root"},
        {&test_root, 23, "root"},
        {&test_no_root, 0, "none"},
        {&test_certain, -2, "none"},
        {&test_certain, -1, "root"},
        {&test_certain, 0, "root"},
        {&test_certain, 7, "root"},
        {&test_label, 0, ENTRY},
        {&test_switch, 0, "switch " ENTRY},
        {&test_switch, 7, "switch " ENTRY},
        {&test_switch, 8, "switch r7+24 ra c-8 bp = bx ="},
        {&test_switch, 16, "switch r0+0 ra ? bp = bx ="},
        {&test_switch, 24, "switch r0+0 ra ? bp = bx ="},
        {&test_switch, 31, "switch r0+0 ra ? bp = bx ="},
        {&test_behind, 0, ENTRY}, /* and no switch */
    };
    cleanup_(free_cfi) struct made_cfi outcome = {.bytes = NULL};
    cleanup_(closep) int fd = open_self();
    assert_int_equal(read_fd(fd, &outcome), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char words[CFI_WORDS_BYTES];
        const char *at = cases[i].label + cases[i].offset;
        cfi_words(cfi_table_find(&outcome.table, (uint64_t)(at - &__executable_start)), words);
        if (strcmp(words, cases[i].words) != 0) {
            fail_msg("row %zu: %s, expected %s", i, words, cases[i].words);
        }
    }
}
