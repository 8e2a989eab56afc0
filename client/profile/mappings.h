/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What every process had mapped, over time. Of the mappings that hold an address, the newest that
 * is not later than the sample wins; of two with the same time, the one that came later in the
 * file. First all are added, then the table is sealed, then looked up in; where more are added, it
 * is sealed anew.
 */

#include <stddef.h>
#include <stdint.h>

struct mapping {
    uint64_t pid;
    uint32_t segment; /* of the file: its processes are its own */
    uint64_t time_ns; /* from when it holds */
    uint64_t start;
    uint64_t last;  /* the last address that it holds */
    uint64_t vaddr; /* the module's address of `start` */
    uint32_t module;
    uint32_t symbols; /* what symbols_find() takes */
};

struct mapping_process;

/* All zero is an empty table. */
struct mappings {
    struct mapping *mappings; /* owned; sealed: by segment, pid, time, order in the file */
    size_t mapping_capacity;
    size_t mapping_count;
    struct mapping_process *processes; /* owned; by segment and pid */
    size_t process_count;
    uint32_t *slots; /* owned; the processes by their hash, + 1; 0: the slot is free */
    size_t slot_count;
};

/* The times between which a lookup's answer is the same. */
struct mapping_validity {
    uint64_t from_ns;
    uint64_t until_ns; /* the first at which it may differ; UINT64_MAX: never */
};

static inline void mapping_validity_narrow(struct mapping_validity *validity,
                                           const struct mapping_validity *by)
{
    validity->from_ns = by->from_ns > validity->from_ns ? by->from_ns : validity->from_ns;
    validity->until_ns = by->until_ns < validity->until_ns ? by->until_ns : validity->until_ns;
}

void mappings_done(struct mappings *table);

/* Adds what holds `size_bytes` > 0 from `start` on; past the top of the address space it is cut.
 * Returns 0, or -ENOMEM. */
int mappings_add(struct mappings *table, const struct mapping *mapping, uint64_t size_bytes);

/* Returns 0, or -ENOMEM. */
int mappings_seal(struct mappings *table);

/* What a segment's `pid` had mapped; NULL: nothing, ever. Borrowed, until the table is sealed anew.
 */
struct mapping_process *mappings_process(const struct mappings *table, uint32_t segment,
                                         uint64_t pid);

/*
 * The mapping that held `address` of a process (NULL: of one that had none) at `time_ns`, or NULL;
 * borrowed. `validity` is narrowed to the times for which this answer holds. The process remembers
 * what it has answered.
 */
const struct mapping *mappings_find(struct mapping_process *process, uint64_t address,
                                    uint64_t time_ns, struct mapping_validity *validity);
