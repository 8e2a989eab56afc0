/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "annotation.h"

/*
 * Reads the source files of the rows that are on this machine. A path is debugging information's,
 * so anything may be there: only a regular file that is not too large is read. Returns 0, or
 * -ENOMEM.
 */
int annotation_read_source(const struct profile *profile, struct annotation *annotation);

/* One of the files that were read, or NULL. */
const struct annotation_file *annotation_find_file(const struct annotation *annotation,
                                                   uint32_t file);
