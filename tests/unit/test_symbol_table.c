/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tables through their whole way: collected, serialised, checked, asked. The model below says what
 * the builder promises, in the slowest way that cannot be wrong.
 */
#include "symbol_table.h"

#include "built_tables.h"
#include "utf8.h"

#include <errno.h>

#define ADDRESSES     220
#define INPUTS_MAX    40
#define NAME_BYTES    8
#define PROPERTY_RUNS 1500

struct input {
    uint64_t start;
    uint64_t size_bytes;
    int rank; /* -1: it has no name, and is a barrier if it has no size either */
    char name[NAME_BYTES];
};

static int add_input(struct symbol_builder *builder, const struct input *input)
{
    if (input->rank >= 0) {
        return symbol_builder_add(builder, input->start, input->size_bytes, input->rank,
                                  input->name);
    }
    return input->size_bytes == 0
               ? symbol_builder_barrier(builder, input->start)
               : symbol_builder_nameless(builder, input->start, input->size_bytes);
}

static struct made_symbols build(const struct input *inputs, size_t count)
{
    struct symbol_builder *builder = symbol_builder_new();
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(add_input(builder, &inputs[i]), 0);
    }
    return finish_symbols(builder);
}

static bool is_better(const struct input *a, const struct input *b)
{
    if ((a->size_bytes == 0) != (b->size_bytes == 0)) {
        return b->size_bytes == 0;
    }
    size_t a_underscores = strspn(a->name, "_");
    size_t b_underscores = strspn(b->name, "_");
    if (a->rank != b->rank) {
        return a->rank < b->rank;
    }
    if (a_underscores != b_underscores) {
        return a_underscores < b_underscores;
    }
    if (strlen(a->name) != strlen(b->name)) {
        return strlen(a->name) < strlen(b->name);
    }
    return strcmp(a->name, b->name) < 0;
}

/* What is known about one start address, before anything is cut. */
struct model {
    const struct input *best; /* NULL: nothing with a name begins here */
    uint64_t size_bytes;
    bool occupied; /* something begins here, a barrier too */
};

static void fill_model(const struct input *inputs, size_t count, struct model *model)
{
    for (size_t i = 0; i < count; i++) {
        struct model *at = &model[inputs[i].start];
        at->occupied = true;
        if (inputs[i].rank >= 0 && (at->best == NULL || is_better(&inputs[i], at->best))) {
            at->best = &inputs[i];
        }
    }
    for (uint64_t start = 0; start < ADDRESSES; start++) {
        uint64_t own = 0;
        uint64_t other = 0;
        for (size_t i = 0; i < count; i++) {
            if (inputs[i].start != start) {
                continue;
            }
            other = inputs[i].size_bytes > other ? inputs[i].size_bytes : other;
            bool is_best = model[start].best != NULL && model[start].best->rank == inputs[i].rank &&
                           strcmp(model[start].best->name, inputs[i].name) == 0;
            own = is_best && inputs[i].size_bytes > own ? inputs[i].size_bytes : own;
        }
        model[start].size_bytes = own > 0 ? own : other;
    }
}

static bool is_label(const struct model *model, uint64_t start)
{
    for (uint64_t earlier = 0; earlier < start; earlier++) {
        if (start - earlier < model[earlier].size_bytes) {
            return model[start].size_bytes == 0;
        }
    }
    return false;
}

/* Whether what begins at `start` reaches `address`, were it not for a later symbol. */
static bool does_reach(const struct model *model, uint64_t start, uint64_t address)
{
    if (model[start].size_bytes != 0) {
        return address - start < model[start].size_bytes;
    }
    for (uint64_t i = start + 1; i <= address; i++) {
        if (model[i].occupied) {
            return false;
        }
    }
    return true;
}

static const char *model_name(const struct model *model, uint64_t address)
{
    for (uint64_t after = address + 1; after > 0; after--) {
        uint64_t start = after - 1;
        const struct input *best = model[start].best;
        bool is_function = best != NULL || model[start].size_bytes > 0;
        if (is_function && !is_label(model, start)) {
            return best != NULL && does_reach(model, start, address) ? best->name : "";
        }
    }
    return "";
}

TEST(agrees_with_a_naive_model)
{
    srand(1);
    for (int run = 0; run < PROPERTY_RUNS; run++) {
        struct input inputs[INPUTS_MAX];
        struct model model[ADDRESSES] = {{0}};
        size_t count = (size_t)(rand() % INPUTS_MAX);
        for (size_t i = 0; i < count; i++) {
            inputs[i].start = (uint64_t)(rand() % 200);
            inputs[i].size_bytes = rand() % 3 == 0 ? 0 : (uint64_t)(rand() % 30);
            inputs[i].rank = rand() % 4 - 1;
            (void)snprintf(inputs[i].name, NAME_BYTES, "%.*s%c%.*s", rand() % 3, "__",
                           'a' + rand() % 3, rand() % 3, "xy");
        }
        fill_model(inputs, count, model);

        cleanup_(free_symbols) struct made_symbols made = build(inputs, count);
        for (uint64_t address = 0; address < ADDRESSES; address++) {
            assert_string_equal(symbol_at(&made.table, address), model_name(model, address));
        }
    }
}

/* What names become. */
static void expect_cleaned(const char *name, const char *expected)
{
    struct symbol_builder *builder = symbol_builder_new();
    assert_int_equal(symbol_builder_add(builder, 16, 1, 0, name), 0);
    assert_int_equal(symbol_builder_add(builder, 32, 1, 0, ""), 0);
    cleanup_(free_symbols) struct made_symbols made = finish_symbols(builder);
    assert_string_equal(symbol_at(&made.table, 16), expected);
    assert_int_equal(symbol_table_find(&made.table, 32), -1);
}

/* What the model's few addresses do not show: how far a symbol without a size reaches, and the end
 * of all addresses. */
TEST(bounds_what_a_symbol_covers)
{
    static const struct {
        struct input input;
        uint64_t address;
        const char *name;
    } cases[] = {
        {{200, 0, 0, "last"}, 200 + SYMBOL_SIZELESS_BYTES_MAX - 1, "last"},
        {{200, 0, 0, "last"}, 200 + SYMBOL_SIZELESS_BYTES_MAX, ""},
        {{UINT64_MAX - 9, 500, 0, "near"}, UINT64_MAX - 1, "near"},
        {{UINT64_MAX - 9, 500, 0, "near"}, UINT64_MAX, ""},
        {{UINT64_MAX - 9, 500, 0, "near"}, 0, ""},
        {{UINT64_MAX, 5, 0, "end"}, UINT64_MAX, ""},
        {{0, UINT64_MAX, 0, "huge"}, UINT32_MAX - 1, "huge"},
        {{0, UINT64_MAX, 0, "huge"}, UINT32_MAX, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cleanup_(free_symbols) struct made_symbols made = build(&cases[i].input, 1);
        const char *name = symbol_at(&made.table, cases[i].address);
        if (strcmp(name, cases[i].name) != 0) {
            fail_msg("row %zu: '%s'", i, name);
        }
    }
}

TEST(cleans_names)
{
    static const struct {
        const char *name;
        const char *expected;
    } cases[] = {
        {"plain", "plain"},
        {"\xc3\xa9", "\xc3\xa9"},
        {"g\xffh", "g\xef\xbf\xbdh"},
        {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        expect_cleaned(cases[i].name, cases[i].expected);
    }
}

TEST(cuts_long_names_between_characters)
{
    for (size_t ascii = 0; ascii < 3; ascii++) {
        char name[3 * SYMBOL_NAME_BYTES_MAX];
        size_t used = ascii;
        memset(name, 'a', ascii);
        for (; used + 4 < sizeof name; used += 3) {
            memcpy(name + used, "\xe2\x82\xac", 3);
        }
        name[used] = '\0';
        char expected[sizeof name] = "";
        memcpy(expected, name, ascii + (SYMBOL_NAME_BYTES_MAX - ascii) / 3 * 3);
        expect_cleaned(name, expected);
    }
}

TEST(translates_file_offsets)
{
    static const struct symbol_segment segments[] = {
        {.offset = 0x1000, .vaddr = 0x401000, .size_bytes = 0x100},
        {.offset = 0x9000, .vaddr = 0, .size_bytes = 0x10},
        {.offset = 5, .vaddr = 5, .size_bytes = 0},
        {.offset = UINT64_MAX, .vaddr = 5, .size_bytes = 2},
        {.offset = 5, .vaddr = UINT64_MAX, .size_bytes = 2},
        {.offset = 5, .vaddr = UINT64_MAX - 9, .size_bytes = 2},
        {.offset = 5, .vaddr = UINT64_MAX / 2, .size_bytes = 2},
    };
    struct symbol_builder *builder = symbol_builder_new();
    for (size_t i = 0; i < COUNT_OF(segments); i++) {
        assert_int_equal(symbol_builder_segment(builder, &segments[i]), 0);
    }
    assert_int_equal(symbol_builder_build_id(builder, (const uint8_t *)"\x01\x02", 2), 0);
    cleanup_(free_symbols) struct made_symbols made = finish_symbols(builder);
    uint64_t vaddr = 77;
    assert_int_equal(made.table.segment_count, 2);
    assert_memory_equal(made.table.build_id, "\x01\x02", 2);
    assert_int_equal(made.table.build_id_bytes, 2);
    assert_false(symbol_table_vaddr(&made.table, 0xfff, &vaddr));
    assert_false(symbol_table_vaddr(&made.table, 0x1100, &vaddr));
    assert_int_equal(vaddr, 77);
    assert_true(symbol_table_vaddr(&made.table, 0x10ff, &vaddr));
    assert_int_equal(vaddr, 0x4010ff);
    assert_true(symbol_table_vaddr(&made.table, 0x9000, &vaddr));
    assert_int_equal(vaddr, 0);
}

TEST(refuses_more_than_a_table_holds)
{
    struct symbol_builder *builder = symbol_builder_new();
    const struct symbol_segment segment = {.offset = 1, .vaddr = 1, .size_bytes = 1};
    uint8_t id[SYMBOL_BUILD_ID_BYTES_MAX + 1] = {0};
    for (int i = 0; i < SYMBOL_TABLE_SEGMENTS_MAX; i++) {
        assert_int_equal(symbol_builder_segment(builder, &segment), 0);
    }
    assert_int_equal(symbol_builder_segment(builder, &segment), -E2BIG);
    assert_int_equal(symbol_builder_build_id(builder, id, sizeof id), -E2BIG);
    assert_int_equal(symbol_builder_build_id(builder, id, sizeof id - 1), 0);
    symbol_builder_free(builder);
}

/* A table with a bit of everything, in memory of exactly its size. */
static void *small_table(size_t *ret_bytes)
{
    struct symbol_builder *builder = symbol_builder_new();
    const struct symbol_segment segment = {.offset = 0, .vaddr = 0x1000, .size_bytes = 0x100};
    void *bytes = NULL;
    assert_int_equal(symbol_builder_segment(builder, &segment), 0);
    assert_int_equal(symbol_builder_build_id(builder, (const uint8_t *)"id", 2), 0);
    assert_int_equal(symbol_builder_add(builder, 0x1000, 16, 0, "one"), 0);
    assert_int_equal(symbol_builder_add(builder, 0x1010, 16, 0, "tw\xc3\xb6"), 0);
    assert_int_equal(symbol_builder_add(builder, 0x1040, 0, 0, "three"), 0);
    assert_int_equal(symbol_builder_finish(builder, &bytes, ret_bytes), 0);
    symbol_builder_free(builder);
    return bytes;
}

/* Everything that a holder of the table may do; a sanitizer sees a read outside. */
static void use_table(const struct symbol_table *table)
{
    uint64_t vaddr = 0;
    for (uint64_t address = 0xff0; address < 0x1080; address++) {
        (void)symbol_table_find(table, address);
        (void)symbol_table_vaddr(table, address - 0xff0, &vaddr);
    }
    for (size_t i = 0; i < table->symbol_count; i++) {
        const char *name = symbol_table_name(table, i);
        size_t left = table->names_bytes - (size_t)(name - table->names);
        assert_true(strnlen(name, left) < left);
        for (size_t at = 0; name[at] != '\0'; at += utf8_character(name + at, left - at, NULL)) {
            assert_int_not_equal(utf8_character(name + at, left - at, NULL), 0);
        }
        assert_int_equal(symbol_table_find(table, table->symbols[i].start), i);
    }
}

TEST(holds_after_any_corruption_of_one_byte)
{
    size_t bytes = 0;
    size_t refused = 0;
    size_t accepted = 0;
    cleanup_(freep) uint8_t *serialised = small_table(&bytes);
    for (size_t at = 0; at < bytes; at++) {
        uint8_t original = serialised[at];
        for (int value = 0; value < 256; value++) {
            struct symbol_table table;
            serialised[at] = (uint8_t)value;
            if (symbol_table_open(serialised, bytes, &table) == 0) {
                use_table(&table);
                accepted++;
            } else {
                refused++;
            }
        }
        serialised[at] = original;
    }
    assert_true(refused > accepted / 4);
    assert_true(accepted > bytes);
}

TEST(refuses_every_other_length_and_alignment)
{
    struct symbol_table table;
    size_t bytes = 0;
    cleanup_(freep) uint8_t *serialised = small_table(&bytes);
    for (size_t length = 0; length < bytes; length++) {
        uint8_t *exact = malloc(length + 1);
        memcpy(exact, serialised, length);
        assert_int_equal(symbol_table_open(exact, length, &table), -EBADMSG);
        free(exact);
    }
    cleanup_(freep) uint8_t *longer = calloc(1, bytes + 16);
    memcpy(longer, serialised, bytes);
    assert_int_equal(symbol_table_open(longer, bytes, &table), 0);
    assert_int_equal(symbol_table_open(longer, bytes + 1, &table), -EBADMSG);
    memcpy(longer + 1, serialised, bytes);
    assert_int_equal(symbol_table_open(longer + 1, bytes, &table), -EBADMSG);
}

TEST(refuses_what_only_a_liar_would_write)
{
    enum {
        SYMBOLS = 96 + 24,
        NAMES = SYMBOLS + 3 * 16,
    };
    static const struct {
        size_t at;
        uint8_t value;
        const char *what;
    } cases[] = {
        {0, 0, "magic"},
        {8, 0xff, "segment count"},
        {12, 4, "symbol count"},
        {16, 0xff, "names"},
        {20, 65, "build-id"},
        {96 + 16, 0, "segment of no bytes, first byte"},
        {24, 1, "claims"},
        {SYMBOLS + 8, 17, "overlap"},
        {SYMBOLS + 8, 0, "no size"},
        {SYMBOLS + 16, 0, "not rising"},
        {SYMBOLS + 12, 1, "middle of a name"},
        {SYMBOLS + 15, 0x7f, "name past the end"},
        {NAMES + 2, 0, "names that meet"},
        {NAMES + 6, 'x', "half a character"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct symbol_table table;
        size_t bytes = 0;
        cleanup_(freep) uint8_t *serialised = small_table(&bytes);
        serialised[cases[i].at] = cases[i].value;
        if (i == 5) {
            serialised[cases[i].at + 1] = 0;
        }
        int r = symbol_table_open(serialised, bytes, &table);
        if (r != -EBADMSG) {
            fail_msg("accepted: %s", cases[i].what);
        }
    }
}
