/* SPDX-License-Identifier: Apache-2.0 */

/* Which known word a mistyped one is taken for. */
#include "suggest.h"
#include "unit_test.h"

TEST(suggests_the_word_that_was_meant)
{
    static const char *const words[] = {
        "record", "report", "to", "status", "duration", "a-word-that-is-too-long-to-be-meant"};
    static const struct {
        const char *typed;
        const char *expected; /* NULL: none is like it */
    } cases[] = {
        {"recrod", "record"},
        {"reprot", "report"},
        {"status", "status"},
        {"stat", "status"},          /* a part */
        {"duration-ms", "duration"}, /* more than the word */
        {"rec", NULL},               /* too little of one */
        {"ab", NULL},                /* nothing is left of "to" */
        {"oo", "to"},
        {"", NULL},
        {"tomorrow", NULL}, /* "to" is no part that says anything */
        {"a-word-that-is-too-long-to-be-mean", NULL},
        {"nonsense", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *suggested = suggest_word(cases[i].typed, words, COUNT_OF(words));
        if (cases[i].expected == NULL) {
            assert_null(suggested);
        } else {
            assert_non_null(suggested);
            assert_string_equal(suggested, cases[i].expected);
        }
    }
    assert_null(suggest_word("record", words, 0));
}
