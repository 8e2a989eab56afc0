/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Build-ids as formats want them that have bytes for them; a profile has them as digits, an even
 * number of them.
 */
#include "build_id_bytes.h"

#include <stdlib.h>
#include <string.h>

size_t build_id_bytes(const char *digits, uint8_t *ret, size_t bytes_max)
{
    size_t size_bytes = strlen(digits) / 2;
    if (size_bytes > bytes_max) {
        return 0;
    }
    for (size_t i = 0; i < size_bytes; i++) {
        const char byte[3] = {digits[2 * i], digits[2 * i + 1], '\0'};
        ret[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    return size_bytes;
}
