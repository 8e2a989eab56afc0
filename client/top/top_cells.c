/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A text is taken apart into characters of one or two cells; then as many of the first and of the
 * last ones are shown as fit. Widths are those of the locale (wcwidth()). Pure.
 */
#include "top_cells.h"

#include "utf8.h"

#include <stdint.h>
#include <string.h>

#define ELLIPSIS_CELLS ((size_t)3)
#define CHARACTERS_MAX ((size_t)4096) /* of a text; what follows is as if it were not there */

/* The next character of a text as it is shown. */
static wchar_t next_character(const char **text, size_t *left, bool is_utf8)
{
    uint32_t character = 0;
    size_t length = utf8_character(*text, *left, &character);
    bool is_shown = length > 0 && !utf8_is_control(character) && (is_utf8 || character < 0x80) &&
                    wcwidth((wchar_t)character) > 0;
    *text += length == 0 ? 1 : length;
    *left -= length == 0 ? 1 : length;
    return is_shown ? (wchar_t)character : L'?';
}

static size_t width_of(wchar_t character)
{
    return wcwidth(character) == 2 ? 2 : 1;
}

/* How many of the characters, from the first or from the last one on, fit into `cells`. */
static size_t count_fitting(const wchar_t *characters, size_t count, size_t cells, bool from_end)
{
    size_t fitting = 0;
    size_t used = 0;
    while (fitting < count) {
        used += width_of(characters[from_end ? count - 1 - fitting : fitting]);
        if (used > cells) {
            break;
        }
        fitting++;
    }
    return fitting;
}

static size_t add(const wchar_t *characters, size_t count, size_t *cells, wchar_t *into)
{
    for (size_t i = 0; i < count; i++) {
        into[i] = characters[i];
        *cells += width_of(characters[i]);
    }
    return count;
}

size_t top_cells_fit(const char *text, size_t columns, bool is_utf8, wchar_t *ret)
{
    wchar_t characters[CHARACTERS_MAX];
    size_t left = strlen(text);
    size_t count = 0;
    size_t cells = 0;
    size_t made = 0;
    columns = columns < TOP_CELLS_MAX ? columns : TOP_CELLS_MAX;
    while (left > 0 && count < CHARACTERS_MAX) {
        characters[count++] = next_character(&text, &left, is_utf8);
    }
    size_t front = count_fitting(characters, count, columns, false);
    if (front == count) {
        made = add(characters, count, &cells, ret);
    } else {
        size_t kept = columns > ELLIPSIS_CELLS ? columns - ELLIPSIS_CELLS : 0;
        size_t dots = columns - kept;
        front = count_fitting(characters, count, kept - kept / 2, false);
        size_t back = count_fitting(characters, count, kept / 2, true);
        made = add(characters, front, &cells, ret);
        made += add(L"...", dots, &cells, ret + made);
        made += add(characters + count - back, back, &cells, ret + made);
    }
    for (; cells < columns; cells++) {
        ret[made++] = L' ';
    }
    ret[made] = L'\0';
    return made;
}
