/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Headers of requests that may be credentials. They are read from a file that only its owner can
 * read, and are never shown: header_file_hide() takes them out of what others say.
 */

#include "fault.h"

#include <stddef.h>

#define HEADER_FILE_LINES_MAX 64

struct header_file {
    char *text; /* owned; the lines, each ended by NUL */
    size_t size_bytes;
    const char *lines[HEADER_FILE_LINES_MAX]; /* borrowed; "Name: value" */
    size_t count;
};

/* Reads the file; lines that are empty or begin with '#' mean nothing. Returned:
 * header_file_done(). Returns 0, or -errno with a sentence in `reterr` that has nothing of the
 * file's text. */
int header_file_read(const char *path, struct header_file *ret, struct fault *reterr);

/* Overwrites and frees them. */
void header_file_done(struct header_file *headers);

/* Puts "[hidden]" in the place of each value, and of each of its words of 6 bytes and more, in a
 * text of at most `capacity_bytes`. */
void header_file_hide(const struct header_file *headers, char *text, size_t capacity_bytes);

/* Cuts off the text's end what one of these begins with. */
void header_file_hide_beginning(const struct header_file *headers, char *text);
