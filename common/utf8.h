/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes text that came from anywhere fit to be shown: valid UTF-8, and quoted for JSON. Pure. */

#include <stddef.h>

/*
 * The bytes of the valid character at the beginning of `text` (1 to 4), or 0: it is overlong, a
 * surrogate, past U+10FFFF, cut short, or no beginning at all. `text_bytes` is at least 1.
 */
size_t utf8_sequence(const char *text, size_t text_bytes);

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
