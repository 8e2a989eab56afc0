/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples that wait for a table or for a reading of /proc: copies of their records, in the order in
 * which they came, in a memory of a fixed size that no core dump shows, which the processes share
 * (fair_share.h). What is released is wiped. Belongs to the collector thread.
 */

#include "perf_record.h"

struct held_samples;

struct held_sample {
    size_t cpu_index;
    bool wanted;               /* the filter keeps it */
    struct perf_record record; /* of PERF_KIND_SAMPLE; its views are valid until the release */
};

/* Returned; `capacity_bytes` of address space, memory as it fills. NULL when there is none. */
struct held_samples *held_samples_new(size_t capacity_bytes);
struct held_samples *held_samples_free(struct held_samples *held);

/* Copies a sample. False: there is no room, or its process has its share. */
bool held_samples_add(struct held_samples *held, size_t cpu_index, const struct perf_record *record,
                      bool wanted);

/* The oldest, and the one after another; NULL: none. `sample` must still be held. */
const struct held_sample *held_samples_first(const struct held_samples *held);
const struct held_sample *held_samples_next(const struct held_samples *held,
                                            const struct held_sample *sample);
/* It has turned out that the filter keeps it. */
void held_samples_mark_wanted(struct held_samples *held, const struct held_sample *sample);
/* Wipes and lets go of it. */
void held_samples_release(struct held_samples *held, const struct held_sample *sample);

size_t held_samples_count(const struct held_samples *held);
