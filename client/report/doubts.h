/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What casts doubt on a recording, each as a clause for a person.
 */

#include "summary.h"

/* `text` is borrowed for the call. Names in it have '?' for what a terminal would obey. */
typedef void doubts_fn(const char *text, void *userdata);

/* Calls `on_doubt` for each, the gravest first. Returns how many there are. */
size_t doubts_find(const struct profile *profile, const struct summary *summary,
                   doubts_fn *on_doubt, void *userdata);

/* Ticks without a sample that may have been the target's, by the books: `*ret_missing` of
 * `*ret_expected`, or 0 of 0 where that is not known. */
void doubts_count_missing(const struct profile *profile, uint64_t *ret_missing,
                          uint64_t *ret_expected);
