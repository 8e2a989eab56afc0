/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Small files below a root folder, which is "" for this machine. Of each a bounded part is read.
 */

#include "facts.h"

#include <stdio.h>
#include <sys/types.h>

#define FILES_PATH_BYTES ((size_t)512)

/* Reads the begin of a file into `into`, `capacity_bytes` with a NUL. Returns the bytes read, or
 * -errno; -ENAMETOOLONG for a path that does not fit. */
ssize_t files_read(const char *root, const char *path, char *into, size_t capacity_bytes);

/* The number that a file begins with, or why it is not known. */
struct fact files_number(const char *root, const char *path);

/* The first line of a file; "" where there is none. */
void files_line(const char *root, const char *path, char *into, size_t capacity_bytes);

struct fact fact_known(int64_t value);
struct fact fact_unknown(const char *what, int error); /* "WHAT: strerror(error)" */
