/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What of the books an export can carry. */

#include "profile.h"

#include <stdint.h>

/* Ticks that may have been the target's and have no sample: lost, throttled, missed and dropped
 * ones. 0 where there are no books. */
uint64_t export_books_lost(const struct profile *profile);

/* Hands over one line at a time of what a reader should know of the recording: samples, period,
 * each term of the books, counters that are not 0. Lines are plain ASCII without control
 * characters; borrowed. */
typedef void export_line_fn(const char *line, void *userdata);
void export_books_lines(const struct profile *profile, export_line_fn *on_line, void *userdata);
