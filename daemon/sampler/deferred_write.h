/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples whose user stacks the kernel delivers later, on their way into the trace: whole where the
 * stack is here already, else a partial now and its completion when it comes, or without a stack
 * when it does not. Belongs to the collector thread.
 */

#include "counters.h"
#include "perf_record.h"
#include "process_table.h"
#include "sample.h"
#include "trace.h"
#include "user_stack.h"

/* A completion is waited for so long; what is known of processes is kept longer. */
#define DEFERRED_WRITE_WAIT_NS UINT64_C(2000000000)

struct deferred_write;

/* All borrowed. */
struct deferred_write_config {
    struct process_table *processes;
    struct trace *trace;
    const struct user_stack *stack;
    const struct perf_cpu *cpus; /* in the order of the trace's lanes */
    size_t cpu_count;
};

/* Returned; NULL when there is no memory. */
struct deferred_write *deferred_write_new(const struct deferred_write_config *config);
struct deferred_write *deferred_write_free(struct deferred_write *late);

/*
 * A user chain of PERF_KIND_DEFERRED_CALLCHAIN (borrowed), when all sideband before it is applied.
 * Unless it is `expected`, samples of its task are not kept, and it is not counted when no sample
 * matches it.
 */
void deferred_write_add(struct deferred_write *late, const struct perf_record *record,
                        bool expected);

/*
 * Writes a sample whose record says that its user chain comes later; the sample's user stack is not
 * set yet. `*ret_uncertain` as trace_sample() has it. Returns whether the stack, if it is here, led
 * to an address in no mapping that is known.
 */
bool deferred_write_sample(struct deferred_write *late, size_t cpu_index,
                           const struct perf_record *record, struct sample *sample,
                           struct process *process, bool *ret_uncertain);

/*
 * Once all samples up to the horizon are handled: writes the completions that have come, and closes
 * what has waited too long; with UINT64_MAX, since sampling has stopped, everything. Returns how
 * many samples got a stack that does not reach its root.
 */
uint64_t deferred_write_end_round(struct deferred_write *late, uint64_t horizon_ns);

struct counters deferred_write_counters(const struct deferred_write *late);
