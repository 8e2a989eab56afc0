/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a view for a person is printed on.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define PAGE_UNLIMITED SIZE_MAX

struct page {
    FILE *file;     /* borrowed */
    size_t columns; /* that a line of a table may have, at least PAGE_COLUMNS_MIN; PAGE_UNLIMITED */
    size_t prose_columns; /* that a line of a sentence may have; PAGE_UNLIMITED; 0: as `columns` */
    bool has_colours;     /* a terminal shows it, which takes them */
    bool is_utf8;         /* the locale's characters; names are printed as UTF-8 anyway */
    pid_t pager;          /* page_close() waits for it; 0: there is none */
    int terminal_fd;      /* owned, with a pager: what standard output was before */
    void (*interrupt_before)(int); /* what SIGINT did before there was a pager */
    void (*pipe_before)(int);      /* what SIGPIPE did */
};

#define PAGE_COLUMNS_MIN     ((size_t)40)
#define PAGE_COLUMNS_NARROW  ((size_t)60) /* a table leaves columns out on a page with less */
#define PAGE_COLUMNS_DEFAULT ((size_t)80) /* of sentences where there is no terminal */

/*
 * Standard output: as wide as the terminal that it is, through a pager as git starts one
 * (PROFCTL_PAGER, PAGER, less), with colours unless NO_COLOR is set. What is no terminal gets
 * neither, and is as wide as COLUMNS says; where that is not set, tables are as wide as they are.
 * `is_wide`: lines are as long as they are. page_close() waits until the pager has ended.
 */
void page_open(bool is_wide, struct page *ret);
/* The same of `file` (borrowed) without a pager; there is nothing to close. */
void page_describe(FILE *file, bool is_wide, struct page *ret);
/* For a summary: the same, but where `file` is no terminal a sentence is a line. */
void page_describe_summary(FILE *file, struct page *ret);
void page_close(struct page *page);

static inline bool page_is_narrow(const struct page *page)
{
    return page->columns < PAGE_COLUMNS_NARROW;
}

/* What a line of a sentence may have. */
static inline size_t page_prose_columns(const struct page *page)
{
    return page->prose_columns == 0 ? page->columns : page->prose_columns;
}

enum page_style {
    PAGE_PLAIN,
    PAGE_TITLE,
    PAGE_WARNING,
    PAGE_HOT,  /* a large number */
    PAGE_GREW, /* as against another recording */
    PAGE_SHRANK,
    PAGE_FAINT, /* what is there for completeness */
};

/* What begins a style; PAGE_PLAIN ends it. "" on a page without colours. */
const char *page_style(const struct page *page, enum page_style style);

/* Prints each line of a text, which is changed, and what is too long for the page as several that
 * end between words. A line that begins with two spaces is to be pasted, and stays whole. What a
 * terminal would obey is '?', as in text_out.h. */
void page_print_lines(const struct page *page, enum page_style style, char *text);

/* How much of a text fits into `columns`, in bytes: up to the last space there, or all columns of a
 * longer word. A number stays with the percent sign behind it. */
size_t page_fitting_bytes(const char *text, size_t columns);

/* A text that is written to `file` before page_print_lines() prints it. */
struct page_text {
    FILE *file; /* owned, as `text`, between begin and end */
    char *text;
    size_t text_bytes;
};

/* False: there is no memory, and nothing to end. */
bool page_text_begin(struct page_text *text);
void page_text_end(struct page_text *text, const struct page *page, enum page_style style);

/* A column of texts: how much room it would need, and how much of what it needs not it gets, as
 * against others. */
struct page_column {
    size_t needed;
    size_t weight;
    size_t width; /* set by page_share() */
};

/*
 * Prints a command that ends with a path, as a shell takes it, and what it does: on one line, or,
 * where the page is too narrow for that, on lines of their own, of which the command's is whole.
 */
void page_print_command(const struct page *page, const char *command, const char *path,
                        const char *what);

/* Gives each column what it needs, or, where `room` is too little, the larger ones a part. */
void page_share(struct page_column *columns, size_t count, size_t room);
