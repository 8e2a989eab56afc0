/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "code_forward.h"

/*
 * Which of what the two looks say is proved. Both fill their states first; then
 * code_proof_prepare() goes once through the region, and notes in its marks what code_proof_rule()
 * needs.
 */
void code_proof_prepare(const struct code_region *region, const struct code_forward *forward,
                        const struct code_backward *backward);

/*
 * Whether a function begins with an instruction for certain, or as certainly as a jump does not
 * lead past it: at a function's start, and at a label that a pointer leads to and whose own return
 * shows it to be one. What a jump leaves open does not reach beyond.
 */
bool code_proof_begins_scope(const struct code_region *region, size_t number,
                             const struct code_backward *backward);

/* The rule of an instruction, CFI_END where none is proved. `*ret_by_symbol`: it rests on a symbol,
 * or on what may be a call (code_doubts.h). */
struct cfi_rule code_proof_rule(const struct code_region *region, size_t number,
                                const struct code_forward *forward,
                                const struct code_backward *backward, bool *ret_by_symbol);
