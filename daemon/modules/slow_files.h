/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files that took a worker long, and how long: what they take is no surprise when they are read
 * again. The oldest is forgotten first. Begins as zero bytes; belongs to the main thread.
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

/* Notes that making this table of a file took `time_ns`, in place of what was noted before. */
void slow_files_add(struct slow_files *files, enum module_table table,
                    const struct file_identity *identity, uint64_t time_ns);
/* How long it took, or 0 for a file that is not known. */
uint64_t slow_files_time_ns(const struct slow_files *files, enum module_table table,
                            const struct file_identity *identity);
