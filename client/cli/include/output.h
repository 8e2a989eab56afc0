/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A file that appears under its name only when it is whole: it is written beside it and renamed. A
 * device or a pipe is written as it is, and so is standard output, "-".
 */

#include "fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct output;

/*
 * Begins the file `path`; a name that ends in .gz is compressed, as gzip. Returned: output_free(),
 * which removes what is unfinished. Returns 0, or -errno with a sentence in `reterr`.
 */
int output_open(const char *path, struct output **ret, struct fault *reterr);

/*
 * The same for what comes in pieces that come once only: what was written before the last
 * output_mark() outlives this run, and the next with the same path and tag (borrowed; no '/') goes
 * on behind it. `*ret_mark` is the last mark of an earlier run; 0: there was none.
 */
int output_resume(const char *path, const char *tag, struct output **ret, uint64_t *ret_mark,
                  struct fault *reterr);

/* Has it compressed whatever its name, before anything is written. Returns 0, or -ENOMEM. */
int output_compress(struct output *output);

/* Notes that all up to `mark`, above 0, has been written, and waits until the disk has it. Returns
 * 0, or -errno with a sentence in `reterr`. */
int output_mark(struct output *output, uint64_t mark, struct fault *reterr);

/*
 * Copies the file that is to be replaced to the begin of the new one, as it is. Before the first
 * write. Returns 0, or -errno with a sentence in `reterr`.
 */
int output_copy(struct output *output, struct fault *reterr);

/*
 * Whether the file that is to be replaced is still the one with which output_copy() has begun this
 * one, in an earlier run perhaps. So it is where there is no file, or an empty one.
 */
bool output_has_copy(const struct output *output);

/* Whether an earlier run with this path and tag has left a file with a mark, with which
 * output_resume() goes on. */
bool output_is_left(const char *path, const char *tag);

/* Has SIGINT, SIGTERM and SIGHUP, when they end the process, remove what has no name yet. Of one
 * output at a time. */
void output_remove_on_signals(struct output *output);

/* Has output_finish() rename the file that it replaces to PATH.old, if that file has any bytes. */
void output_leave_old(struct output *output);

/* The name of the file that was replaced, after output_finish(); NULL: there is none. Borrowed. */
const char *output_old_path(const struct output *output);

/* Says on a line where that file is now, if there is one, and whether an older one is lost. */
void output_print_old(FILE *to, const struct output *output);

/* Has output_free() remove what is marked too. */
void output_discard(struct output *output);

/*
 * Takes room on the disk for `size_bytes` more, if the file system can; what is not needed is given
 * back in the end. Returns 0, or -ENOSPC, -EDQUOT, -EFBIG with a sentence in `reterr`.
 */
int output_reserve(struct output *output, uint64_t size_bytes, struct fault *reterr);

/* Returns 0, or -errno with a sentence in `reterr`. */
int output_write(struct output *output, const void *bytes, size_t size_bytes, struct fault *reterr);

/* A stream into the output, borrowed from it; its errors are output_finish()'s to tell. NULL when
 * there is no memory. */
FILE *output_stream(struct output *output);

/*
 * Writes out what is left and gives the file its name. On failure what could be written stays under
 * the name that output_keep() tells.
 */
int output_finish(struct output *output, struct fault *reterr);

/*
 * Leaves what was written where it is, as after a failure. Returns its name (borrowed), or NULL
 * where there is no file of its own, or nothing in it.
 */
const char *output_keep(struct output *output);

/* The name under which the bytes are written now, until the next mark; borrowed. */
const char *output_temporary_name(const struct output *output);

/* How many bytes the file has so far; compressed, if it is. */
uint64_t output_size_bytes(const struct output *output);

/* `path`, or "-" where that is another name of standard output. */
const char *output_plain_path(const char *path);

struct output *output_free(struct output *output);
void output_freep(struct output **output);
