/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Makes text that came from anywhere fit to be shown: valid UTF-8, quoted for JSON, and without
 * what a terminal obeys. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The length of the valid character at the beginning of `text` (1 to 4), or 0: there is none, or it
 * is overlong, a surrogate, past U+10FFFF or cut short. `*ret_character` (which may be NULL) is its
 * code.
 */
size_t utf8_character(const char *text, size_t text_bytes, uint32_t *ret_character);

/*
 * Copies `text` with every invalid byte as U+FFFD into `ret` (capacity_bytes > 0), cut between
 * characters where it does not fit, and ends it with NUL. Returns the bytes written, less the NUL.
 */
size_t utf8_clean(char *ret, size_t capacity_bytes, const char *text, size_t text_bytes);

/*
 * The same as the inside of a JSON string: quotes, backslashes and control characters escaped. What
 * does not fit is cut between characters.
 */
size_t utf8_json(char *ret, size_t capacity_bytes, const char *text, size_t text_bytes);

/*
 * True for a character that a terminal obeys, or that reorders or hides the text around it: C0,
 * DEL, C1, line and paragraph separators, and the marks, overrides and isolates of right-to-left
 * text.
 */
bool utf8_is_control(uint32_t character);

/*
 * Copies `text` as a person may see it: each control character and each invalid byte becomes '?'.
 * What does not fit is cut between characters. Returns the bytes written, less the NUL.
 */
size_t utf8_shown(char *ret, size_t capacity_bytes, const char *text, size_t text_bytes);
