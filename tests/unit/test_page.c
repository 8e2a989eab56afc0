/* SPDX-License-Identifier: Apache-2.0 */

/* How lines are made to fit, and the columns of a table share one. */
#include "page.h"
#include "unit_test.h"

TEST(gives_columns_what_they_need_or_their_part)
{
    static const struct {
        size_t room;
        struct page_column columns[3]; /* with the expected width */
        size_t count;
    } cases[] = {
        {40, {{10, 1, 10}, {20, 1, 20}}, 2},
        {20, {{30, 1, 10}, {30, 1, 10}}, 2},
        {20, {{30, 3, 12}, {30, 2, 8}}, 2},
        {20, {{4, 3, 4}, {30, 2, 16}}, 2}, /* what one leaves the other has */
        {30, {{40, 1, 14}, {2, 1, 2}, {40, 1, 14}}, 3},
        {30, {{11, 1, 11}, {2, 1, 2}, {40, 1, 17}}, 3}, /* and again */
        {PAGE_UNLIMITED, {{400, 1, 400}, {20, 1, 20}}, 2},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct page_column columns[3];
        memcpy(columns, cases[i].columns, sizeof columns);
        page_share(columns, cases[i].count, cases[i].room);
        for (size_t at = 0; at < cases[i].count; at++) {
            assert_int_equal(columns[at].width, cases[i].columns[at].width);
        }
    }
}

TEST(breaks_lines_between_words)
{
    static const struct {
        const char *text;
        size_t columns;
        const char *expected;
    } cases[] = {
        {"one two three", 20, "one two three\n"},
        {"one two three", 8, "one two\nthree\n"},
        {"one two three", 7, "one two\nthree\n"},
        {"twelve 12 % of", 9, "twelve\n12 % of\n"},
        {"averylongword and", 8, "averylon\ngword\nand\n"},
        {"- one two three", 9, "- one two\n  three\n"},
        {"one\ntwo\n", 9, "one\ntwo\n"},
        {"one two\n  a command to be pasted\n", 5, "one\ntwo\n  a command to be pasted\n"},
        {"a\033b \xc3\xa4\xc3\xb6 \x9b", 6, "a?b \xc3\xa4\xc3\xb6\n?\n"},
        {"", 9, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *copy = strdup(cases[i].text);
        EXPECT_PRINTED(cases[i].expected,
                       page_print_lines(&(struct page){.file = file, .columns = cases[i].columns},
                                        PAGE_PLAIN, copy));
        free(copy);
    }
}

TEST(never_breaks_a_command)
{
    static const struct {
        const char *path;
        size_t columns;
        const char *expected;
    } cases[] = {
        {"a.fxt", PAGE_UNLIMITED, "report a.fxt shows it\n"},
        {"a.fxt", 21, "report a.fxt shows it\n"},
        {"a.fxt", 20, "report a.fxt\nshows it\n"},
        {"a b.fxt", 5, "report 'a b.fxt'\nshows it\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        EXPECT_PRINTED(cases[i].expected,
                       page_print_command(&(struct page){.file = file, .columns = cases[i].columns},
                                          "report", cases[i].path, "shows it"));
    }
}
