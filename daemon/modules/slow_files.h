/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Remembers how long a worker took for slow files, as the estimate for the next reading. The oldest
 * entry is replaced first. Begins as zero bytes; belongs to the main thread.
 */

#include "module.h"

#define SLOW_FILES_MAX 256

struct slow_files {
    struct slow_file {
        struct file_identity identity;
        enum module_table table;
        uint64_t time_ns; /* 0: a free place */
    } places[SLOW_FILES_MAX];
    size_t next;
};

/* Sets the time that this table of the file took. */
void slow_files_add(struct slow_files *files, enum module_table table,
                    const struct file_identity *identity, uint64_t time_ns);
/* The time that this table took, or 0 for an unknown file. */
uint64_t slow_files_time_ns(const struct slow_files *files, enum module_table table,
                            const struct file_identity *identity);
