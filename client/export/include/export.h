/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Formats of other programs. Each has one writer, which prints a profile as it goes: beyond the
 * profile, memory grows with its different stacks, never with the size of the output. Names of a
 * recording are data: every writer keeps them from being read as something else. docs/export.md
 * says what each format can hold.
 */

#include "profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What the first frame of a folded stack names. */
enum export_root {
    EXPORT_ROOT_COMMAND, /* the process, by its name alone */
    EXPORT_ROOT_PROCESS, /* and its pid: NAME-PID */
    EXPORT_ROOT_THREAD,  /* the thread, and both numbers: NAME-PID/TID */
};

struct export_options {
    enum export_root root; /* of formats with `has_roots` */
    /* A stack of the one frame "[lost]" stands for the ticks that the books miss. */
    bool has_lost_frame;
    bool is_piped; /* its reader cannot seek; for formats that differ then */
};

/* Prints the whole profile. Returns 0, or -ENOMEM; errors of the file are its owner's to ask for.
 */
typedef int export_print_fn(FILE *file, const struct profile *profile,
                            const struct export_options *options);

struct export_format {
    const char *name;
    const char *help; /* one line: who reads it */
    export_print_fn *print;
    bool is_binary;    /* not for a terminal */
    bool is_gzip;      /* its readers expect it compressed, whatever the file's name */
    bool has_no_frame; /* "[lost]" finds no place: frames are addresses, or samples do not count */
    bool has_roots;    /* stacks begin with a frame for their task */
    bool has_no_value; /* each sample counts for one: only a profile whose samples do fits */
};

/* All formats. {0} ends the table. */
extern const struct export_format export_formats[];

/* The format of that name, or NULL. */
const struct export_format *export_format_find(const char *name);
