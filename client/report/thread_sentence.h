/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How threads spent their time, running, ready and blocked, in a sentence. Only recordings with
 * waits say it.
 */

#include "page.h"
#include "profile.h"

#include <stdio.h>

struct json_out;

/* "Time of 4 threads: running 1.642 s (19.9 %), ready ..." */
void thread_sentence_write(FILE *file, const struct profile *profile);
/* The sentence, and a command that shows the waits of the recording at `path` (NULL: there is no
 * command). Nothing where the profile has no threads. */
void thread_sentence_print(const struct page *page, const struct profile *profile,
                           const char *path);
/* Of waits: how much of the ready time is in the view. Of preempted, that is what followed
 * preemptions; of off-cpu, what followed wakings, if it is more than a little. Where samples do not
 * have all of that, it is said of the threads. Then a command that shows each thread's, as above.
 */
void thread_sentence_print_ready(const struct page *page, const struct profile *profile,
                                 const char *path);
/* Of waits: the sums by the lines of the threads that are selected, or were recorded, beside what
 * the samples stand for. Nothing of all threads of a machine, whose sums the books have. */
void thread_sentence_print_exact(const struct page *page, const struct profile *profile);
/* Times as members of an object; the sums as an object, "threads". */
void thread_sentence_print_json_times(struct json_out *out, const struct thread_split *times);
void thread_sentence_print_json_sum(struct json_out *out, const struct profile *profile);
