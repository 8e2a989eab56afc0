/* SPDX-License-Identifier: Apache-2.0 */

/* Texts as /proc/kallsyms gives them, and texts that it never gives. */
#include "kallsyms.h"

#include "built_tables.h"

#include <errno.h>

static const char sample[] = "0000000000000000 A fixed_percpu_data\n"
                             "ffffffff81000000 T _stext\n"
                             "ffffffff81000100 t do_one\n"
                             "ffffffff81000100 W weak_one\n"
                             "ffffffff81000200 T _etext\n"
                             "ffffffff81000210 D some_data\n"
                             "ffffffff81800000 w last\n"
                             "ffffffffc0000000 t nf_hook\t[nf_tables]\n"
                             "ffffffffc0000040 r __param\t[nf_tables]\n"
                             "ffffffffc0000080 t bpf_prog_6deef7357e7b4530\t[bpf]\n";

static int parse_exact(const char *text, struct symbol_builder *builder)
{
    /* Without its NUL, so that a sanitizer sees a read past the end. */
    char *copy = strdup(text);
    size_t bytes = strlen(text);
    char *exact = realloc(copy, bytes == 0 ? 1 : bytes);
    int r = kallsyms_parse(exact, bytes, builder);
    free(exact);
    return r;
}

TEST(names_functions_with_their_module)
{
    static const struct {
        uint64_t address;
        const char *name; /* "": none */
    } cases[] = {
        {0, ""},
        {0xffffffff81000000, "_stext"},
        {0xffffffff810000ff, "_stext"},
        {0xffffffff81000100, "weak_one"},
        {0xffffffff8100020f, "_etext"},
        {0xffffffff81000210, ""},
        {0xffffffff81800001, "last"},
        {0xffffffffc0000000, "nf_hook [nf_tables]"},
        {0xffffffffc0000040, ""},
        {0xffffffffc0000081, "bpf_prog_6deef7357e7b4530 [bpf]"},
    };
    struct symbol_builder *builder = symbol_builder_new();
    assert_int_equal(parse_exact(sample, builder), 0);
    cleanup_(free_symbols) struct made_symbols made = finish_symbols(builder);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_string_equal(symbol_at(&made.table, cases[i].address), cases[i].name);
    }
}

TEST(refuses_hidden_addresses_and_other_texts)
{
    static const struct {
        const char *text;
        int result;
    } cases[] = {
        {"0000000000000000 T _stext\n0000000000000000 t do_one\n", -EACCES},
        {"ffffffff81000210 D only_data\n", -EACCES},
        {"", -EBADMSG},
        {"ffffffff81000000 T cut", -EBADMSG},
        {"ffffffff81000000 T \n", -EBADMSG},
        {"ffffffff81000000 T\n", -EBADMSG},
        {"ffffffff81000000\n", -EBADMSG},
        {"\n", -EBADMSG},
        {" T name\n", -EBADMSG},
        {"fffffffff81000000 T name\n", -EBADMSG},
        {"FFFFFFFF81000000 T name\n", -EBADMSG},
        {"ffffffff81000000 T name\t\n", -EBADMSG},
        {"ffffffff81000000 T name\t[]\n", -EBADMSG},
        {"ffffffff81000000 T name\t[mod\n", -EBADMSG},
        {"ffffffff81000000 T \t[mod]\n", -EBADMSG},
        {"ffffffff81000000 T fine\nnonsense\n", -EBADMSG},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct symbol_builder *builder = symbol_builder_new();
        int r = parse_exact(cases[i].text, builder);
        symbol_builder_free(builder);
        if (r != cases[i].result) {
            fail_msg("%d instead of %d: %s", r, cases[i].result, cases[i].text);
        }
    }
}

TEST(cuts_a_name_that_is_too_long)
{
    enum {
        PREFIX = 19,
        LENGTH = 2 * SYMBOL_NAME_BYTES_MAX,
    };
    char text[PREFIX + LENGTH + 6] = "ffffffff81000000 T ";
    memset(text + PREFIX, 'n', LENGTH);
    memcpy(text + PREFIX + LENGTH, "\t[m]\n", 6);
    struct symbol_builder *builder = symbol_builder_new();
    assert_int_equal(parse_exact(text, builder), 0);
    cleanup_(free_symbols) struct made_symbols made = finish_symbols(builder);
    assert_int_equal(strlen(symbol_table_name(&made.table, 0)), SYMBOL_NAME_BYTES_MAX);
}

TEST(reads_this_kernels_own)
{
    int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        skip();
    }
    /* As a reader leaves it that was replaced in the middle of a line. */
    char begin[24];
    assert_int_equal(read(fd, begin, sizeof begin), sizeof begin);
    struct symbol_builder *builder = symbol_builder_new();
    int r = kallsyms_read(fd, builder);
    (void)close(fd);
    if (r == 0) {
        cleanup_(free_symbols) struct made_symbols made = finish_symbols(builder);
        assert_true(made.table.symbol_count > 1000);
    } else {
        assert_int_equal(r, -EACCES);
        symbol_builder_free(builder);
    }
}
