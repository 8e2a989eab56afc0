/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What ends a recording from outside: SIGINT, SIGTERM and SIGHUP. The first is told through a
 * descriptor. One that comes a second later, or more, ends the program at once, whatever it waits
 * for; one that comes sooner is the same request again, and changes nothing. SIGCHLD is told too;
 * SIGPIPE is ignored. A signal that was ignored when the program started stays ignored, but for a
 * SIGINT that a process sends: a shell without job control ignores SIGINT for what it starts in the
 * background, which shields that from Ctrl-C on the terminal and is not meant against kill.
 */

#include <stdbool.h>

/* Takes the signals. `last_words` (borrowed, for good) is printed by what ends it at once.
 * `*ret_fd` (borrowed) becomes readable with each signal. Returns 0, or -errno. */
int record_signals_take(const char *last_words, int *ret_fd);

/* Gives the signals back as they were before; safe in a forked child. */
void record_signals_restore(void);

/* Forgets what made the descriptor readable. Returns whether the recording is to end. */
bool record_signals_read(void);
