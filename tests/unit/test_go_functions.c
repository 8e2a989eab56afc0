/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tables of every version, whole and broken. What is read lies in memory of its exact size, so that
 * one byte too many is seen.
 */
#include "go_functions.h"

#include "go_table.h"

#include <errno.h>

#define TEXT        UINT64_C(0x401000)
#define END         UINT64_C(0x300)
#define FOUND_MAX   16
#define WRITES_SP   2
#define OTHER_FLAGS 5

static const struct go_table_function functions[] = {
    {0x000, "internal/cpu.Initialize", 0},
    {0x040, "runtime.mcall", WRITES_SP},
    {0x080, NULL, 0},
    {0x100, "main.(*turner).spin", OTHER_FLAGS},
    {0x180, "main.apply[...]", WRITES_SP | OTHER_FLAGS},
};

#define COUNT COUNT_OF(functions)

struct found {
    struct go_function all[FOUND_MAX];
    size_t count;
};

static int on_function(const struct go_function *function, void *userdata)
{
    struct found *found = userdata;
    assert_true(function->start < function->end);
    assert_true(strlen(function->name) > 0);
    assert_true(found->count < FOUND_MAX);
    found->all[found->count++] = *function;
    return 0;
}

/* Reads a copy of that many bytes; the names in `found` are gone afterwards. */
static int read_bytes(const uint8_t *bytes, size_t size_bytes, struct found *found)
{
    struct go_functions table;
    uint8_t *copy = malloc(size_bytes > 0 ? size_bytes : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size_bytes);
    *found = (struct found){0};
    int r = go_functions_open(copy, size_bytes, &table);
    if (r == 0) {
        assert_int_equal(go_functions_walk(&table, on_function, found), 0);
    }
    free(copy);
    return r;
}

static struct found read_good(const struct go_table *made)
{
    struct found found;
    assert_int_equal(read_bytes(made->bytes, made->size_bytes, &found), 0);
    return found;
}

TEST(finds_each_function_of_each_version)
{
    for (enum go_version version = 0; version < GO_VERSIONS; version++) {
        const struct go_table made = go_table_make(version, functions, COUNT, END, TEXT);
        struct go_functions table;
        struct found found = {0};
        assert_int_equal(go_functions_open(made.bytes, made.size_bytes, &table), 0);
        assert_false(table.is_text_needed);
        assert_int_equal(go_functions_walk(&table, on_function, &found), 0);
        assert_int_equal(found.count, COUNT - 1);
        for (size_t i = 0, at = 0; i < COUNT; i++) {
            if (functions[i].name == NULL) {
                continue;
            }
            const struct go_function *function = &found.all[at++];
            assert_int_equal(function->start, TEXT + functions[i].start);
            assert_int_equal(function->end, TEXT + (i + 1 < COUNT ? functions[i + 1].start : END));
            assert_string_equal(function->name, functions[i].name);
            assert_int_equal(function->writes_sp,
                             version > GO_1_2 && (functions[i].flags & WRITES_SP) != 0);
        }
    }
}

TEST(asks_for_the_text_where_the_table_has_none)
{
    for (enum go_version version = 0; version < GO_VERSIONS; version++) {
        const struct go_table made = go_table_make(version, functions, COUNT, END, 0);
        struct go_functions table;
        struct found found = {0};
        uint64_t first = 1;
        uint64_t end = 0;
        assert_int_equal(go_functions_open(made.bytes, made.size_bytes, &table), 0);
        assert_int_equal(table.is_text_needed, version >= GO_1_18);
        go_functions_range(&table, &first, &end);
        assert_int_equal(first, 0);
        assert_int_equal(end, END);
        table.text = TEXT;
        assert_int_equal(go_functions_walk(&table, on_function, &found), 0);
        assert_int_equal(found.all[0].start, TEXT);
    }
}

/* Each costs one function its name. */
static const struct lie {
    const char *what;
    bool is_in_record; /* of the second function; else in the index */
    size_t field;      /* by its number, in fields of the version */
    uint64_t value;
} lies[] = {
    {"the record has another address", true, 0, 0x41},
    {"the name is past the end", true, 1, 0x7fffffff},
    {"the name is the last NUL", true, 1, 0},
    {"the record is past the end", false, 3, 0x7fffffff},
    {"the record is another's", false, 3, 0},
    {"the address is the next one's", false, 2, 0x80},
    {"the next address is before it", false, 4, 0x30},
    {"the first one begins behind the second", false, 0, 0x41},
};

static void put_lie(struct go_table *made, const struct lie *lie)
{
    size_t at = lie->is_in_record ? made->first_record + made->record_bytes : made->index;
    bool is_name = lie->is_in_record && lie->field == 1;
    uint64_t value = lie->value;
    if (is_name && value == 0) {
        const uint8_t *last = memrchr(made->bytes, '\0', made->size_bytes);
        value = (uint64_t)(last - made->bytes) - made->names;
    }
    go_table_put(made, at + lie->field * made->field_bytes, value, is_name ? 4 : made->field_bytes);
}

TEST(leaves_out_what_is_not_true_of_itself)
{
    for (enum go_version version = 0; version < GO_VERSIONS; version++) {
        for (size_t i = 0; i < COUNT_OF(lies); i++) {
            struct go_table made = go_table_make(version, functions, COUNT, END, 0);
            put_lie(&made, &lies[i]);
            struct found found = read_good(&made);
            assert_string_equal(found.count == COUNT - 2 ? "" : lies[i].what, "");
        }
    }
}

TEST(leaves_out_what_goes_around_the_end_of_memory)
{
    const struct go_table made = go_table_make(GO_1_20, functions, COUNT, END, UINT64_MAX - 0x100);
    struct found found = read_good(&made);
    assert_int_equal(found.count, 2); /* those that end at or before 0x100, and have a name */
}

TEST(refuses_what_has_another_beginning)
{
    for (enum go_version version = 0; version < GO_VERSIONS; version++) {
        struct go_table made = go_table_make(version, functions, COUNT, END, TEXT);
        struct found found;
        assert_true(go_functions_begin(made.bytes));
        for (size_t at = 0; at < GO_FUNCTIONS_MAGIC_BYTES; at++) {
            made.bytes[at] ^= 0x20;
            assert_false(go_functions_begin(made.bytes));
            assert_int_equal(read_bytes(made.bytes, made.size_bytes, &found), -EBADMSG);
            made.bytes[at] ^= 0x20;
        }
    }
}

TEST(refuses_parts_that_are_not_there)
{
    static const uint64_t values[] = {0,         1000, UINT32_MAX, UINT64_MAX / 2, UINT64_MAX / 8,
                                      UINT64_MAX};
    static const struct {
        enum go_version version;
        size_t word;
        size_t first_value; /* the first that is wrong there */
    } cases[] = {
        {GO_1_2, 0, 0},  {GO_1_16, 0, 0}, {GO_1_16, 2, 2}, {GO_1_16, 6, 2}, {GO_1_18, 0, 0},
        {GO_1_18, 3, 2}, {GO_1_18, 7, 2}, {GO_1_20, 0, 0}, {GO_1_20, 3, 2}, {GO_1_20, 7, 2},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (size_t j = cases[i].first_value; j < COUNT_OF(values); j++) {
            struct go_table made = go_table_make(cases[i].version, functions, COUNT, END, TEXT);
            struct found found;
            go_table_put(&made, 8 + cases[i].word * 8, values[j], 8);
            assert_int_equal(read_bytes(made.bytes, made.size_bytes, &found), -EBADMSG);
        }
    }
    /* The index has no room for a field. */
    struct go_table made = go_table_make(GO_1_20, functions, COUNT, END, TEXT);
    struct found found;
    go_table_put(&made, 8 + 7 * 8, made.size_bytes - 1, 8);
    assert_int_equal(read_bytes(made.bytes, made.size_bytes, &found), -EBADMSG);
}

TEST(reads_nothing_past_a_cut)
{
    for (enum go_version version = 0; version < GO_VERSIONS; version++) {
        const struct go_table made = go_table_make(version, functions, COUNT, END, TEXT);
        for (size_t bytes = 0; bytes < made.size_bytes; bytes++) {
            struct found found;
            int r = read_bytes(made.bytes, bytes, &found);
            assert_true(r == 0 || r == -EBADMSG);
            assert_true(r == 0 || bytes < made.first_record);
            assert_true(found.count < COUNT - 1 || bytes > made.size_bytes - made.record_bytes);
        }
    }
}

TEST(survives_any_byte)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    for (enum go_version version = 0; version < GO_VERSIONS; version++) {
        struct go_table made = go_table_make(version, functions, COUNT, END, TEXT);
        for (size_t at = 0; at < made.size_bytes; at++) {
            uint8_t was = made.bytes[at];
            for (size_t i = 0; i < sizeof values; i++) {
                struct found found;
                made.bytes[at] = values[i];
                (void)read_bytes(made.bytes, made.size_bytes, &found);
            }
            made.bytes[at] = was;
        }
    }
}

static int on_second(const struct go_function *function, void *userdata)
{
    size_t *calls = userdata;
    (void)function;
    return ++*calls == 2 ? -ENOMEM : 0;
}

TEST(ends_when_it_is_told_to)
{
    const struct go_table made = go_table_make(GO_1_20, functions, COUNT, END, TEXT);
    struct go_functions table;
    size_t calls = 0;
    assert_int_equal(go_functions_open(made.bytes, made.size_bytes, &table), 0);
    assert_int_equal(go_functions_walk(&table, on_second, &calls), -ENOMEM);
    assert_int_equal(calls, 2);
}
