/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Texts of a recording on their way to a person. They may come from anybody, so control characters,
 * which a terminal would obey, and what is not UTF-8 are printed as '?'.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

void text_print(FILE *file, const char *text);
void text_print_bytes(FILE *file, const char *text, size_t text_bytes);

/* Prints the text as a shell takes it: in quotes where it needs them. */
void text_print_argument(FILE *file, const char *text);

/* Prints the text and pads it with spaces to `width` characters. */
void text_print_padded(FILE *file, const char *text, size_t width);

/* How many characters the text has. */
size_t text_width(const char *text);

/* An amount of bytes for a person: "12.3 MiB". `into` has room for 32 bytes; returns it. */
const char *text_size(uint64_t size_bytes, char *into);
