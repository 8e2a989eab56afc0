/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Has a sample resolved (resolver.h) and written (sink.h), or held until what it lacks has come. A
 * sample of a switch goes to the waits in place of the sinks. Belongs to the collector thread; of
 * drain.c only.
 */

#include "code_map.h"
#include "counters.h"
#include "perf_record.h"
#include "process_table.h"
#include "sideband_feed.h"
#include "sink.h"
#include "user_stack.h"
#include "waits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All borrowed. */
struct sample_phases_config {
    struct process_table *processes;
    struct sideband_feed *feed;
    const struct sinks *sinks;
    struct user_stack *stack;
    struct code_map *code; /* NULL with SESSION_UNWIND_FP */
    bool deferring;        /* chains may come in records of their own */
    size_t held_bytes;     /* for samples that wait */
};

struct sample_phases;

/* Returned; NULL when there is no memory. */
struct sample_phases *sample_phases_new(const struct sample_phases_config *config);
struct sample_phases *sample_phases_free(struct sample_phases *phases);
/* Where samples of switches go; borrowed. */
void sample_phases_set_waits(struct sample_phases *phases, struct waits *waits);

/* A sample of a CPU (index into the source's), in the order of time. */
void sample_phases_take(struct sample_phases *phases, size_t cpu_index,
                        const struct perf_record *record);
/* Handles held samples whose table or reading of /proc has come, and those that have waited for
 * DRAIN_HELD_NS at `time_ns`. A bounded part of them in each round. Returns how many still wait. */
size_t sample_phases_retry(struct sample_phases *phases, uint64_t time_ns);

struct counters sample_phases_counters(const struct sample_phases *phases);
