/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The threads of a profile: filled while it is loaded, settled once names and sessions are known.
 */

#include "profile.h"
#include "recorded_books.h"

/* Takes a blob of a segment's lines. Returns 0, or -ENOMEM. */
int profile_threads_take(struct profile *profile, uint32_t segment, const struct fxt_data *data);

/* After recorded_books_close(), and with the profile's tables sealed: leaves the last line of each
 * thread, and gives it the names and the owner that its process had last. */
void profile_threads_settle(struct profile *profile, const struct recorded_books *recorded);
