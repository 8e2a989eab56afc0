/* SPDX-License-Identifier: Apache-2.0 */

/*
 * lines_build_id_read() turns a build-id into the bytes that a file has.
 */
#include "lines_build_id.h"

#include <string.h>

static bool read_digit(char digit, uint8_t *ret)
{
    const char *digits = "0123456789abcdef";
    const char *found = digit == '\0' ? NULL : strchr(digits, digit);
    *ret = found == NULL ? 0 : (uint8_t)(found - digits);
    return found != NULL;
}

bool lines_build_id_read(const char *text, struct lines_build_id *ret)
{
    size_t length = strlen(text);
    *ret = (struct lines_build_id){.size_bytes = length / 2};
    bool is_good = length > 0 && length % 2 == 0 && ret->size_bytes <= sizeof ret->bytes;
    for (size_t i = 0; is_good && i < ret->size_bytes; i++) {
        uint8_t high = 0;
        uint8_t low = 0;
        is_good = read_digit(text[2 * i], &high) && read_digit(text[2 * i + 1], &low);
        ret->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return is_good;
}
