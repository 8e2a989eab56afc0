/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints names reversibly: each character as it is, or as an escape that only that one has.
 */
#include "escaped.h"

#include "utf8.h"

#include <stdint.h>
#include <stdlib.h>
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

/* How many bytes from the front are ASCII that stands for itself. */
static size_t count_plain(const char *text, size_t text_bytes)
{
    size_t count = 0;
    while (count < text_bytes && text[count] >= 0x20 && text[count] < 0x7f && text[count] != '\\') {
        count++;
    }
    return count;
}

void escaped_print_bytes(FILE *file, const char *text, size_t text_bytes)
{
    for (size_t length = 0; text_bytes > 0; text_bytes -= length, text += length) {
        length = count_plain(text, text_bytes);
        if (length > 0) {
            (void)fwrite_unlocked(text, 1, length, file);
        } else {
            length = escaped_print_character(file, text, text_bytes);
        }
    }
}

void escaped_print(FILE *file, const char *text)
{
    /* Readers pass over spaces in front of a name. */
    if (text[0] == ' ') {
        (void)fputs("\\x20", file);
        text++;
    }
    escaped_print_bytes(file, text, strlen(text));
}

char *escaped_text(const char *text)
{
    char *escaped = NULL;
    size_t escaped_bytes = 0;
    FILE *file = open_memstream(&escaped, &escaped_bytes);
    if (file == NULL) {
        return NULL;
    }
    escaped_print(file, text);
    if (fclose(file) != 0) {
        free(escaped);
        return NULL;
    }
    return escaped;
}
