/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sampling period, the length and the books of each session of a file, as the profile has them.
 */

#include "profile.h"
#include "recorded_books.h"

/* After the books are closed: what the sessions say. The books of all sessions are given up where
 * a session that has samples has none. Returns 0, or -ENOMEM. */
int session_times_take(struct profile *profile, const struct recorded_books *recorded);

/* Once all times are by one clock: when each session was, and for how long. */
void session_times_measure(struct profile *profile);

void session_times_done(struct profile *profile);
