/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A file with debugging information, by its descriptor. What is in it is foreign: profctl's child
 * alone (lines_reader.c), and tests, call this.
 */

#include "lines_wire.h"

#include <elfutils/libdw.h>

#include <stdbool.h>

struct lines_file {
    int fd;
    Elf *elf;
    Dwarf *dwarf; /* NULL: it has no debugging information, or none that can be read */
    struct lines_file *alternate; /* owned; what several files share (dwz), or NULL */
};

/*
 * Opens a file (taken, in any case) and says what it is. Returned: lines_file_free(), NULL where it
 * is no ELF file at all, or cannot be held.
 */
struct lines_file *lines_file_begin(int fd, struct lines_about *ret_about);

/* Gives a file what it shares with others (taken), in place of what it was given before. */
void lines_file_share(struct lines_file *file, struct lines_file *alternate);

/* True if `file` can be read: it has debugging information, and what it shares with others. */
bool lines_file_is_whole(const struct lines_file *file);

struct lines_file *lines_file_free(struct lines_file *file);
void lines_file_freep(struct lines_file **file);
