/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decodes by the table of RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
 */
#include "utf8.h"

size_t utf8_character(const char *text, size_t size_bytes, uint32_t *ret_character)
{
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (size_bytes == 0) {
        return 0;
    }
    uint8_t first = (uint8_t)text[0];
    size_t length = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (length == 0 || first > 0xf4 || length > size_bytes) {
        return 0;
    }
    uint32_t character = length == 1 ? first : first & (0xffU >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if (((uint8_t)text[i] & 0xc0) != 0x80) {
            return 0;
        }
        character = character << 6 | ((uint8_t)text[i] & 0x3f);
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

bool utf8_is_valid(const char *text, size_t size_bytes)
{
    while (size_bytes > 0) {
        size_t length = utf8_character(text, size_bytes, NULL);
        if (length == 0) {
            return false;
        }
        text += length;
        size_bytes -= length;
    }
    return true;
}
