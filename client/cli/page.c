/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The width of the terminal, and how the columns of a table share it. Fitting a text to its column
 * is left to text_out.c.
 */
#include "page.h"

#include "cleanup.h"
#include "text_out.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ITEM                  "- "
#define PARAGRAPH_COLUMNS_MAX ((size_t)100) /* longer lines are hard to read */

static size_t terminal_columns(void)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0) {
        return PAGE_COLUMNS_DEFAULT;
    }
    return size.ws_col < PAGE_COLUMNS_MIN ? PAGE_COLUMNS_MIN : size.ws_col;
}

void page_of_stdout(bool is_wide, struct page *ret)
{
    *ret = (struct page){
        .file = stdout,
        .columns = is_wide ? PAGE_UNLIMITED : terminal_columns(),
    };
}

/* How much of a text fits into `columns`, in bytes: up to the last space there, or, if there is
 * none, up to the first. A number stays with the percent sign behind it. */
static size_t fitting_bytes(const char *text, size_t columns)
{
    size_t fitting = 0;
    for (size_t bytes = 0;; bytes++) {
        if (text[bytes] != '\0' && (text[bytes] != ' ' || text[bytes + 1] == '%')) {
            continue;
        }
        cleanup_(freep) char *front = strndup(text, bytes);
        bool fits = front == NULL || text_width(front) <= columns;
        if (fits || fitting == 0) {
            fitting = bytes;
        }
        if (!fits || text[bytes] == '\0') {
            return fitting;
        }
    }
}

/* Further lines of an item of a list stand below its text. */
static void print_paragraph(const struct page *page, const char *text)
{
    size_t columns = page->columns;
    int indent = strncmp(text, ITEM, strlen(ITEM)) == 0 ? (int)strlen(ITEM) : 0;
    bool is_first = true;
    if (columns != PAGE_UNLIMITED) {
        columns = columns > PARAGRAPH_COLUMNS_MAX ? PARAGRAPH_COLUMNS_MAX : columns;
        columns -= (size_t)indent;
    }
    do {
        size_t item_bytes = is_first ? (size_t)indent : 0;
        size_t bytes = item_bytes + fitting_bytes(text + item_bytes, columns);
        (void)fprintf(page->file, "%*s", is_first ? 0 : indent, "");
        text_print_bytes(page->file, text, bytes);
        (void)fputc('\n', page->file);
        text += bytes + (text[bytes] == ' ');
        is_first = false;
    } while (*text != '\0');
}

void page_print_lines(const struct page *page, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        print_paragraph(page, line);
    }
}

/* Gives the columns without a width what they need, if all of them have that within their part of
 * `room`, else what is their part; of several, those alone that need less than it. Returns whether
 * some are still without. */
static bool share_once(struct page_column *columns, size_t count, size_t room)
{
    size_t weights = 0;
    bool found = false;
    bool is_left = false;
    for (size_t i = 0; i < count; i++) {
        bool is_open = columns[i].width == PAGE_UNLIMITED;
        weights += is_open ? columns[i].weight : 0;
        room -= is_open ? 0 : columns[i].width;
    }
    for (size_t i = 0; i < count; i++) {
        if (columns[i].width == PAGE_UNLIMITED &&
            columns[i].needed <= room * columns[i].weight / weights) {
            columns[i].width = columns[i].needed;
            found = true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (columns[i].width == PAGE_UNLIMITED) {
            is_left = found;
            columns[i].width = found ? PAGE_UNLIMITED : room * columns[i].weight / weights;
        }
    }
    return is_left;
}

void page_share(struct page_column *columns, size_t count, size_t room)
{
    for (size_t i = 0; i < count; i++) {
        columns[i].width = room == PAGE_UNLIMITED ? columns[i].needed : PAGE_UNLIMITED;
    }
    for (size_t i = 0; i < count && share_once(columns, count, room); i++) {
    }
}
