/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "page.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Prints the accounting of ticks (the object of docs/trace-format.md) for a person: a line a CPU
 * and a total, "-" for what was not measured. `books_json` NULL, or no such object: says so.
 */
void books_print_print(FILE *file, const char *books_json);

/* The same on a page. Where it is too wide for that, columns of zeros are left out and named. */
void books_print_table(const struct page *page, const char *books_json);

/* The same in a line, with those of its warnings that print() has. */
void books_print_brief(const struct page *page, const char *books_json);

/* What they have of events beside the clock, a line each; nothing where there is none. */
void books_print_events(FILE *file, const char *books_json);

/* A sum of all CPUs ("kept"); false where there is none. */
bool books_print_total(const char *books_json, const char *member, int64_t *ret);

/*
 * Why so many ticks of all CPUs together are of a term ("missed"), and what to do, as the warnings
 * of a table have it. False: they are no more than such a warning begins at. `into` has room for
 * BOOKS_PRINT_REASON_BYTES.
 */
#define BOOKS_PRINT_REASON_BYTES ((size_t)320)
bool books_print_reason(const char *books_json, const char *member, char *into);

/* One of the counters beside the sums; 0 where there is none. */
uint64_t books_print_counter(const char *books_json, const char *member);

/* Their "period_ns", 0 where they have none. */
uint64_t books_print_period_ns(const char *books_json);

/* How many samples they say were kept on all CPUs, 0 where they do not say. */
uint64_t books_print_kept(const char *books_json);

/* For how long it was sampled, in seconds: the longest time of a CPU. `otherwise_s` where they do
 * not say, as where the ticks are not listed by CPU. */
double books_print_length_s(const char *books_json, double otherwise_s);
