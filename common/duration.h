/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What a complaint names where a text is none. */
#define DURATION_FORMS "such as 5, 1.5, 250ms, 90s, 2m or 1h"

/* Reads a length of time: a number with or without a fraction, in seconds or with one of the units
 * us, ms, s, m and h behind it. False, and `*ret_ns` is unchanged: it is none, or above `max_ns`,
 * or has a part of a nanosecond. */
bool duration_parse(const char *text, uint64_t max_ns, uint64_t *ret_ns);

/* Reads the digits behind a decimal point as parts of `unit`. Returns what follows them, or NULL
 * where there are none, more than a nanosecond of a second needs, or a part of a nanosecond. */
const char *duration_fraction(const char *digits, uint64_t unit, uint64_t *ret);
