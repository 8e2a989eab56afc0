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
 * Begins the file `path`; `is_compressed`: as gzip. Returned: output_free(), which removes what is
 * unfinished. Returns 0, or -errno with a sentence in `reterr`.
 */
int output_open(const char *path, bool is_compressed, struct output **ret, struct fault *reterr);

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
 * where there is no file of its own.
 */
const char *output_keep(struct output *output);

/* The name under which the bytes are written now; borrowed. */
const char *output_temporary_name(const struct output *output);

/* How many bytes the file has so far; compressed, if it is. */
uint64_t output_size_bytes(const struct output *output);

struct output *output_free(struct output *output);
void output_freep(struct output **output);
