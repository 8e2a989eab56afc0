/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The command of `record -- CMD`: forked first, so that the session can be made for its pid, and
 * run once sampling has started.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Begins as {.go_fd = -1, .end_fd = -1}: there is none. */
struct record_child {
    pid_t pid;
    int go_fd;  /* closing it without a word ends a child that waits */
    int end_fd; /* tells why the command could not be run */
    bool is_running;
    int wait_status; /* of waitpid(), once it does not run any more */
};

/* Forks a child that waits to become `command`; `names_code`: its runtimes are to name the code
 * that they make. Returns 0, or -errno. */
int record_child_fork(struct record_child *child, char *const *command, bool names_code);

/* Lets the child run, as the caller would. Returns 0, or -errno, why it cannot; it has ended then.
 */
int record_child_release(struct record_child *child);

/* Whether the command has ended; never waits. */
bool record_child_has_ended(struct record_child *child);

/* Gives up a child that still waits, and lets one that runs go on. */
void record_child_done(struct record_child *child);

/* The exit status of a command that has ended, as a shell has it: 128 and the signal's number where
 * a signal ended it. 0 while it runs. */
int record_child_status(const struct record_child *child);

/* How the command ended, in words. `into` has room for RECORD_CHILD_TEXT_BYTES; returns it. */
#define RECORD_CHILD_TEXT_BYTES ((size_t)80)
const char *record_child_describe(const struct record_child *child, char *into);
