/* SPDX-License-Identifier: Apache-2.0 */

/* Any name is left alone, or becomes valid UTF-8 that has an end within its room. */
#include "demangle.h"
#include "fuzz_target.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

/* What libiberty has allocated for an identifier is lost when a name that grows too long is left in
 * the middle of it: a few KiB, at most 64 times for a recording (demangle.c). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:print_ident";
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct demangler demangler = {0};
    char readable[DEMANGLED_BYTES_MAX];
    char *name = calloc(1, size + 1);
    if (name == NULL) {
        return 0;
    }
    memcpy(name, bytes, size);
    if (demangle_name(&demangler, name, readable)) {
        size_t left = strnlen(readable, sizeof readable);
        if (left == 0 || left == sizeof readable) {
            abort();
        }
        for (const char *at = readable; left > 0;) {
            size_t character = utf8_character(at, left, NULL);
            if (character == 0) {
                abort();
            }
            at += character;
            left -= character;
        }
    }
    free(name);
    return 0;
}
