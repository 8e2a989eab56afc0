/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The line of progress on a terminal. A terminal that takes no output (Ctrl-S, a connection that
 * hangs) loses the line; the caller never waits for it.
 */

#include <stdbool.h>

/* Begins as {.fd = -1}: shows nothing. */
struct record_progress {
    int fd;        /* owned; -1: there is no terminal */
    bool is_shown; /* the line stands there now */
};

/* Opens the terminal that standard error is, if it is one. record_progress_done() closes it. */
void record_progress_open(struct record_progress *progress);
void record_progress_done(struct record_progress *progress);

/* Writes whole lines that stay. */
void record_progress_say(const struct record_progress *progress, const char *lines);

/* Puts `text` (borrowed, without a newline) in place of the line. */
void record_progress_show(struct record_progress *progress, const char *text);

/* Removes the line. */
void record_progress_clear(struct record_progress *progress);
