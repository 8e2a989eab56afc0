/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What lines of processes say of parents and command lines. First all are added, then the table is
 * sealed: in the order of segment, pid and time, of equal ones in that of the file.
 */

#include <stddef.h>
#include <stdint.h>

#define PROCESS_PARENT_UNKNOWN UINT64_MAX

struct process_line {
    uint64_t pid;
    uint64_t parent_pid; /* PROCESS_PARENT_UNKNOWN: the line does not say it */
    uint64_t since_ns;
    uint32_t segment;
    uint32_t order;
    uint32_t command; /* of the profile's `texts`, or INTERN_NONE */
};

/* All zero is an empty table. */
struct process_lines {
    struct process_line *lines; /* owned */
    size_t capacity;
    size_t count;
};

void process_lines_done(struct process_lines *table);
/* Returns 0, or -ENOMEM. */
int process_lines_add(struct process_lines *table, const struct process_line *line);
void process_lines_seal(struct process_lines *table);
