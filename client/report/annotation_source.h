/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "annotation.h"

/* Lines that are shown before and behind one with samples. */
#define ANNOTATION_AROUND ((uint64_t)3)

/*
 * Reads from the source files of the rows, which are sorted, the lines that are shown. A path is
 * debugging information's, so anything may be there: only a regular file that is not too large is
 * read. Returns 0, or -ENOMEM.
 */
int annotation_read_source(const struct profile *profile, struct annotation *annotation);

/* One of the files that were looked for, or NULL. */
const struct annotation_file *annotation_find_file(const struct annotation *annotation,
                                                   uint32_t file);

/* A line of the file, from 1 on, or NULL: it is not there, or was not kept. `file` may be NULL. */
const char *annotation_find_text(const struct annotation_file *file, uint64_t line);
