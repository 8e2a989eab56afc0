/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The width of the terminal, and how the columns of a table share it. Fitting a text to its column
 * is left to text_out.c.
 */
#include "page.h"

#include <sys/ioctl.h>
#include <unistd.h>

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
