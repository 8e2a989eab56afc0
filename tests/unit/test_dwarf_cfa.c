/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Programs of call-frame instructions, assembled by hand from DWARF 5, 6.4.2 and 7.24, and the rows
 * that they make. Each runs after the CIE that every x86-64 compiler writes (CFA = rsp + 8, return
 * address at CFA - 8; code alignment 1, data alignment -8) over [0x1000, 0x1100).
 */
#include "dwarf_cfa.h"

#include "built_tables.h"
#include "cfi_words.h"

#define START       UINT64_C(0x1000)
#define END         UINT64_C(0x1100)
#define PROGRAM_MAX 40
#define ROWS_MAX    4

#define ROWS(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

#define PUSHED "r7+16 ra c-8 bp c-16 bx ="

struct story {
    const char *what;
    uint8_t program[PROGRAM_MAX];
    size_t program_bytes;
    struct {
        uint64_t offset; /* from START */
        const char *words;
    } rows[ROWS_MAX];
};

static const uint8_t common[] = {0x0c, 7, 8, 0x80 | 16, 1};

/* As far as the body of a function that aligns its stack. */
#define ALIGNED_FRAME                                                                              \
    0x0c, 10, 0, 0x45, 0x10, 6, 2, 0x76, 0, 0x45, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 3, 2, 0x76,     \
        0x68, 0x45

static const struct story stories[] = {
    {"an empty program is one row", BYTES(0), ROWS({0, ENTRY}, {0xff, ENTRY})},
    {"a push, and the frame pointer",
     BYTES(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x80, 0x0c, 7, 8),
     ROWS({0, ENTRY}, {1, PUSHED}, {4, "r6+16 ra c-8 bp c-16 bx ="},
          {0x84, "r7+8 ra c-8 bp c-16 bx ="})},
    {"restore goes back to the CIE's rule",
     BYTES(0x0e, 24, 0x86, 2, 0x83, 3, 0x41, 0xc6, 0x41, 0x06, 3, 0x90, 2, 0x41, 0xd0),
     ROWS({0, "r7+24 ra c-8 bp c-16 bx c-24"}, {1, "r7+24 ra c-8 bp = bx c-24"},
          {2, "r7+24 ra c-16 bp = bx ="}, {3, "r7+24 ra c-8 bp = bx ="})},
    {"states are remembered with their CFA, and nest",
     BYTES(0x0a, 0x0e, 16, 0x86, 2, 0x0a, 0x41, 0x0e, 24, 0x41, 0x0b, 0x41, 0x0b),
     ROWS({0, PUSHED}, {1, "r7+24 ra c-8 bp c-16 bx ="}, {2, PUSHED}, {3, ENTRY})},
    {"all ways to advance",
     BYTES(0x41, 0x0e, 16, 0x02, 0x10, 0x0e, 24, 0x03, 0x20, 0x00, 0x0e, 32, 0x04, 0x40, 0, 0, 0,
           0x0e, 40),
     ROWS({0x10, "r7+16 ra c-8 bp = bx ="}, {0x11, "r7+24 ra c-8 bp = bx ="},
          {0x31, "r7+32 ra c-8 bp = bx ="}, {0x71, "r7+40 ra c-8 bp = bx ="})},
    {"a location that is set", BYTES(0x01, 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 16),
     ROWS({0x1f, ENTRY}, {0x20, "r7+16 ra c-8 bp = bx ="})},
    {"an advance by nothing", BYTES(0x40, 0x0e, 16), ROWS({0, "r7+16 ra c-8 bp = bx ="})},
    {"no going back",
     BYTES(0x48, 0x01, 0x04, 0x10, 0, 0, 0, 0, 0, 0),
     {{7, ENTRY}, {8, "unsupported"}}},
    {"an advance beyond the end ends it", BYTES(0x41, 0x0e, 16, 0x04, 0xff, 0xff, 0xff, 0xff, 0x3f),
     ROWS({0, ENTRY}, {0xff, "r7+16 ra c-8 bp = bx ="})},
    {"signed and extended offsets",
     BYTES(0x12, 7, 0x7e, 0x05, 6, 2, 0x11, 3, 0x7d, 0x41, 0x13, 0x7d, 0x41, 0x2f, 6, 4),
     ROWS({0, "r7+16 ra c-8 bp c-16 bx c+24"}, {1, "r7+24 ra c-8 bp c-16 bx c+24"},
          {2, "r7+24 ra c-8 bp c+32 bx c+24"})},
    {"the CFA of any register", BYTES(0x0c, 10, 0), ROWS({0, "r10+0 ra c-8 bp = bx ="})},
    {"a register without a number of ours", BYTES(0x0d, 16, 0x41, 0x0c, 7, 8),
     ROWS({0, "unsupported"}, {1, ENTRY})},
    {"offsets that 32 bits do not hold",
     BYTES(0x0e, 0x80, 0x80, 0x80, 0x80, 0x08, 0x41, 0x0c, 7, 8, 0x86, 0x80, 0x80, 0x80, 0x80, 0x08,
           0x41, 0x90, 0x80, 0x80, 0x80, 0x80, 0x08),
     ROWS({0, "unsupported"}, {1, "r7+8 ra c-8 bp ? bx ="}, {2, "unsupported"})},
    {"offsets that 64 bits do not hold",
     BYTES(0x2f, 6, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01),
     ROWS({0, "r7+8 ra c-8 bp ? bx ="})},
    {"an undefined return address is a root, whatever the CFA",
     BYTES(0x07, 16, 0x41, 0x0d, 33, 0x41, 0x0c, 7, 8, 0xd0),
     ROWS({0, "root"}, {1, "root"}, {2, ENTRY})},
    {"a return address that stays where it is", BYTES(0x08, 16), ROWS({0, "unsupported"})},
    {"a return address in a register", BYTES(0x09, 16, 2), ROWS({0, "unsupported"})},
    {"other registers are read past",
     BYTES(0x8c, 4, 0x09, 13, 12, 0x14, 12, 3, 0x07, 1, 0x16, 14, 2, 0x77, 0, 0xcc),
     ROWS({0, ENTRY})},
    {"undefined and same", BYTES(0x07, 6, 0x07, 3, 0x41, 0x08, 6, 0x08, 3),
     ROWS({0, "r7+8 ra c-8 bp ? bx ?"}, {1, ENTRY})},
    {"values that are nowhere in memory are lost",
     BYTES(0x09, 3, 8, 0x14, 6, 2, 0x41, 0x15, 3, 2, 0x16, 6, 2, 0x77, 8),
     ROWS({0, "r7+8 ra c-8 bp ? bx ?"}, {1, "r7+8 ra c-8 bp ? bx ?"})},
    {"a computed return address", BYTES(0x14, 16, 1), ROWS({0, "unsupported"})},
    {"a signal frame's registers",
     BYTES(0x0f, 4, 0x77, 0xa0, 0x01, 0x06, 0x10, 16, 3, 0x77, 0xa8, 0x01, 0x10, 6, 3, 0x77, 0xf8,
           0x00, 0x10, 3, 3, 0x77, 0x80, 0x01),
     ROWS({0, "[r7+160]+0 ra s+168 bp s+120 bx s+128"})},
    {"a function that aligns its stack",
     BYTES(0x0c, 10, 0, 0x45, 0x10, 6, 2, 0x76, 0, 0x45, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 3, 2,
           0x76, 0x68, 0x45, 0x10, 3, 2, 0x72, 0),
     {{4, "r10+0 ra c-8 bp = bx ="},
      {5, "r10+0 ra c-8 bp b+0 bx ="},
      {10, "[r6-8]+0 ra c-8 bp b+0 bx b-24"},
      {15, "[r6-8]+0 ra c-8 bp b+0 bx ?"}}},
    {"its end, where GCC says nothing of what it pops",
     BYTES(ALIGNED_FRAME, 0x0a, 0x0c, 10, 0, 0x48, 0x0c, 7, 8, 0x44, 0x0b),
     ROWS({14, "[r6-8]+0 ra c-8 bp b+0 bx b-24"}, {15, "r10+0 ra c-8 bp ? bx ?"}, {23, ENTRY},
          {27, "[r6-8]+0 ra c-8 bp b+0 bx b-24"})},
    {"and where it says so of each pop",
     BYTES(ALIGNED_FRAME, 0x0c, 10, 0, 0x41, 0xc3, 0x41, 0xc6, 0x44, 0x0c, 7, 8),
     ROWS({15, "r10+0 ra c-8 bp b+0 bx b-24"}, {16, "r10+0 ra c-8 bp b+0 bx ="},
          {17, "r10+0 ra c-8 bp = bx ="}, {21, ENTRY})},
    {"OpenSSL's saved stack pointers",
     BYTES(0x0f, 6, 0x77, 0xc8, 0x00, 0x06, 0x23, 8, 0x41, 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e,
           0x22, 0x06, 0x23, 8),
     ROWS({0, "[r7+72]+8 ra c-8 bp = bx ="}, {1, "[r7+8+8*r9]+8 ra c-8 bp = bx ="})},
    {"a linker's table of jumps",
     BYTES(0x0e, 16, 0x46, 0x0e, 24, 0x4a, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33,
           0x24, 0x22),
     ROWS({0, "r7+16 ra c-8 bp = bx ="}, {6, "r7+24 ra c-8 bp = bx ="},
          {16, "plt r7+8 11 ra c-8 bp = bx ="})},
    {"the other ways to add",
     BYTES(0x0f, 7, 0x92, 7, 4, 0x34, 0x22, 0x96, 0x96, 0x41, 0x0f, 6, 0x77, 16, 0x09, 0xf8, 0x22,
           0x06, 0x41, 0x0f, 6, 0x77, 0, 0x06, 0x08, 8, 0x1c),
     ROWS({0, "r7+8 ra c-8 bp = bx ="}, {1, "[r7+8]+0 ra c-8 bp = bx ="},
          {2, "[r7+0]-8 ra c-8 bp = bx ="})},
    {"more constants",
     BYTES(0x0f, 6, 0x77, 0, 0x0b, 0xff, 0xff, 0x22, 0x41, 0x0f, 8, 0x77, 0, 0x0c, 1, 0, 1, 0, 0x22,
           0x41, 0x0f, 5, 0x77, 0, 0x10, 5, 0x22, 0x41, 0x0f, 5, 0x77, 0, 0x11, 0x7f, 0x22),
     ROWS({0, "r7-1 ra c-8 bp = bx ="}, {1, "r7+65537 ra c-8 bp = bx ="},
          {2, "r7+5 ra c-8 bp = bx ="}, {3, "r7-1 ra c-8 bp = bx ="})},
    {"expressions that no rule can say",
     BYTES(0x0f, 4, 0x77, 0, 0x06, 0x06, 0x41, 0x0f, 1, 0x30, 0x41, 0x0f, 6, 0x77, 8, 0x79, 0, 0x38,
           0x1e, 0x41, 0x0f, 0),
     ROWS({0, "unsupported"}, {1, "unsupported"}, {2, "unsupported"}, {3, "unsupported"})},
    {"an index with an offset of its own", BYTES(0x0f, 8, 0x77, 8, 0x79, 8, 0x38, 0x1e, 0x22, 0x06),
     ROWS({0, "unsupported"})},
    {"half a CFA cannot be changed where it is an expression",
     BYTES(0x0f, 3, 0x77, 0, 0x06, 0x41, 0x0e, 8, 0x41, 0x0c, 7, 8),
     ROWS({0, "[r7+0]+0 ra c-8 bp = bx ="}, {1, "unsupported"}, {2, ENTRY})},
    {"the size of arguments is of no interest", BYTES(0x2e, 0x86, 0x02), ROWS({0, ENTRY})},
    {"another machine's windows", BYTES(0x48, 0x2d, 0x48), {{7, ENTRY}, {8, "unsupported"}}},
    {"an unknown instruction", BYTES(0x48, 0x3f), {{7, ENTRY}, {8, "unsupported"}}},
    {"a program that breaks off", BYTES(0x48, 0x0c, 7), {{7, ENTRY}, {8, "unsupported"}}},
    {"an expression that is longer than the program",
     BYTES(0x48, 0x10, 6, 9, 0x77),
     {{7, ENTRY}, {8, "unsupported"}}},
    {"a number that does not end", BYTES(0x48, 0x0e, 0x80), {{7, ENTRY}, {8, "unsupported"}}},
    {"a state that was not remembered", BYTES(0x48, 0x0b), {{7, ENTRY}, {8, "unsupported"}}},
};

#define LEAF   "r7+8 ra c-8 bp ? bx ="
#define POPPED "r7+8 ra c-8 bp c-16 bx c-24"

/* Registers whose places lie below rsp. */
static const struct story below_stack[] = {
    {"a leaf that saves in its red zone", BYTES(0x45, 0x86, 3, 0x50, 0xc6),
     ROWS({4, ENTRY}, {5, LEAF}, {20, LEAF}, {21, ENTRY})},
    {"a save below a stack pointer that has fallen, and one word below it",
     BYTES(0x0e, 24, 0x86, 3, 0x83, 4), ROWS({0, "r7+24 ra c-8 bp c-24 bx ?"})},
    {"a place by rsp", BYTES(0x10, 6, 2, 0x77, 0x70, 0x41, 0x10, 6, 2, 0x77, 0),
     ROWS({0, LEAF}, {1, "r7+8 ra c-8 bp s+0 bx ="})},
    {"a CFA of the same row that comes behind the place", BYTES(0x41, 0x86, 2, 0x0e, 16),
     ROWS({0, ENTRY}, {1, PUSHED})},
    {"saves before the stack pointer falls",
     BYTES(0x45, 0x83, 4, 0x86, 3, 0x45, 0x0e, 32, 0x50, 0x0e, 8),
     ROWS({5, "r7+8 ra c-8 bp ? bx ?"}, {10, "r7+32 ra c-8 bp c-24 bx c-32"},
          {26, "r7+8 ra c-8 bp c-24 bx c-32"})},
    {"pops in the order of the pushes",
     BYTES(0x0e, 24, 0x86, 2, 0x83, 3, 0x41, 0x0e, 16, 0x41, 0x0e, 8),
     ROWS({0, "r7+24 ra c-8 bp c-16 bx c-24"}, {1, "r7+16 ra c-8 bp c-16 bx c-24"}, {2, POPPED})},
    {"loads before the stack pointer rises at once",
     BYTES(0x0e, 24, 0x86, 2, 0x83, 3, 0x41, 0x0e, 8), ROWS({1, POPPED})},
    {"an epilogue in the middle",
     BYTES(0x0e, 24, 0x86, 2, 0x83, 3, 0x41, 0x0a, 0x0e, 8, 0x41, 0x0b, 0x41, 0x0e, 8),
     ROWS({1, POPPED}, {2, "r7+24 ra c-8 bp c-16 bx c-24"}, {3, POPPED})},
    {"a state from before the stack pointer fell", BYTES(0x86, 3, 0x41, 0x0a, 0x0e, 32, 0x41, 0x0b),
     ROWS({0, LEAF}, {1, "r7+32 ra c-8 bp c-24 bx ="}, {2, LEAF})},
    {"a save while the CFA rests on rbp",
     BYTES(0x0e, 16, 0x86, 2, 0x41, 0x0d, 6, 0x83, 3, 0x41, 0x0c, 7, 8),
     ROWS({1, "r6+16 ra c-8 bp c-16 bx c-24"}, {2, POPPED})},
    {"a place that is said twice", BYTES(0x0e, 16, 0x86, 2, 0x41, 0x0e, 8, 0x86, 2),
     ROWS({0, PUSHED}, {1, "r7+8 ra c-8 bp c-16 bx ="})},
    {"another place", BYTES(0x0e, 16, 0x86, 2, 0x41, 0x0e, 8, 0x86, 3),
     ROWS({0, PUSHED}, {1, LEAF})},
    {"the same place after another rule",
     BYTES(0x0e, 16, 0x86, 2, 0x41, 0x0e, 8, 0xc6, 0x41, 0x86, 2), ROWS({1, ENTRY}, {2, LEAF})},
};

static struct dwarf_cursor cursor_over(const uint8_t *bytes, size_t size_bytes)
{
    return (struct dwarf_cursor){.bytes = bytes, .left = size_bytes, .address = 0x100};
}

static struct dwarf_cie make_cie(const uint8_t *bytes, size_t size_bytes)
{
    struct dwarf_cie cie = {.code_align = 1, .data_align = -8};
    cie.is_supported = dwarf_cfa_begin(&cie, cursor_over(bytes, size_bytes)) == 0;
    return cie;
}

static struct made_cfi run(const struct dwarf_cie *cie, const uint8_t *program, size_t size_bytes)
{
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(dwarf_cfa_run(cie, cursor_over(program, size_bytes), START, END, builder), 0);
    return finish_cfi(builder);
}

static void expect_rows(const struct story *story, const struct cfi_table *table)
{
    for (size_t i = 0; i < ROWS_MAX && story->rows[i].words != NULL; i++) {
        char words[CFI_WORDS_BYTES];
        cfi_words(cfi_table_find(table, START + story->rows[i].offset), words);
        if (strcmp(words, story->rows[i].words) != 0) {
            fail_msg("%s: at %#x %s, expected %s", story->what, (unsigned)story->rows[i].offset,
                     words, story->rows[i].words);
        }
    }
}

TEST(runs_every_instruction)
{
    const struct dwarf_cie cie = make_cie(common, sizeof common);
    for (size_t i = 0; i < COUNT_OF(stories); i++) {
        cleanup_(free_cfi) struct made_cfi made =
            run(&cie, stories[i].program, stories[i].program_bytes);
        expect_rows(&stories[i], &made.table);
        assert_int_equal(made.table.stats.covered_bytes + made.table.stats.unsupported_bytes,
                         END - START);
        assert_int_equal(cfi_table_find(&made.table, END)->kind, CFI_NONE);
    }
}

TEST(tells_saves_in_the_red_zone_from_pops)
{
    const struct dwarf_cie cie = make_cie(common, sizeof common);
    for (size_t i = 0; i < COUNT_OF(below_stack); i++) {
        cleanup_(free_cfi) struct made_cfi made =
            run(&cie, below_stack[i].program, below_stack[i].program_bytes);
        expect_rows(&below_stack[i], &made.table);
    }
}

/* esp and ebp have other numbers, and words 4 bytes. */
TEST(tells_them_apart_in_32_bits)
{
    static const uint8_t common_32bit[] = {0x0c, 4, 4, 0x80 | 8, 1};
    static const struct story story = {
        "a save, a push and a pop",
        BYTES(0x41, 0x85, 3, 0x41, 0xc5, 0x0e, 8, 0x85, 2, 0x41, 0x0e, 4),
        ROWS({0, "r7+4 ra c-4 bp = bx ="}, {1, "r7+4 ra c-4 bp ? bx ="},
             {2, "r7+8 ra c-4 bp c-8 bx ="}, {3, "r7+4 ra c-4 bp c-8 bx ="}),
    };
    struct dwarf_cie cie = {.code_align = 1, .data_align = -4};
    struct dwarf_cursor cursor = cursor_over(common_32bit, sizeof common_32bit);
    cursor.is_32bit = true;
    assert_int_equal(dwarf_cfa_begin(&cie, cursor), 0);
    cie.is_supported = true;
    cursor = cursor_over(story.program, story.program_bytes);
    cursor.is_32bit = true;
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(dwarf_cfa_run(&cie, cursor, START, END, builder), 0);
    cleanup_(free_cfi) struct made_cfi made = finish_cfi(builder);
    expect_rows(&story, &made.table);
}

TEST(covers_all_of_a_function_wherever_its_program_breaks_off)
{
    const struct dwarf_cie cie = make_cie(common, sizeof common);
    for (size_t i = 0; i < COUNT_OF(stories); i++) {
        for (size_t size = 0; size <= stories[i].program_bytes; size++) {
            uint8_t *program = malloc(size + 1);
            assert_non_null(program);
            memcpy(program, stories[i].program, size);
            cleanup_(free_cfi) struct made_cfi made = run(&cie, program, size);
            assert_int_equal(made.table.stats.covered_bytes + made.table.stats.unsupported_bytes,
                             END - START);
            free(program);
        }
    }
}

TEST(bounds_what_is_remembered)
{
    const struct dwarf_cie cie = make_cie(common, sizeof common);
    static uint8_t bomb[100000];
    memset(bomb, 0x0a, sizeof bomb);
    bomb[0] = 0x48;
    cleanup_(free_cfi) struct made_cfi made = run(&cie, bomb, sizeof bomb);
    assert_int_equal(cfi_table_find(&made.table, START + 7)->kind, CFI_OFFSET);
    assert_int_equal(cfi_table_find(&made.table, START + 8)->kind, CFI_UNSUPPORTED);
}

TEST(refuses_a_cie_whose_program_is_not_one)
{
    static const struct story broken[] = {
        {"an advance", BYTES(0x0c, 7, 8, 0x41), ROWS({0, NULL})},
        {"a location", BYTES(0x01, 0, 0, 0, 0, 0, 0, 0, 0), ROWS({0, NULL})},
        {"a window", BYTES(0x2d), ROWS({0, NULL})},
        {"a state restored", BYTES(0x0b), ROWS({0, NULL})},
        {"an end", BYTES(0x0c, 7), ROWS({0, NULL})},
    };
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        const struct dwarf_cie cie = make_cie(broken[i].program, broken[i].program_bytes);
        if (cie.is_supported) {
            fail_msg("%s is accepted", broken[i].what);
        }
        cleanup_(free_cfi) struct made_cfi made = run(&cie, common, sizeof common);
        assert_int_equal(made.table.stats.unsupported_bytes, END - START);
    }
}

TEST(says_of_signal_frames_that_they_are)
{
    struct dwarf_cie cie = {.code_align = 1, .data_align = -8, .is_signal_frame = true};
    cie.is_supported = dwarf_cfa_begin(&cie, cursor_over(common, sizeof common)) == 0;
    char words[CFI_WORDS_BYTES];
    cleanup_(free_cfi) struct made_cfi made = run(&cie, NULL, 0);
    assert_string_equal(cfi_words(cfi_table_find(&made.table, START), words), ENTRY " signal");
}

TEST(says_nothing_without_a_cfa)
{
    const struct dwarf_cie cie = make_cie(NULL, 0);
    assert_true(cie.is_supported);
    cleanup_(free_cfi) struct made_cfi made = run(&cie, NULL, 0);
    assert_int_equal(cfi_table_find(&made.table, START)->kind, CFI_UNSUPPORTED);
}

/* Units of 2^63 bytes, and a million advances that change nothing. */
TEST(survives_alignments_and_advances_of_any_size)
{
    struct dwarf_cie cie = make_cie(common, sizeof common);
    cie.code_align = UINT64_MAX / 2;
    static const uint8_t far[] = {0x7f, 0x0e, 16};
    cleanup_(free_cfi) struct made_cfi first = run(&cie, far, sizeof far);
    assert_int_equal(cfi_table_find(&first.table, END - 1)->cfa_offset, 8);

    static uint8_t near[1 << 20];
    memset(near, 0x41, sizeof near);
    cie.code_align = 0;
    cleanup_(free_cfi) struct made_cfi other = run(&cie, near, sizeof near);
    assert_int_equal(other.table.row_count, 3);
}

static bool is_resumer(const struct dwarf_cie *cie, const uint8_t *program, size_t size_bytes)
{
    struct cfi_builder *builder = cfi_builder_new();
    uint64_t start = 0;
    uint64_t end = 0;
    assert_non_null(builder);
    assert_int_equal(dwarf_cfa_run(cie, cursor_over(program, size_bytes), START, END, builder), 0);
    bool is_found = cfi_builder_find_resumer(builder, 0, &start, &end);
    assert_true(!is_found || (start == START && end == END));
    assert_false(cfi_builder_find_resumer(builder, 1, &start, &end));
    cfi_builder_free(builder);
    return is_found;
}

TEST(notes_what_saves_the_registers_of_results)
{
    static const uint8_t both[] = {0x41, 0x80, 9, 0x81, 8};
    static const uint8_t one[] = {0x41, 0x80, 9, 0x80, 8};
    struct dwarf_cie cie = make_cie(common, sizeof common);
    assert_true(is_resumer(&cie, both, sizeof both));
    assert_false(is_resumer(&cie, one, sizeof one));
    /* What a signal interrupted has all of them saved. */
    cie.initial.signal_frame = 1;
    assert_false(is_resumer(&cie, both, sizeof both));
}

TEST(takes_no_segment_of_nothing)
{
    struct cfi_builder *builder = cfi_builder_new();
    assert_int_equal(cfi_builder_segment(builder, &(struct symbol_segment){.size_bytes = 0}), 0);
    (void)cfi_builder_free(builder);
}
