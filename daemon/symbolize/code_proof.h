/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "code_doubts.h"
#include "code_forward.h"

/*
 * Which of what the two looks say is proved. Both fill their states first; then
 * code_proof_prepare() goes once through the region, and notes in its marks what code_proof_rule()
 * needs.
 */
void code_proof_prepare(const struct code_region *region, const struct code_forward *forward);

/* The rule of an instruction, CFI_END where none is proved. `*ret_by_symbol`: it only holds if no
 * other code jumps to the function with another stack. */
struct cfi_rule code_proof_rule(const struct code_region *region, size_t number,
                                const struct code_forward *forward,
                                const struct code_backward *backward, bool *ret_by_symbol);

/* Notes which of the region's jumps out of it are made with a stack that is not as at a call.
 * Returns 0 or -ENOMEM. */
int code_proof_note_jumps(const struct code_region *region, const struct code_forward *forward,
                          const struct code_backward *backward, struct code_doubts *doubts);
