/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One clock for a recording of several sessions. A record's time is since its machine was booted,
 * so times of two boots say nothing of one another; a session says which time of the day belongs to
 * one of them. By that, all times become those of the session whose machine was booted first.
 */

#include "profile.h"
#include "recorded_books.h"

#include <stdbool.h>
#include <stdint.h>

/* What is to be added to a session's times for those of the wall clock, in nanoseconds since 1970.
 * False, and nothing is written: it does not say, or there is no session (NULL). */
bool session_clock_offset_ns(const char *session_json, int64_t *ret);

/*
 * To be called once the recording has been read, before its tables are sealed. A segment that tells
 * no session is of the session of the one before it (recorded_books_close()). Moves the sessions
 * from `recorded` to the profile, and names the one that has the clock. Where a session does not
 * say what time of the day it was, all times stay as they are, and so do those of a single session.
 * Returns 0, or -ENOMEM.
 */
int session_clock_unify(struct profile *profile, struct recorded_books *recorded);
