/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "page.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What the words of the table mean, whole lines for the --help of verbs that print it. */
#define BOOKS_PRINT_HELP                                                                           \
    "The books count ticks of each CPU's timer. expected: all. received: with a\n"                 \
    "sample, which is kept, filtered (not of a target, or the profiler's own) or\n"                \
    "dropped (no room in the buffer). Without one: lost (the daemon came too late),\n"             \
    "throttled (the kernel held the timer back), missed (the timer came too late),\n"              \
    "idle (nothing ran), unexplained (what is left over). profctl(1) has more.\n"

/*
 * Prints the accounting of ticks (the object of docs/trace-format.md) for a person: a line a CPU
 * and a total, "-" for what was not measured. `books_json` NULL, or no such object: says so. Where
 * that is too wide for the page, columns of zeros are left out and named; where it still is, each
 * line becomes a paragraph with what is not zero.
 */
void books_print_table(const struct page *page, const char *books_json);

/* The same on the terminal that `file` is; elsewhere as wide as it is, a sentence a line. */
void books_print_print(FILE *file, const char *books_json);

/* The same in a line, and a sentence for each term that a warning is about. */
void books_print_brief(const struct page *page, const char *books_json);

/* Which modules could not be read; as many as the books say, or it is not known which. */
struct books_unread {
    char *const *paths; /* borrowed */
    size_t count;
    bool has_kernel; /* besides them */
};

/* The same as books_print_print() fits it, with what else makes the recording less than it seems.
 * `table` is what shows the table: "--books". `unread` NULL: not known. */
void books_print_short(FILE *file, const char *books_json, const char *table,
                       const struct books_unread *unread);

/* A sum of all CPUs ("kept"); false where there is none. */
bool books_print_total(const char *books_json, const char *member, int64_t *ret);

/* The line of an event beside the clock; nothing where the books have none. */
void books_print_event_brief(const struct page *page, const char *books_json, const char *event);

/* A sum of all CPUs of such an event ("counted"), or its "period", which is 0 where it differs;
 * false where there is none. */
bool books_print_event(const char *books_json, const char *event, const char *member, int64_t *ret);

/* The leader of an event that is a follower. Returned: free(); NULL: it is none, or there is no
 * memory. */
char *books_print_leader(const char *books_json, const char *event);

/*
 * Why so many ticks of all CPUs together are of a term ("missed"), and what to do, as the warnings
 * of a table have it. False: they are no more than such a warning begins at. `into` has room for
 * BOOKS_PRINT_REASON_BYTES.
 */
#define BOOKS_PRINT_REASON_BYTES ((size_t)320)
bool books_print_reason(const char *books_json, const char *member, char *into);

/*
 * The gravest of the warnings of a table, "1.7 % of the ticks of cpu 1 are unexplained". False:
 * there is none. `into` has room for BOOKS_PRINT_WORST_BYTES.
 */
#define BOOKS_PRINT_WORST_BYTES ((size_t)96)
bool books_print_worst(const char *books_json, char *into);

/* One of the counters beside the sums; 0 where there is none. */
uint64_t books_print_counter(const char *books_json, const char *member);

/* Their "period_ns", 0 where they have none. */
uint64_t books_print_period_ns(const char *books_json);

/* How many samples they say were kept on all CPUs, 0 where they do not say. */
uint64_t books_print_kept(const char *books_json);

/* The same of the clock and all other events together. */
uint64_t books_print_kept_of_all(const char *books_json);
