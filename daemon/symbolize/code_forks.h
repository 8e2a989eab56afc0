/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "code_forward.h"

/*
 * The rule of an instruction: that which is proved (after code_proof_prepare()), and what is known
 * where a system call has made another thread, and where a signal handler returns to. As
 * code_proof_rule().
 */
struct cfi_rule code_forks_rule(const struct code_region *region, size_t number,
                                const struct code_forward *forward,
                                const struct code_backward *backward, bool *ret_by_symbol);

/* Whether the rule has to hold for the byte before the instruction, too, or for the one behind it:
 * those of a signal trampoline, to which handlers return, and behind which a task stands while the
 * kernel returns from the signal. */
bool code_forks_is_early(const struct code_region *region, size_t number);
bool code_forks_is_late(const struct code_region *region, size_t number);
