/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is said of a selection without a sample. */

#include "fault.h"
#include "selection.h"

/*
 * Says what was asked for, and what there is instead: the processes, threads or names with the most
 * samples, a name that may have been meant, or the times of what would be selected otherwise, which
 * are from `first_ns` to `last_ns`; `first_ns` above that: nothing would. The profile has all its
 * samples, at least one. Returns -ESRCH, or -ENOMEM.
 */
int selection_explain_none(const struct selection *selection, const struct profile *profile,
                           uint64_t first_ns, uint64_t last_ns, struct fault *reterr);
