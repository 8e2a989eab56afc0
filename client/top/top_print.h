/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One look at the window as text, or as a JSON object in a line, where there is no screen.
 */

#include "page.h"
#include "top_books.h"
#include "top_events.h"
#include "top_model.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct top_print {
    const struct top_model *model;     /* borrowed, as the next */
    const struct top_books *books;     /* of the window */
    const struct profile_event *event; /* that the query is of */
    const char *nothing;               /* what is said of an event without a sample; not in JSON */
    struct top_query query;            /* JSON has all views */
    size_t limit;                      /* of rows; 0: all */
    uint64_t window_ns;
    uint64_t pending_count; /* samples that the daemon has not handed out yet */
};

/* Return 0, or -ENOMEM. */
int top_print_text(const struct page *page, const struct top_print *print);
int top_print_json(FILE *file, const struct top_print *print);
