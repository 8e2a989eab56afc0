/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What a replay reads of a file at the most. */
#define FUZZ_INPUT_BYTES_MAX ((size_t)1 << 20)

/* The input as a text, with a NUL behind it. Returned: free(). NULL: no memory. */
static inline char *fuzz_text(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1);
    if (text != NULL) {
        memcpy(text, bytes, size);
        text[size] = '\0';
    }
    return text;
}

/* Every fuzz target defines it; it returns 0, and aborts when its property does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
