/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Recognises one UTF-8 sequence, by the table of well-formed byte sequences in the Unicode
 * standard. Pure.
 */
#include "utf8.h"

#include <stdbool.h>
#include <stdint.h>

static bool is_between(uint8_t byte, uint8_t first, uint8_t last)
{
    return byte >= first && byte <= last;
}

/* The second byte is where overlong forms, surrogates and values past U+10FFFF show. */
static bool is_second(uint8_t lead, uint8_t second)
{
    switch (lead) {
    case 0xe0:
        return is_between(second, 0xa0, 0xbf);
    case 0xed:
        return is_between(second, 0x80, 0x9f);
    case 0xf0:
        return is_between(second, 0x90, 0xbf);
    case 0xf4:
        return is_between(second, 0x80, 0x8f);
    default:
        return is_between(second, 0x80, 0xbf);
    }
}

static size_t length_of(uint8_t lead)
{
    if (lead < 0x80) {
        return 1;
    }
    if (is_between(lead, 0xc2, 0xdf)) {
        return 2;
    }
    if (is_between(lead, 0xe0, 0xef)) {
        return 3;
    }
    return is_between(lead, 0xf0, 0xf4) ? 4 : 0;
}

size_t utf8_sequence(const char *text, size_t bytes)
{
    uint8_t lead = (uint8_t)text[0];
    size_t length = length_of(lead);
    if (length > bytes) {
        return 0;
    }
    if (length > 1 && !is_second(lead, (uint8_t)text[1])) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if (!is_between((uint8_t)text[i], 0x80, 0xbf)) {
            return 0;
        }
    }
    return length;
}
