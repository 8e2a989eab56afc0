/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a verb makes of a recording, as a file. */

#include "options.h"

#include <stdbool.h>
#include <stdio.h>

/* Prints the file. Returns 0, or -ENOMEM; another -errno: why is the printer's to say. */
typedef int save_print_fn(FILE *file, void *userdata);

/*
 * Has a file printed, "-" for standard output, that gets its name only when all of it is there.
 * It replaces what is there, but no recording. `is_gzip`: it is compressed whatever its name.
 * Complains, and returns an exit status.
 */
int save_file(const char *path, bool is_gzip, save_print_fn *print, void *userdata);
/* The same for a path that the user has not named: what is there stays as PATH.old, which is said
 * on standard error. */
int save_beside(const char *path, save_print_fn *print, void *userdata);

/* Writes out what a stream has buffered. Returns whether all that was ever printed to it is in its
 * file: an earlier write may have failed too, and the last then has nothing left to fail at. */
bool save_flush(FILE *file);

/* Whether the output would be written over the recording, or behind it: both are one file. "-" is
 * standard input, or standard output. */
bool save_is_input(const char *input_path, const char *output_path);
/* Refuses a recording that standard output would be written to, as with `>>` of a shell, for a verb
 * that prints there alone. Returns EXIT_DONE, or an exit status after a complaint. */
int save_refuse_input(const struct command_line *line, const char *input_path);

/* Whether a path's last letters are these. */
bool save_ends_in(const char *path, const char *ending);
/* Whether it is named as a page: .html, .html.gz, or "-". */
bool save_is_page(const char *path);
/* Whether a browser can show it: it is a file that is not compressed. */
bool save_can_be_shown(const char *path);
