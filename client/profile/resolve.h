/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Second half of loading: gives every sample its chain of frames and its process's name. The tables
 * of the profile are sealed by then, and all stacks are known. It may be done again: with
 * `inlines.is_wanted` for the addresses, and once chains are known (inlines.h), for their frames.
 */

#include "profile.h"

/* Returns 0, or -ENOMEM. */
int resolve_samples(struct profile *profile);
