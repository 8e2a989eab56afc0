/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Samples by process, and in the order of time within one. */

#include "profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The numbers of all samples. Those of a process (of one segment, with one pid and one name) stand
 * together; processes by their numbers. Returned: free(); NULL when there is no memory.
 */
uint32_t *sample_order_by_process(const struct profile *profile);

bool samples_share_process(const struct profile_sample *a, const struct profile_sample *b);

/* Behind the last sample of the process that has the one at `order[first]`. */
size_t sample_order_end(const struct profile *profile, const uint32_t *order, size_t first);
