/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One step up a stack, by the rule of call-frame information. */

#include "cfi_table.h"
#include "unwind_frame.h"

/*
 * Makes `frame`, whose code has `rule`, its caller's. Returns STACK_NONE, or leaves it as it was
 * and returns what the stack ends with: STACK_NO_RULE also where the rule rests on a register that
 * is not known, or the return address is 0.
 */
enum stack_quality unwind_cfi_step(const struct cfi_rule *rule, const struct unwind_memory *memory,
                                   struct unwind_frame *frame);
