/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers as digits, for what prints millions of them: a tenth of the work of printf(). `into` has
 * room for DIGITS_MAX; there is no NUL behind them. Each function returns how many there are.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DIGITS_MAX ((size_t)20)

static inline size_t digits_decimal_count(uint64_t value)
{
    size_t count = 1;
    for (; value >= 10000; value /= 10000) {
        count += 4;
    }
    return count + (value >= 10) + (value >= 100) + (value >= 1000);
}

/* At least `least` (up to DIGITS_MAX) decimal digits, with zeros before the number's own. */
static inline size_t digits_decimal_padded(uint64_t value, size_t least, char *into)
{
    size_t own_count = digits_decimal_count(value);
    size_t count = own_count > least ? own_count : least;
    size_t left = count;
    for (; left > 1; left -= 2, value /= 100) {
        into[left - 2] = (char)('0' + value % 100 / 10);
        into[left - 1] = (char)('0' + value % 10);
    }
    if (left > 0) {
        into[0] = (char)('0' + value % 10);
    }
    return count;
}

static inline size_t digits_decimal(uint64_t value, char *into)
{
    return digits_decimal_padded(value, 1, into);
}

static inline size_t digits_hex_count(uint64_t value)
{
    return value == 0 ? 1 : (size_t)(67 - __builtin_clzll(value)) / 4;
}

/* In lower case, without zeros before them. */
static inline size_t digits_hex(uint64_t value, char *into)
{
    size_t count = digits_hex_count(value);
    for (size_t i = count; i > 0; i--, value >>= 4) {
        into[i - 1] = "0123456789abcdef"[value & 0xf];
    }
    return count;
}
