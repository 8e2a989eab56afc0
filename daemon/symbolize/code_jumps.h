/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "code_doubts.h"
#include "code_forward.h"

/* Notes what the calls, jumps and returns of a region's first instructions say of functions: which
 * are called, and which are jumped to with another stack than a call leaves. Returns 0 or -ENOMEM.
 */
int code_jumps_note(const struct code_region *region, size_t site_count,
                    const struct code_forward *forward, const struct code_backward *backward,
                    struct code_doubts *doubts);
