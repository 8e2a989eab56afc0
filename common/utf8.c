/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decodes UTF-8, and cleans texts in three forms of output. Valid is what RFC 3629 allows: no
 * overlong forms, no surrogates, nothing above U+10FFFF. An invalid byte is replaced by itself, and
 * decoding continues at the next byte.
 */
#include "utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD"

size_t utf8_character(const char *text, size_t text_bytes, uint32_t *ret_character)
{
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (text_bytes == 0) {
        return 0;
    }
    uint8_t first = (uint8_t)text[0];
    size_t length = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length == 0 || first > 0xf4 || length > text_bytes) {
        return 0;
    }
    uint32_t character = length == 1 ? first : first & (0xffU >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if (((uint8_t)text[i] & 0xc0) != 0x80) {
            return 0;
        }
        character = character << 6 | ((uint8_t)text[i] & 0x3fU);
    }
    if (character < lowest[length] || character > 0x10ffff ||
        (character >= 0xd800 && character < 0xe000)) {
        return 0;
    }
    if (ret_character != NULL) {
        *ret_character = character;
    }
    return length;
}

bool utf8_is_control(uint32_t character)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } ranges[] = {
        {0x00, 0x1f},     /* C0 */
        {0x7f, 0x9f},     /* DEL, C1 */
        {0x061c, 0x061c}, /* Arabic letter mark */
        {0x200e, 0x200f}, /* left-to-right and right-to-left marks */
        {0x2028, 0x202e}, /* separators of lines and paragraphs, embeddings and overrides */
        {0x2066, 0x206f}, /* isolates, and format characters that are deprecated */
        {0xfeff, 0xfeff}, /* byte order mark */
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (character >= ranges[i].first && character <= ranges[i].last) {
            return true;
        }
    }
    return false;
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
        size_t bytes = utf8_character(text + i, text_bytes - i, NULL);
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

size_t utf8_shown(char *ret, size_t capacity_bytes, const char *text, size_t text_bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < text_bytes;) {
        uint32_t character = 0;
        size_t bytes = utf8_character(text + i, text_bytes - i, &character);
        bool is_shown = bytes > 0 && !utf8_is_control(character);
        if (!append(ret, capacity_bytes, &used, is_shown ? text + i : "?", is_shown ? bytes : 1)) {
            break;
        }
        i += bytes == 0 ? 1 : bytes;
    }
    ret[used] = '\0';
    return used;
}
