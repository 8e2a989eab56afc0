/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples that wait for a table or for a reading of /proc: copies of their records, in the order in
 * which they came, in a memory of a fixed size that no core dump shows, which the processes share
 * (quota.h). What is released is wiped. Belongs to the collector thread.
 */

#include "perf_record.h"

#include <stdbool.h>

struct waiting_samples;

/* What a sample waits for. */
struct sample_wait {
    unsigned wanted; /* the sinks that keep it; 0: not known yet, it waits for a reading */
    uint64_t files;  /* that of the table, as a bit (code_map_awaited()) */
};

struct held_sample {
    size_t cpu_index;
    struct sample_wait wait;
    struct perf_record record; /* of PERF_KIND_SAMPLE; its views are valid until the release */
};

/* A walk over the samples whose table or reading has arrived, from the oldest on, a part at a time.
 * All zero: none is under way. Any sample may be released meanwhile. */
struct waiting_walk {
    bool is_under_way;
    bool has_readings; /* readings have come */
    uint64_t files;    /* so have the tables of these, as bits */
    uint64_t next;     /* number of the entry that is looked at next; 0 at first */
};

/* Returned; `capacity_bytes` of address space, and a tenth more, memory as it fills. NULL when
 * there is none. */
struct waiting_samples *waiting_samples_new(size_t capacity_bytes);
struct waiting_samples *waiting_samples_free(struct waiting_samples *held);

/* Copies a sample. False: there is no room, or its process has its share. */
bool waiting_samples_add(struct waiting_samples *held, size_t cpu_index,
                         const struct perf_record *record, const struct sample_wait *wait);

/* The oldest; NULL: none. */
const struct held_sample *waiting_samples_first(const struct waiting_samples *held);
/* Returns the next sample whose table or reading has arrived. Each note that is looked at takes one
 * of `*steps`. NULL: no step is left, or (`is_under_way` cleared) the walk has ended. */
const struct held_sample *waiting_samples_walk(const struct waiting_samples *held,
                                               struct waiting_walk *walk, size_t *steps);
/* It waits for something else now. */
void waiting_samples_mark(struct waiting_samples *held, const struct held_sample *sample,
                          const struct sample_wait *wait);
/* Wipes and lets go of it. */
void waiting_samples_release(struct waiting_samples *held, const struct held_sample *sample);

size_t waiting_samples_count(const struct waiting_samples *held);
