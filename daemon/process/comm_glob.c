/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The set of elements before which a name may stand is one word, a bit for each element and one for
 * the end. A byte moves each bit whose element it may be to the next place; a star keeps its bit
 * and also gives it to the next place. Stars in a row are one element, so one shift is enough for
 * that.
 *
 * What a byte may be in brackets is found out by fnmatch(), for each byte, when a glob is compiled.
 */
#include "comm_glob.h"

#include <fnmatch.h>
#include <string.h>

_Static_assert(SESSION_COMM_BYTES_MAX < 64, "a bit for each element and one for the end");

/* Where a class like "[:alpha:]" ends that `at` begins with, or NULL: it begins with none. */
static const char *class_end(const char *at)
{
    if (at[0] != '[' || at[1] == '\0' || strchr(":=.", at[1]) == NULL) {
        return NULL;
    }
    const char closing[] = {at[1], ']', '\0'};
    const char *end = strstr(at + 2, closing);
    bool is_name = at[1] != ':' || at + 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz") == end;
    return end != NULL && is_name ? end + 2 : NULL;
}

/* The length of the brackets that `at` begins with, or 0 when they do not end. */
static size_t bracket_bytes(const char *at)
{
    const char *next = at + 1;
    next += *next == '!' || *next == '^';
    next += *next == ']';
    while (*next != '\0' && *next != ']') {
        const char *end = class_end(next);
        next = end != NULL ? end : next + (*next == '\\' && next[1] != '\0' ? 2 : 1);
    }
    return *next == ']' ? (size_t)(next + 1 - at) : 0;
}

/* Adds `element` for all bytes that the first element of `text` stands for. Returns its length, or
 * 0 for a '\' at the end. */
static size_t add_element(struct comm_glob *glob, const char *text, uint64_t element)
{
    char bracket[SESSION_COMM_BYTES_MAX + 1];
    size_t bytes = *text == '[' ? bracket_bytes(text) : 0;
    if (bytes == 0 && *text != '?') {
        bytes = *text == '\\' ? 2 : 1;
        glob->elements_of[(uint8_t)text[bytes - 1]] |= element;
        return text[bytes - 1] == '\0' ? 0 : bytes;
    }
    memcpy(bracket, text, bytes);
    bracket[bytes] = '\0';
    for (unsigned byte = 1; byte <= UINT8_MAX; byte++) {
        const char name[] = {(char)byte, '\0'};
        if (bytes == 0 || fnmatch(bracket, name, 0) == 0) {
            glob->elements_of[byte] |= element;
        }
    }
    return bytes == 0 ? 1 : bytes;
}

void comm_glob_compile(const char *pattern, struct comm_glob *ret)
{
    uint64_t element = 1;
    *ret = (struct comm_glob){0};
    for (size_t bytes = 1; *pattern != '\0'; pattern += bytes) {
        if (*pattern == '*') {
            bytes = strspn(pattern, "*");
            ret->stars |= element;
        } else {
            bytes = add_element(ret, pattern, element);
        }
        if (bytes == 0) {
            return;
        }
        element <<= 1;
    }
    ret->end = element;
}

bool comm_glob_matches(const struct comm_glob *glob, const char *name)
{
    uint64_t places = 1;
    places |= (places & glob->stars) << 1;
    for (; *name != '\0' && places != 0; name++) {
        places = (places & glob->elements_of[(uint8_t)*name]) << 1 | (places & glob->stars);
        places |= (places & glob->stars) << 1;
    }
    return (places & glob->end) != 0;
}
