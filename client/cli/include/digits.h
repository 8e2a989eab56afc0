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

/* At least `least` (up to DIGITS_MAX) decimal digits, with zeros before the number's own. */
static inline size_t digits_decimal_padded(uint64_t value, size_t least, char *into)
{
    char reversed[DIGITS_MAX];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0 || count < least);
    for (size_t i = 0; i < count; i++) {
        into[i] = reversed[count - 1 - i];
    }
    return count;
}

static inline size_t digits_decimal(uint64_t value, char *into)
{
    return digits_decimal_padded(value, 1, into);
}

/* In lower case, without zeros before them. */
static inline size_t digits_hex(uint64_t value, char *into)
{
    size_t count = value == 0 ? 1 : (size_t)(67 - __builtin_clzll(value)) / 4;
    for (size_t i = count; i > 0; i--, value >>= 4) {
        into[i - 1] = "0123456789abcdef"[value & 0xf];
    }
    return count;
}
