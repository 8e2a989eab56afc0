/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Suggests what a mistyped word stands for, by the edit distance to each known one. Pure. Words of
 * more than WORD_BYTES_MAX bytes are neither suggested nor compared, so the row has a fixed size.
 */
#include "suggest.h"

#include <stdint.h>
#include <string.h>

#define WORD_BYTES_MAX ((size_t)24)
#define DISTANCE_MAX   ((size_t)2)
#define PART_BYTES_MIN ((size_t)4) /* letters of a word that suggest the rest */

/* How many single-byte insertions, deletions and exchanges lie between two words. */
static size_t edit_distance(const char *from, const char *to)
{
    size_t row[WORD_BYTES_MAX + 1];
    size_t to_bytes = strlen(to);
    for (size_t j = 0; j <= to_bytes; j++) {
        row[j] = j;
    }
    for (size_t i = 1; from[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= to_bytes; j++) {
            size_t exchanged = diagonal + (from[i - 1] != to[j - 1]);
            diagonal = row[j];
            size_t inserted = row[j - 1] + 1;
            row[j] = row[j] + 1 < inserted ? row[j] + 1 : inserted;
            row[j] = row[j] < exchanged ? row[j] : exchanged;
        }
    }
    return row[to_bytes];
}

static const char *suggest_by_part(const char *typed, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count && strlen(typed) >= PART_BYTES_MIN; i++) {
        if (strstr(words[i], typed) != NULL ||
            (strlen(words[i]) >= PART_BYTES_MIN && strstr(typed, words[i]) != NULL)) {
            return words[i];
        }
    }
    return NULL;
}

const char *suggest_word(const char *typed, const char *const *words, size_t count)
{
    const char *closest = NULL;
    size_t least = DISTANCE_MAX + 1;
    size_t typed_bytes = strlen(typed);
    if (typed_bytes > WORD_BYTES_MAX) {
        return NULL;
    }
    /* A word that is changed in each of its bytes has nothing in common with the other. */
    least = least < typed_bytes ? least : typed_bytes;
    for (size_t i = 0; i < count; i++) {
        size_t distance =
            strlen(words[i]) > WORD_BYTES_MAX ? SIZE_MAX : edit_distance(typed, words[i]);
        if (distance < least) {
            least = distance;
            closest = words[i];
        }
    }
    return closest != NULL ? closest : suggest_by_part(typed, words, count);
}
