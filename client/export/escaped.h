/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names in formats of lines that have no escapes of their own. What is printed has no control
 * character and is UTF-8, and different names stay different: "\\" is a backslash, "\n" a newline,
 * "\xHH" a byte of another control character, or one that is not UTF-8; "\x20" the space in front.
 */

#include <stddef.h>
#include <stdio.h>

void escaped_print(FILE *file, const char *text);

/* The same as a text. Returned: free(); NULL when there is no memory. */
char *escaped_text(const char *text);

/* The same of a part of a name, which may begin with a space. */
void escaped_print_bytes(FILE *file, const char *text, size_t text_bytes);

/* Prints one character of `text_bytes` > 0 bytes. Returns its bytes. */
size_t escaped_print_character(FILE *file, const char *text, size_t text_bytes);
