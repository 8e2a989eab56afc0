/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples that wait for a table or for a reading of /proc: copies of their records, in the order in
 * which they came, in a memory of a fixed size that no core dump shows, which the processes share
 * (quota.h). What is released is wiped. Belongs to the collector thread.
 */

#include "perf_record.h"

struct waiting_samples;

struct held_sample {
    size_t cpu_index;
    unsigned wanted;           /* the sinks that keep it; 0: not known yet */
    struct perf_record record; /* of PERF_KIND_SAMPLE; its views are valid until the release */
};

/* Returned; `capacity_bytes` of address space, memory as it fills. NULL when there is none. */
struct waiting_samples *waiting_samples_new(size_t capacity_bytes);
struct waiting_samples *waiting_samples_free(struct waiting_samples *held);

/* Copies a sample. False: there is no room, or its process has its share. */
bool waiting_samples_add(struct waiting_samples *held, size_t cpu_index,
                         const struct perf_record *record, unsigned wanted);

/* The oldest, and the one after another; NULL: none. `sample` must still be held. */
const struct held_sample *waiting_samples_first(const struct waiting_samples *held);
const struct held_sample *waiting_samples_next(const struct waiting_samples *held,
                                               const struct held_sample *sample);
/* It has turned out which sinks keep it. */
void waiting_samples_mark_wanted(struct waiting_samples *held, const struct held_sample *sample,
                                 unsigned wanted);
/* Wipes and lets go of it. */
void waiting_samples_release(struct waiting_samples *held, const struct held_sample *sample);

size_t waiting_samples_count(const struct waiting_samples *held);
