/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

/* What the books (borrowed; NULL: none) have of events beside the clock, a line each; nothing where
 * there is none. Of books_print.c only. */
void books_events_write(FILE *file, const cJSON *books);

/* The same of one event. */
void books_events_write_one(FILE *file, const cJSON *books, const char *name);

/* A line for each event of which some were held back. */
void books_events_warn(FILE *file, const cJSON *books);
