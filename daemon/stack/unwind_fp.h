/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One step up a stack by the frame pointer, and what the kernel's frame-pointer chain proves. */

#include "cfi_table.h"
#include "unwind_frame.h"

/* Steps as unwind_cfi_step() does: STACK_NO_RULE where rbp is not known, or a chain ends with 0. */
enum stack_quality unwind_fp_step(const struct unwind_memory *memory, struct unwind_frame *frame);

/* Whether code with this rule keeps its frame where its frame pointer says, on a stack of the words
 * that `memory` has. */
bool unwind_fp_is_rule(const struct unwind_memory *memory, const struct cfi_rule *rule);

/*
 * Where the frame pointer points that code with this rule (NULL: none) keeps; false where that is
 * not known, or cannot be. It need not be known itself where the rule says by rsp where it points.
 */
bool unwind_fp_value(const struct unwind_memory *memory, const struct cfi_rule *rule,
                     const struct unwind_frame *frame, uint64_t *ret);

/*
 * Where in the kernel's `chain` (the first entry is the sampled instruction) is the return address
 * of the frame whose frame pointer is `target`, by walking from the sampled frame pointer, `first`,
 * as the kernel did. Returns an index, or 0: it did not come by there as far as the copied bytes
 * tell, or they contradict it. `count` itself: it came by, and went no further.
 */
size_t unwind_fp_find(const struct unwind_memory *memory, const uint64_t *chain, size_t count,
                      uint64_t first, uint64_t target);

/*
 * The same for `frame`, whose code runs on another stack than it was called on, where rbp led on.
 * `callee` is the frame pointer that its callee keeps, 0 (no stack is there) where that is not
 * known: where rbp is not known in `frame` itself, it was saved there. May be count + 1, which says
 * the same as count.
 */
size_t unwind_fp_find_across(const struct unwind_memory *memory, const uint64_t *chain,
                             size_t count, uint64_t first, const struct unwind_frame *frame,
                             uint64_t callee);
