/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What casts doubt on the lines of threads (docs/books.md#threads): whether their times and counts
 * are whole, and what to say where they are not. */

#include "profile.h"

#include <stdbool.h>
#include <stdio.h>

/* Whether what is unexplained of a line is no more than its measuring leaves. */
bool doubts_threads_is_explained(const struct profile_thread *thread);

/* Whether records of the switches of all threads shown are there, as far as is known: else their
 * numbers of switches are too low. */
bool doubts_threads_have_switches(const struct profile *profile);

/* "at least " before a time of the threads shown, where a part of their time is unexplained. */
const char *doubts_threads_at_least(const struct profile *profile);

/* "blocked for 0.241 s and ready for 0.037 s, at least, as 3.736 s of their time is unexplained".
 */
void doubts_threads_write_spent(FILE *file, const struct profile *profile);

/* Says of how many threads the ready time is not told apart, and which threads have no line, with
 * `before` in front.
 * Returns false, and writes nothing, where nothing is to be said. */
bool doubts_threads_write_lacks(FILE *file, const struct profile *profile, const char *before);
