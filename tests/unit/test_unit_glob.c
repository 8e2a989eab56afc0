/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names of units as they are given, and what they match.
 */
#include "unit_glob.h"
#include "unit_test.h"

TEST(makes_names_of_what_is_given)
{
    static const struct {
        const char *text;
        const char *glob; /* NULL: refused */
    } rows[] = {
        {"nginx", "nginx.service"},
        {"nginx.service", "nginx.service"},
        {"user@1000", "user@1000.service"},
        {"session-3.scope", "session-3.scope"},
        {"cron?", "cron?.service"},
        {"cron*", "cron*"},
        {"*", "*"},
        {"dev-disk-by\\x2did.swap", "dev-disk-by\\x2did.swap"},
        {"", NULL},
        {"a b", NULL},
        {"a/b.service", NULL},
        {"[a].service", NULL},
        {"caf\xc3\xa9", NULL},
        {"a\n", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char glob[UNIT_GLOB_BYTES_MAX + 1] = "";
        assert_int_equal(unit_glob_make(rows[i].text, glob), rows[i].glob != NULL);
        assert_string_equal(glob, rows[i].glob == NULL ? "" : rows[i].glob);
    }
}

TEST(refuses_names_that_are_too_long)
{
    char text[UNIT_GLOB_BYTES_MAX + 2] = "";
    char glob[UNIT_GLOB_BYTES_MAX + 1];
    const size_t bare_bytes = UNIT_GLOB_BYTES_MAX - strlen(".service");
    memset(text, 'a', bare_bytes);
    assert_true(unit_glob_make(text, glob));
    text[bare_bytes] = 'a';
    assert_false(unit_glob_make(text, glob));
    memset(text, '.', UNIT_GLOB_BYTES_MAX);
    assert_true(unit_glob_make(text, glob));
    text[UNIT_GLOB_BYTES_MAX] = '.';
    assert_false(unit_glob_make(text, glob));
}

TEST(matches_stars_and_question_marks)
{
    static const struct {
        const char *glob;
        const char *name;
        bool matches;
    } rows[] = {
        {"a.service", "a.service", true},
        {"a.service", "a.servic", false},
        {"a.service", "ba.service", false},
        {"a?.service", "ab.service", true},
        {"a?.service", "a.service", false},
        {"*", "x", true},
        {"*", "", true},
        {"?", "", false},
        {"a*", "a", true},
        {"*.service", "a.service.service", true},
        {"*.service", "a.services", false},
        {"a*b*c", "axbxbxc", true},
        {"a*b*c", "axbxbx", false},
        {"**b", "ab", true},
        {"a*b", "ab*", false},
        {"a\\x2db", "a\\x2db", true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(unit_glob_matches(rows[i].glob, rows[i].name, strlen(rows[i].name)),
                         rows[i].matches);
    }
}

/* Of a name only so many bytes count: it is a part of a path. */
TEST(looks_at_no_byte_behind_the_name)
{
    assert_true(unit_glob_matches("a.scope", "a.scope/b", 7));
    assert_false(unit_glob_matches("a.scope", "a.scope", 6));
    assert_true(unit_glob_matches("a*", "a/", 1));
}

/* With backtracking over each star this would take longer than the machine lasts. */
TEST(takes_no_time_for_many_stars)
{
    char glob[UNIT_GLOB_BYTES_MAX + 1] = "";
    char name[256];
    memset(name, 'a', sizeof name);
    for (size_t i = 0; i + 2 < UNIT_GLOB_BYTES_MAX; i += 2) {
        memcpy(glob + i, "*a", 3);
    }
    glob[strlen(glob) - 1] = 'b';
    assert_false(unit_glob_matches(glob, name, sizeof name));
}

TEST(knows_the_control_groups_of_units)
{
    static const struct {
        const char *name;
        bool is_unit;
    } rows[] = {
        {"a.service", true},  {"a.scope", true},      {"a.slice", true},  {"a.socket", true},
        {"home.mount", true}, {"x.swap", true},       {"a.timer", false}, {"a", false},
        {"service", false},   {"a.service.d", false}, {"", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(unit_glob_is_unit(rows[i].name), rows[i].is_unit);
    }
}
