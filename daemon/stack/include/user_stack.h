/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The user stack of a sample: what the unwinder makes of the sampled registers and the copied
 * bytes, or the kernel's frame-pointer chain as far as it is code. No other word of a stack becomes
 * a frame. Belongs to the collector thread.
 */

#include "code_map.h"
#include "perf_record.h"
#include "session_config.h"
#include "stitch.h"

struct user_stack {
    enum session_unwind unwind;
    size_t max_depth;      /* user frames, as configured */
    size_t chain_max;      /* entries of both kinds that the kernel writes at most */
    struct code_map *code; /* borrowed, as the next; NULL with SESSION_UNWIND_FP */
    struct stitch *stitch;
    uint64_t frames[UNWIND_DEPTH_MAX];
    uint64_t places[UNWIND_DEPTH_MAX];
};

/*
 * Fills in the user stack of `sample` and how good it is; the frames are borrowed from the record
 * or from `stack`, until the next call. `process` is the sample's, NULL when it is unknown.
 * `*ret_unmapped`: the way led to an address in no mapping that is known. False: a table is not
 * there yet, try again later; never with `settle`.
 */
bool user_stack_take(struct user_stack *stack, const struct perf_sample_view *view,
                     struct process *process, bool settle, struct sample *sample,
                     bool *ret_unmapped);

/*
 * The same for a chain that came in a record of its own, `count` entries, leaf first. The mappings
 * of `process` (NULL: not known) count as they were at the sample's time: what called then was
 * mapped then. Returns whether the chain led to an address in no mapping that is known.
 */
bool user_stack_take_deferred(const struct user_stack *stack, const uint64_t *entries, size_t count,
                              struct process *process, struct sample *sample);
