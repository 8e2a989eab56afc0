/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Brings together what the books of a session are made of: the collector's counts, the kernel's,
 * and steal. Belongs to the main thread; of session.c only.
 */

#include "collector.h"
#include "perf_source.h"

#include <stdbool.h>
#include <stdint.h>

struct session_books;

/* Returned; NULL when there is no memory. `source` is borrowed for their life. */
struct session_books *session_books_new(const struct perf_source *source);
struct session_books *session_books_free(struct session_books *books);

/* Steal counts from the one to the other; of a CPU that comes meanwhile, from the next
 * session_books_look() on. */
void session_books_start(struct session_books *books);
void session_books_look(struct session_books *books);
void session_books_stop(struct session_books *books);

/* As books_print(). */
char *session_books_print(const struct session_books *books, struct collector *collector,
                          uint64_t period_ns, bool totals_only);
