/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads lengths of time as people write them, exactly: a fraction never passes through floating
 * point, and one below a nanosecond is refused. Pure.
 */
#include "duration.h"

#include <stddef.h>
#include <string.h>

#define DIGITS              "0123456789"
#define FRACTION_DIGITS_MAX 9

/* The unit's nanoseconds, 0: there is no such unit. */
static uint64_t unit_ns(const char *name)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {
        {"", 1000000000}, {"s", 1000000000},  {"ms", 1000000},
        {"us", 1000},     {"m", 60000000000}, {"h", 3600000000000},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(name, units[i].name) == 0) {
            return units[i].ns;
        }
    }
    return 0;
}

const char *duration_fraction(const char *digits, uint64_t unit, uint64_t *ret)
{
    size_t count = strspn(digits, DIGITS);
    uint64_t fraction = 0;
    if (count == 0 || count > FRACTION_DIGITS_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        unit /= 10;
        if (unit == 0 && digits[i] != '0') {
            return NULL;
        }
        fraction += unit * (uint64_t)(digits[i] - '0');
    }
    *ret = fraction;
    return digits + count;
}

bool duration_parse(const char *text, uint64_t max_ns, uint64_t *ret_ns)
{
    size_t digits = strspn(text, DIGITS);
    const char *point = text + digits;
    const char *unit = *point == '.' ? point + 1 + strspn(point + 1, DIGITS) : point;
    uint64_t factor_ns = unit_ns(unit);
    uint64_t whole = 0;
    uint64_t fraction_ns = 0;
    if (unit == text || factor_ns == 0) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        whole = whole * 10 + (uint64_t)(text[i] - '0');
        if (whole > max_ns / factor_ns) {
            return false;
        }
    }
    if (point != unit && duration_fraction(point + 1, factor_ns, &fraction_ns) != unit) {
        return false;
    }
    if (fraction_ns > max_ns - whole * factor_ns) {
        return false;
    }
    *ret_ns = whole * factor_ns + fraction_ns;
    return true;
}
