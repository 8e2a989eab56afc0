/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/*
 * The length of the well-formed UTF-8 sequence at the beginning of `text` (1 to 4), or 0: it is
 * overlong, a surrogate, past U+10FFFF, cut short, or no beginning at all. `bytes` is at least 1.
 */
size_t utf8_sequence(const char *text, size_t bytes);
