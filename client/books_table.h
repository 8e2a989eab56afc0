/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>

/*
 * Prints the accounting of ticks (the object of docs/trace-format.md) for a person: a line a CPU
 * and a total, "-" for what was not measured. `books_json` NULL, or no such object: says so.
 */
void books_table_print(FILE *file, const char *books_json);
