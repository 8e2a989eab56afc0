/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A mismatch goes back to the last star alone, which then takes one character more: no other star
 * needs to, so the steps are bounded whatever the glob is.
 */
#include "unit_glob.h"

#include <string.h>

#define SERVICE ".service"

bool unit_glob_make(const char *text, char ret[UNIT_GLOB_BYTES_MAX + 1])
{
    static const char signs[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                ":-_.\\@*?";
    size_t bytes = strlen(text);
    bool is_bare = bytes > 0 && strchr(text, '.') == NULL && text[bytes - 1] != '*';
    if (bytes == 0 || text[strspn(text, signs)] != '\0' ||
        bytes + (is_bare ? strlen(SERVICE) : 0) > UNIT_GLOB_BYTES_MAX) {
        return false;
    }
    memcpy(ret, text, bytes + 1);
    if (is_bare) {
        memcpy(ret + bytes, SERVICE, sizeof SERVICE);
    }
    return true;
}

bool unit_glob_matches(const char *glob, const char *name, size_t name_bytes)
{
    const char *star = NULL; /* the last one, */
    size_t star_taken = 0;   /* and where what it takes ends */
    size_t at = 0;
    while (at < name_bytes) {
        if (*glob == '*') {
            star = glob++;
            star_taken = at;
        } else if (*glob != '\0' && (*glob == '?' || *glob == name[at])) {
            glob++;
            at++;
        } else if (star != NULL) {
            glob = star + 1;
            at = ++star_taken;
        } else {
            return false;
        }
    }
    return glob[strspn(glob, "*")] == '\0';
}

bool unit_glob_is_unit(const char *name)
{
    static const char *const kinds[] = {".service", ".scope", ".slice",
                                        ".socket",  ".mount", ".swap"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && dot != NULL; i++) {
        if (strcmp(dot, kinds[i]) == 0) {
            return true;
        }
    }
    return false;
}
