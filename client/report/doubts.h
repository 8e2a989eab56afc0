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
