/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How threads spent their time, running, ready and blocked: in a sentence, which a report of CPU
 * time begins with, and as a table. Only recordings with waits say it.
 */

#include "page.h"
#include "profile.h"
#include "summary.h"

#include <stddef.h>
#include <stdio.h>

struct json_out;

/* The sentence, and a command that shows the waits of the recording at `path` (NULL: there is no
 * command). Nothing where the profile has no threads. */
void thread_table_print_sentence(const struct page *page, const struct profile *profile,
                                 const char *path);
/* Of waits: the exact sums of the threads that are selected, or were recorded, beside what the
 * samples stand for. Nothing of all threads of a machine, whose sums the books have. */
void thread_table_print_exact(const struct page *page, const struct profile *profile);
/* The sums as a member, "threads". */
void thread_table_print_json_sum(struct json_out *out, const struct profile *profile);

/* The threads, the one first that was running or ready for longest; `limit` of them, 0: all. Return
 * 0, or -ENOMEM, and print nothing. */
int thread_table_print_text(const struct page *page, const struct profile *profile,
                            const struct summary *summary, size_t limit);
int thread_table_print_json(FILE *file, const struct profile *profile,
                            const struct summary *summary, size_t limit);
