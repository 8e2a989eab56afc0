/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a recording says of its processes and threads over time, their names or their owners: the
 * newest that is not later than the sample wins; of two with the same time, the one that came later
 * in the file. First all are added, then the table is sealed, then looked up in.
 */

#include <stddef.h>
#include <stdint.h>

#define NAMES_PROCESS UINT64_MAX /* as tid: the process itself */

struct name {
    uint64_t pid;
    uint32_t segment; /* of the file: its processes are its own */
    uint64_t tid;
    uint64_t since_ns;
    uint32_t order;
    uint32_t item; /* number of what is said, in an intern table */
};

/* All zero is an empty table. */
struct names {
    struct name *names; /* owned */
    size_t capacity;
    size_t count;
};

void names_done(struct names *table);

/* Returns 0, or -ENOMEM. */
int names_add(struct names *table, const struct name *name);
void names_seal(struct names *table);

/* The times for which an answer holds. */
struct names_span {
    uint64_t from_ns;
    uint64_t until_ns; /* the first at which it may differ; UINT64_MAX: never */
};

/* The number of what was said last, or INTERN_NONE, and for which times it is that. */
uint32_t names_find_span(const struct names *table, uint32_t segment, uint64_t pid, uint64_t tid,
                         uint64_t time_ns, struct names_span *ret);

/* The number alone. */
uint32_t names_find(const struct names *table, uint32_t segment, uint64_t pid, uint64_t tid,
                    uint64_t time_ns);
