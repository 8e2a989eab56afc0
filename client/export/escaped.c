/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints names reversibly: each character as it is, or as an escape that only that one has.
 */
#include "escaped.h"

#include "utf8.h"

#include <stdint.h>
#include <string.h>

size_t escaped_print_character(FILE *file, const char *text, size_t text_bytes)
{
    uint32_t character = 0;
    size_t length = utf8_character(text, text_bytes, &character);
    if (length == 0 || (utf8_is_control(character) && character != '\n')) {
        length = length == 0 ? 1 : length;
        for (size_t i = 0; i < length; i++) {
            (void)fprintf(file, "\\x%02x", (uint8_t)text[i]);
        }
    } else if (character == '\n') {
        (void)fputs("\\n", file);
    } else if (character == '\\') {
        (void)fputs("\\\\", file);
    } else {
        (void)fwrite(text, 1, length, file);
    }
    return length;
}

void escaped_print(FILE *file, const char *text)
{
    /* Readers pass over spaces in front of a name. */
    if (text[0] == ' ') {
        (void)fputs("\\x20", file);
        text++;
    }
    for (size_t left = strlen(text), length = 0; left > 0; left -= length, text += length) {
        length = escaped_print_character(file, text, left);
    }
}
