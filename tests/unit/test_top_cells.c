/* SPDX-License-Identifier: Apache-2.0 */

/* Texts in the cells of a terminal. */
#include "top_cells.h"
#include "unit_test.h"

#include <locale.h>

static void expect(const char *text, size_t columns, bool is_utf8, const wchar_t *expected)
{
    wchar_t cells[TOP_CELLS_MAX + 1];
    size_t count = top_cells_fit(text, columns, is_utf8, cells);
    assert_int_equal(count, wcslen(expected));
    assert_memory_equal(cells, expected, (count + 1) * sizeof *cells);
}

static int take_locale(void **state)
{
    (void)state;
    return setlocale(LC_CTYPE, "C.UTF-8") == NULL;
}

TEST_GROUP(take_locale, NULL)

TEST(pads_short_texts_and_takes_the_middle_out_of_long_ones)
{
    expect("", 3, true, L"   ");
    expect("abc", 5, true, L"abc  ");
    expect("abcde", 5, true, L"abcde");
    expect("abcdefgh", 7, true, L"ab...gh");
    expect("abcdefgh", 6, true, L"ab...h");
    expect("abcdefgh", 3, true, L"...");
    expect("abcdefgh", 2, true, L"..");
    expect("abcdefgh", 0, true, L"");
}

TEST(shows_nothing_that_a_terminal_obeys)
{
    expect("a\033[2Jb", 8, true, L"a?[2Jb  ");
    expect("\r\n\t\x7f", 5, true, L"???? ");
    expect("\xc2\x9b|\xe2\x80\xae|\xe2\x80\xa8", 6, true, L"?|?|? ");
    expect("\xff|\xc3", 4, true, L"?|? ");
    expect("e\xcc\x81", 3, true, L"e? "); /* a combining accent has no cell of its own */
}

TEST(counts_wide_characters_as_two_cells_and_never_cuts_one)
{
    expect("\xe6\xbc\xa2\xe5\xad\x97", 5, true, L"\u6f22\u5b57 ");
    expect("\xe6\xbc\xa2\xe5\xad\x97", 4, true, L"\u6f22\u5b57");
    expect("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97", 7, true, L"\u6f22...\u5b57");
    expect("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97", 6, true, L"\u6f22... ");
    expect("\xe6\xbc\xa2\xe5\xad\x97", 3, true, L"...");
}

TEST(shows_ascii_alone_where_the_locale_has_no_more)
{
    expect("a\xc3\xa4\xe6\xbc\xa2z", 5, false, L"a??z ");
}

TEST(fills_a_line_of_any_length)
{
    wchar_t cells[TOP_CELLS_MAX + 1];
    char text[8192];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(top_cells_fit(text, TOP_CELLS_MAX + 100, true, cells), TOP_CELLS_MAX);
}
