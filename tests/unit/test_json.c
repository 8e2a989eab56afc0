/* SPDX-License-Identifier: Apache-2.0 */

/* What the checker lets through; what it refuses is in data/session_config/refused. */
#include "cleanup.h"
#include "json.h"

/* cmocka wants the four above */
#include "unit_test.h"

TEST(accepts_json_texts)
{
    static const char *const texts[] = {
        "true",
        " false ",
        "null",
        "-0",
        "0.5",
        "-12.25e-3",
        "1E+2",
        "\"\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\ud83d\\ude00\"",
        "\"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"",
        "[ ]",
        "[1,\"a\" , {\"b\":[]}]",
        "{\"a\":{}, \"b\" : null}",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        cleanup_(json_freep) cJSON *tree = NULL;
        struct fault fault = {0};
        int r = json_parse(texts[i], strlen(texts[i]), 3, &tree, &fault);
        assert_string_equal(fault.text, "");
        assert_int_equal(r, 0);
        assert_non_null(tree);
    }
}

TEST(reads_no_byte_behind_the_text)
{
    static const char text[] = "{\"a\":[true,1.5e1,\"\\u0041\xc3\xa9\"]}";
    for (size_t bytes = 0; bytes < sizeof text - 1; bytes++) {
        /* An exact copy, so that a sanitizer sees a read past the end. */
        char *exact = malloc(bytes == 0 ? 1 : bytes);
        cJSON *tree = NULL;
        assert_non_null(exact);
        memcpy(exact, text, bytes);
        assert_int_equal(json_parse(exact, bytes, 3, &tree, NULL), -EINVAL);
        free(exact);
    }
}

TEST(limits_nesting_to_what_the_caller_allows)
{
    cJSON *tree = NULL;
    assert_int_equal(json_parse("[[{}]]", 6, 2, &tree, NULL), -EINVAL);
    assert_int_equal(json_parse("[[{}]]", 6, 3, &tree, NULL), 0);
    cJSON_Delete(tree);
    tree = NULL;
    assert_int_equal(json_parse("[[],[],[],[]]", 13, 2, &tree, NULL), 0);
    cJSON_Delete(tree);
}

TEST(reads_integers_within_their_range)
{
    cleanup_(json_freep) cJSON *tree = cJSON_Parse("[5, 5.5, \"5\", 9007199254740992, -1]");
    int64_t value = 0;
    assert_true(json_read_integer(cJSON_GetArrayItem(tree, 0), 5, 5, &value));
    assert_int_equal(value, 5);
    assert_false(json_read_integer(cJSON_GetArrayItem(tree, 0), 6, 9, &value));
    assert_false(json_read_integer(cJSON_GetArrayItem(tree, 0), 1, 4, &value));
    assert_false(json_read_integer(cJSON_GetArrayItem(tree, 1), 1, 9, &value));
    assert_false(json_read_integer(cJSON_GetArrayItem(tree, 2), 1, 9, &value));
    assert_false(json_read_integer(NULL, 1, 9, &value));
    assert_true(json_read_integer(cJSON_GetArrayItem(tree, 3), 0, JSON_INTEGER_MAX, &value));
    assert_int_equal(value, JSON_INTEGER_MAX);
    assert_false(json_read_integer(cJSON_GetArrayItem(tree, 4), 0, 9, &value));
}
