/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fxt_reader.h"

#include <stdbool.h>

/* The Data blobs of a recording. */
#define DATA_NAME_SESSION "cpu-profilerd.session"
#define DATA_NAME_SYMBOLS "cpu-profilerd.symbols"
#define DATA_NAME_BOOKS   "cpu-profilerd.books"

bool data_is_named(const struct fxt_data *data, const char *name);

/*
 * Puts the last line of a blob into `*kept` (owned by the caller; free()), in place of what is
 * there, if the line is a JSON object. Returns 0, or -ENOMEM.
 */
int data_take_object(const struct fxt_data *data, char **kept);
