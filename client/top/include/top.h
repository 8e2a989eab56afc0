/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the time goes now: a session of its own, shown on the terminal or printed again and again.
 * verb_top.c reads the options.
 */

#include "record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_WINDOW_S   10
#define TOP_INTERVAL_S 1

enum top_first_view {
    TOP_SHOWS_FUNCTIONS,
    TOP_SHOWS_PROCESSES,
    TOP_SHOWS_UNITS,
};

struct top_request {
    struct record_request record; /* what the session takes; without a rate or a config's, top has
                                     one by the number of CPUs */
    uint64_t window_ns;
    uint64_t interval_ns;
    uint64_t count; /* of looks that are printed; 0: no end */
    uint64_t limit; /* of rows that are printed; 0: all */
    const char *filter;
    const char *event; /* that is shown first; NULL: the clock */
    enum top_first_view view;
    bool by_total;
    bool is_batch; /* printed, as with record.is_json */
};

/* Fills in a rate where the request has none. Returns an exit status, after a complaint where
 * something failed. */
int top_run(struct top_request *request);
