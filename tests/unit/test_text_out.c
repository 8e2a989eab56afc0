/* SPDX-License-Identifier: Apache-2.0 */

/* Texts as they reach a person, or a person's shell. */
#include "text_out.h"
#include "unit_test.h"

TEST(quotes_what_a_shell_would_take_apart)
{
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"profile.fxt", "profile.fxt"},
        {"/tmp/a-b_c.gz", "/tmp/a-b_c.gz"},
        {"my file", "'my file'"},
        {"it's", "'it'\\''s'"},
        {"$HOME", "'$HOME'"},
        {"", "''"},
        {"a\033b", "'a?b'"},
        {"/tmp/\xff", "'/tmp/?'"},
        {"/tmp/\xc2\x9b", "'/tmp/?'"},
        {"\xc3\xa4.fxt", "'\xc3\xa4.fxt'"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        EXPECT_PRINTED(cases[i].expected, text_print_argument(file, cases[i].text));
    }
}

TEST(aligns_what_belongs_to_labels)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    assert_non_null(file);
    text_print_member(file, "a", "one");
    text_print_member(file, "longer", "two");
    assert_int_equal(fclose(file), 0);
    const char *one = strstr(text, " one\n");
    const char *line = strstr(text, "  longer");
    assert_true(one != NULL && line != NULL);
    assert_int_equal(strstr(line, " two\n") - line, one - text);
    assert_memory_equal(text, "  a ", 4);
    free(text);
}

TEST(leaves_out_the_middle_of_what_is_too_long)
{
    static const struct {
        const char *text;
        size_t width;
        bool is_padded;
        const char *expected;
    } cases[] = {
        {"short", 8, true, "short   "},
        {"short", 8, false, "short"},
        {"function", 8, false, "function"},
        {"a_long_function", 9, false, "a_l...ion"},
        {"a_long_function", 8, false, "a_l...on"},
        {"a_long_function", 4, false, "a..."},
        {"a_long_function", 2, false, ".."},
        {"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\xc3\xa4\xc3\xb6", 5, false, "\xc3\xa4...\xc3\xb6"},
        {"\033[1mlong\x9b name\033[0m", 9, false, "?[1...[0m"},
        {"漢字", 6, true, "漢字  "},
        {"漢字漢字", 7, true, "漢...字"},
        {"漢字漢字", 6, true, "漢... "},
        {"漢字漢字", 6, false, "漢..."},
        {"e\u0301e\u0301e\u0301", 5, true, "e\u0301e\u0301e\u0301  "},
        {"e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301", 5, true, "e\u0301...e\u0301"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        EXPECT_PRINTED(cases[i].expected,
                       text_print_fitted(file, cases[i].text, cases[i].width, cases[i].is_padded));
    }
}

/* Columns as terminals take them, in whatever locale. */
TEST(knows_wide_characters_and_those_that_are_put_over_others)
{
    static const struct {
        const char *text;
        size_t width;
        size_t columns; /* into which `bytes` fit */
        size_t bytes;
    } cases[] = {
        {"", 0, 3, 0},     {"abc", 3, 2, 2},      {"漢字", 4, 3, 3},
        {"漢字", 4, 1, 0}, {"ü\u0308u", 2, 1, 4}, {"プログラム", 10, 10, 15},
        {"👩", 2, 2, 4},    {"\xff\xfe", 2, 1, 1}, {"\u202e", 1, 1, 3},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(text_width(cases[i].text), cases[i].width);
        assert_int_equal(text_bytes_of(cases[i].text, cases[i].columns), cases[i].bytes);
    }
}

/* Of each text what is printed in a column is as wide as the column. */
TEST(a_padded_text_has_the_width_of_its_column)
{
    static const char *const pieces[] = {"a", "漢", "e\u0301", "\xff", "👩\u200d🚀", "\u0301"};
    uint64_t seed = 1;
    for (int i = 0; i < 2000; i++) {
        char text[256] = "";
        for (uint64_t left = draw_below(&seed, 24); left > 0; left--) {
            (void)strcat(text, pieces[draw_below(&seed, COUNT_OF(pieces))]);
        }
        const size_t width = (size_t)draw_below(&seed, 30);
        char *printed = NULL;
        size_t printed_bytes = 0;
        FILE *file = open_memstream(&printed, &printed_bytes);
        assert_non_null(file);
        text_print_fitted(file, text, width, true);
        assert_int_equal(fclose(file), 0);
        if (text_width(printed) != width) {
            fail_msg("'%s' in %zu columns: '%s' has %zu", text, width, printed,
                     text_width(printed));
        }
        free(printed);
    }
}
