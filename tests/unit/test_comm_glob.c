/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Globs against names: what each character means, and that nothing differs from fnmatch().
 */
#include "comm_glob.h"
#include "unit_test.h"

#include <fnmatch.h>

#define PATTERNS 20000
#define NAMES    10

static bool matches(const char *pattern, const char *name)
{
    static struct comm_glob glob;
    comm_glob_compile(pattern, &glob);
    return comm_glob_matches(&glob, name);
}

/* What is not made of the pieces below. */
TEST(knows_each_character)
{
    static const struct {
        const char *pattern;
        const char *name;
        bool matches;
    } rows[] = {
        {"*/0:*", "kworker/0:1", true},
        {"?", "\xff", true},
        {"??", "\xc3\xa9", true},
        {"\xc3\xa9", "\xc3\xa9", true},
        {"[[:digit:]-]", "-", true},
        {"[[:digit:]-]", "7", true},
        {"[[:digit:]-]", ":", false},
        {"a[", "a[", true},
        {"[ab", "[ab", true},
        {"[ab", "a", false},
        {"a\\", "a", false},
        {"a\\", "a\\", false},
        {"********************************", "fifteen letters", true},
        {"????????????????????????????????", "fifteen letters", false},
        {"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaa", false},
        {"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaab", true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (matches(rows[i].pattern, rows[i].name) != rows[i].matches) {
            fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].name);
        }
    }
}

static uint32_t next_random(void)
{
    static uint32_t x = 1;
    x = UINT32_C(1664525) * x + UINT32_C(1013904223);
    return x >> 16;
}

TEST(agrees_with_fnmatch)
{
    char text[] =
        "* ? a *a b [a] [!b] [^b] [a-c] [[:alpha:]] [[=a=]] [[.a.]] ] - ! \xc3\xa9 []a] [!]a] "
        "[\\]] [a\\]b] \\* \\[ [*?] \\\\ [!a-] [[:x:]] [[:a] [[.] [a[:upper:]z]";
    const char *pieces[32];
    size_t piece_count = 0;
    for (char *at = strtok(text, " "); at != NULL; at = strtok(NULL, " ")) {
        pieces[piece_count++] = at;
    }
    static const char bytes[] = "abc]b[a\\*-z:!\xc3";
    for (size_t i = 0; i < PATTERNS; i++) {
        char pattern[SESSION_COMM_BYTES_MAX + 1] = "";
        for (size_t count = 1 + next_random() % 8; count > 0; count--) {
            const char *piece = pieces[next_random() % piece_count];
            if (strlen(pattern) + strlen(piece) <= SESSION_COMM_BYTES_MAX) {
                memcpy(pattern + strlen(pattern), piece, strlen(piece) + 1);
            }
        }
        for (size_t j = 0; j < NAMES; j++) {
            char name[SESSION_NAME_BYTES + 1] = "";
            for (size_t k = next_random() % 8; k > 0; k--) {
                name[k - 1] = bytes[next_random() % (sizeof bytes - 1)];
            }
            if (matches(pattern, name) != (fnmatch(pattern, name, 0) == 0)) {
                fail_msg("'%s' and '%s'", pattern, name);
            }
        }
    }
}
