/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The terminal of a program that has all of the screen: taken, given back as it was, however the
 * program ends, and the signals that are about it. There is one in a process.
 */

#include "fault.h"

#include <signal.h>
#include <stdbool.h>

/* Whether there is a terminal that can be taken. Returns 0, or -errno with a sentence in `reterr`
 * that says what to do. */
int top_terminal_check(struct fault *reterr);

/* Takes the terminal that standard input and output are, after that check. Returns 0, or -errno
 * with a sentence in `reterr`, and has changed nothing. */
int top_terminal_open(struct fault *reterr);

/* Gives the terminal back. Without an open one nothing happens. */
void top_terminal_close(void);

/* Becomes readable with signals. */
int top_terminal_fd(void);

/* The signals that came since the last call. */
struct top_signals {
    bool is_ending;     /* SIGINT, SIGTERM, SIGHUP or SIGQUIT */
    bool is_suspending; /* SIGTSTP */
    bool is_resized;    /* SIGWINCH */
    bool is_continued;  /* SIGCONT */
};

struct top_signals top_terminal_signals(void);

/* Adds the signals by which a fault ends the process: no thread may block them. */
void top_terminal_add_faults(sigset_t *signals);

/* Gives the terminal back, stops the process, and takes the terminal again when it goes on. */
void top_terminal_suspend(void);

/* Takes the terminal again as it was taken: a shell may have had it while the process stood still.
 */
void top_terminal_retake(void);

/* Adapts to the size that the terminal has now. */
void top_terminal_resize(void);

/* Whether the locale's characters are UTF-8. */
bool top_terminal_is_utf8(void);
