/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One decoder, two writers. What is valid is as in RFC 3629: no overlong forms, no surrogates,
 * nothing above U+10FFFF. An invalid byte is replaced alone and decoding goes on at the next one.
 */
#include "utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD"

size_t utf8_sequence(const char *text, size_t text_bytes)
{
    const unsigned char *bytes = (const unsigned char *)text;
    static const struct {
        unsigned char first_low, first_high, second_low, second_high;
        size_t bytes;
    } forms[] = {
        {0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (bytes[0] < forms[i].first_low || bytes[0] > forms[i].first_high) {
            continue;
        }
        if (forms[i].bytes > text_bytes) {
            return 0;
        }
        for (size_t k = 1; k < forms[i].bytes; k++) {
            unsigned char low = k == 1 ? forms[i].second_low : 0x80;
            unsigned char high = k == 1 ? forms[i].second_high : 0xBF;
            if (bytes[k] < low || bytes[k] > high) {
                return 0;
            }
        }
        return forms[i].bytes;
    }
    return 0;
}

/* Appends one piece if it and a NUL fit. */
static bool append(char *ret, size_t capacity_bytes, size_t *used, const char *piece, size_t bytes)
{
    if (capacity_bytes - *used <= bytes) {
        return false;
    }
    memcpy(ret + *used, piece, bytes);
    *used += bytes;
    return true;
}

/* Writes `character` as it stands in a JSON string into `escaped`. Returns its bytes, 0: no need.
 */
static size_t escape(char character, char escaped[8])
{
    if (character == '"' || character == '\\') {
        escaped[0] = '\\';
        escaped[1] = character;
        return 2;
    }
    if ((unsigned char)character < 0x20) {
        return (size_t)snprintf(escaped, 8, "\\u%04x", (unsigned)(unsigned char)character);
    }
    return 0;
}

static size_t convert(char *ret, size_t capacity_bytes, const char *text, size_t text_bytes,
                      bool json)
{
    size_t used = 0;
    for (size_t i = 0; i < text_bytes;) {
        char escaped[8];
        size_t bytes = utf8_sequence(text + i, text_bytes - i);
        size_t escaped_bytes = bytes == 1 && json ? escape(text[i], escaped) : 0;
        bool fits = false;
        if (bytes == 0) {
            fits = append(ret, capacity_bytes, &used, REPLACEMENT, sizeof REPLACEMENT - 1);
        } else if (escaped_bytes != 0) {
            fits = append(ret, capacity_bytes, &used, escaped, escaped_bytes);
        } else {
            fits = append(ret, capacity_bytes, &used, text + i, bytes);
        }
        if (!fits) {
            break;
        }
        i += bytes == 0 ? 1 : bytes;
    }
    ret[used] = '\0';
    return used;
}

size_t utf8_clean(char *ret, size_t capacity_bytes, const char *text, size_t text_bytes)
{
    return convert(ret, capacity_bytes, text, text_bytes, false);
}

size_t utf8_json(char *ret, size_t capacity_bytes, const char *text, size_t text_bytes)
{
    return convert(ret, capacity_bytes, text, text_bytes, true);
}
