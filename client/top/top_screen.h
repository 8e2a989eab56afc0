/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Draws profctl top on the terminal that top_terminal.h has taken, and reads its keys.
 */

#include "top_books.h"
#include "top_events.h"
#include "top_intake.h"
#include "top_state.h"

#include <stdbool.h>
#include <stdint.h>

#define TOP_COLUMNS_MIN 20
#define TOP_LINES_MIN   5

/* All borrowed. */
struct top_look {
    struct top_screen_state *state; /* what is on the screen is noted in it */
    const struct top_rows *rows;
    const struct top_rows *callers;    /* of the chosen function */
    const struct top_books *books;     /* of the window */
    const struct profile_event *event; /* that all but the books is of */
    struct top_sums sums;              /* of the event */
    const char *nothing;               /* what is said of an event without a sample */
    struct top_kept kept;
    uint64_t window_ns;
    const char *trouble; /* why no samples come; "": they do */
    const char *message; /* the answer to a key; "": none */
    bool is_utf8;
};

/* Once, after the terminal was taken. */
void top_screen_begin(void);

void top_screen_draw(struct top_look *look);

/* The next key that was pressed. False: there is none. */
bool top_screen_key(struct top_key *ret);
