/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The threads of a recording with waits, and how long each was running, ready and blocked. */

#include "page.h"
#include "profile.h"
#include "summary.h"

#include <stddef.h>
#include <stdio.h>

/* The threads, the one first that was running or ready for longest; `limit` of them, 0: all. Return
 * 0, or -ENOMEM, and print nothing. */
int thread_table_print_text(const struct page *page, const struct profile *profile,
                            const struct summary *summary, size_t limit);
int thread_table_print_json(FILE *file, const struct profile *profile,
                            const struct summary *summary, size_t limit);
