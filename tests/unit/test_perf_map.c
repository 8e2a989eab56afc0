/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Maps written by hand, and random ones against a model that asks every line about every address.
 */
#include "perf_map.h"

#include "built_tables.h"

#include <errno.h>

static struct made_symbols parse(const char *text, size_t bytes)
{
    struct symbol_builder *builder = symbol_builder_new();
    assert_int_equal(perf_map_parse(text, bytes, builder), 0);
    return finish_symbols(builder);
}

TEST(names_what_lines_claim)
{
    static const struct {
        const char *text;
        uint64_t address;
        const char *name;
    } cases[] = {
        {"1000 20 LazyCompile:~f /a b.js:3\n", 0x1000, "LazyCompile:~f /a b.js:3"},
        {"1000 20 f\n", 0x101f, "f"},
        {"1000 20 f\n", 0x1020, ""},
        {"1000 20 f\n", 0xfff, ""},
        {"0x7F00000000A0 0x10 f\n", 0x7f00000000a8, "f"},
        {"1000 20 f\n1010 20 g\n", 0x100f, "f"},
        {"1000 20 f\n1010 20 g\n", 0x1010, "g"},
        {"1010 20 g\n1000 20 f\n", 0x1010, "f"}, /* the last line holds */
        {"1010 20 g\n1000 20 f\n", 0x1020, "g"},
        {"1000 20 f\n1000 20 g\n", 0x1000, "g"},
        {"1000 20 f\n1000 20 \n", 0x1000, "f"},
        {"1000 100 f\n1010 10 g\n", 0x1020, "f"}, /* on both sides of what it lost */
        {"1000 100 f\n1010 10 g\n", 0x1018, "g"},
        {"1000 100 f\n1010 10 g\n", 0x100f, "f"},
        {"fffffffffffff000 fff f\n", UINT64_C(0xfffffffffffffffe), "f"},
        {"1000 20 \xff\n", 0x1000, "\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(free_symbols) struct made_symbols made =
            parse(cases[i].text, strlen(cases[i].text));
        assert_string_equal(symbol_at(&made.table, cases[i].address), cases[i].name);
    }
}

TEST(leaves_out_lines_of_another_form)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "1000 20 half",
                                        "1000 20 \n",
                                        "1000 20\n",
                                        "1000 0 empty\n",
                                        "1000 fffffffff huge\n",
                                        "ffffffffffffffff 10 wraps\n",
                                        "11111111111111111 10 long\n",
                                        "1000  20 two spaces\n",
                                        " 1000 20 indented\n",
                                        "x 20 f\n",
                                        "0x 20 f\n",
                                        "1000\t20\tf\n",
                                        "-1000 20 f\n"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char text[256];
        int bytes = snprintf(text, sizeof text, "%s", texts[i]);
        cleanup_(free_symbols) struct made_symbols alone = parse(text, (size_t)bytes);
        assert_int_equal(alone.table.symbol_count, 0);

        bytes = snprintf(text, sizeof text, "2000 10 before\n%s\n3000 10 after\n",
                         i == 2 ? "" : texts[i]);
        cleanup_(free_symbols) struct made_symbols among = parse(text, (size_t)bytes);
        assert_int_equal(among.table.symbol_count, 2);
    }
}

#define MODEL_ADDRESSES 300
#define MODEL_LINES     40

struct model_line {
    uint32_t offset; /* in the text */
    int start;
    int end;
};

/* Each piece says which line has it, and whether another one has claimed a part of it. */
static void expect_claims(const struct symbol_table *table, const struct model_line *lines,
                          int count)
{
    for (size_t i = 0; i < table->symbol_count; i++) {
        const struct symbol *symbol = &table->symbols[i];
        int owner = atoi(symbol_table_name(table, i) + 1);
        bool is_shared = false;
        for (int line = 0; line < count; line++) {
            is_shared =
                is_shared ||
                (line != owner && lines[line].start < (int)(symbol->start + symbol->size_bytes) &&
                 (int)symbol->start < lines[line].end);
        }
        uint32_t claim = lines[owner].offset | (is_shared ? PERF_MAP_CLAIM_SHARED : 0);
        assert_int_equal(table->claims[i], claim);
    }
}

TEST(gives_each_address_to_the_last_line_that_claims_it)
{
    srand(7);
    for (int run = 0; run < 300; run++) {
        char text[MODEL_LINES * 32];
        int owner[MODEL_ADDRESSES + 100];
        struct model_line model[MODEL_LINES];
        size_t bytes = 0;
        memset(owner, 0xff, sizeof owner);
        int lines = rand() % MODEL_LINES;
        for (int line = 0; line < lines; line++) {
            int start = rand() % MODEL_ADDRESSES;
            int size = 1 + rand() % (run % 2 == 0 ? 5 : 90);
            model[line] = (struct model_line){(uint32_t)bytes, start + 16, start + 16 + size};
            bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "%x %x n%d\n", start + 16,
                                      size, line);
            for (int at = start; at < start + size; at++) {
                owner[at] = line;
            }
        }
        cleanup_(free_symbols) struct made_symbols laid = parse(text, bytes);
        for (int at = 0; at < MODEL_ADDRESSES + 100; at++) {
            char expected[16] = "";
            if (owner[at] >= 0) {
                (void)snprintf(expected, sizeof expected, "n%d", owner[at]);
            }
            assert_string_equal(symbol_at(&laid.table, (uint64_t)at + 16), expected);
        }
        expect_claims(&laid.table, model, lines);
    }
}

/* Every line is inside of all before it, and the worst order for a heap. */
TEST(is_not_slowed_down_by_lines_inside_each_other)
{
    enum {
        LINES = 50000
    };
    cleanup_(freep) char *text = malloc((size_t)LINES * 32);
    size_t bytes = 0;
    assert_non_null(text);
    for (int i = 0; i < LINES; i++) {
        bytes += (size_t)sprintf(text + bytes, "%x %x f\n", 0x100000 + i, 4 * LINES - 2 * i);
    }
    cleanup_(free_symbols) struct made_symbols laid = parse(text, bytes);
    assert_string_equal(symbol_at(&laid.table, 0x100000 + LINES), "f");
}

/* What reading the file gives, with a state, after its first bytes were read before. */
static struct perf_map_state read_state(int fd, size_t known_bytes, size_t symbol_count)
{
    struct symbol_builder *builder = symbol_builder_new();
    struct perf_map_state state;
    assert_int_equal(perf_map_read(fd, known_bytes, builder), 0);
    cleanup_(free_symbols) struct made_symbols made = finish_symbols(builder);
    assert_int_equal(made.table.symbol_count, symbol_count);
    assert_true(perf_map_state(&made.table, &state));
    return state;
}

TEST(reads_a_file_and_refuses_one_that_is_too_large)
{
    static const char text[] = "1000 20 f\n2000 20 g\n3000 ";
    struct symbol_builder *builder = symbol_builder_new();
    cleanup_(closep) int fd = memory_file(text, sizeof text - 1);
    (void)read_state(fd, 0, 2);
    assert_int_equal(ftruncate(fd, (off_t)PERF_MAP_BYTES_MAX + 1), 0);
    assert_int_equal(perf_map_read(fd, 0, builder), -E2BIG);
    symbol_builder_free(builder);
}

/* The beginning of a text is the same if it has only been added to. */
TEST(says_whether_a_text_begins_as_it_did)
{
    static const char text[] = "1000 20 f\n2000 20 g\n3000 ";
    static const char more[] = "10 h\n";
    static const size_t lines_bytes = 20; /* the last line has no end yet */
    struct stat status;
    cleanup_(closep) int fd = memory_file(text, sizeof text - 1);
    struct perf_map_state first = read_state(fd, 0, 2);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(first.text_bytes, lines_bytes);
    assert_int_equal(first.known_bytes, 0);
    assert_int_equal(first.changed_s, status.st_ctim.tv_sec);
    assert_int_equal(first.changed_ns, status.st_ctim.tv_nsec);

    assert_int_equal(write(fd, more, sizeof more - 1), sizeof more - 1);
    struct perf_map_state grown = read_state(fd, lines_bytes, 3);
    assert_int_equal(grown.text_bytes, sizeof text + sizeof more - 2);
    assert_int_equal(grown.known_bytes, lines_bytes);
    assert_int_equal(grown.known_hash, first.text_hash);
    assert_int_not_equal(grown.text_hash, first.text_hash);

    assert_int_equal(pwrite(fd, "F", 1, 8), 1);
    assert_int_not_equal(read_state(fd, lines_bytes, 3).known_hash, first.text_hash);
    assert_int_equal(ftruncate(fd, 10), 0);
    assert_int_equal(read_state(fd, lines_bytes, 1).known_bytes, 0);
}
