/* SPDX-License-Identifier: Apache-2.0 */

/* Text from anywhere becomes valid UTF-8, and JSON's inside, without ever being cut inside a
 * character. */
#include "unit_test.h"
#include "utf8.h"

#define R "\xEF\xBF\xBD"

TEST(replaces_each_invalid_byte)
{
    static const struct {
        const char *in;
        const char *out;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"gr\xC3\xBC\xC3\x9F", "gr\xC3\xBC\xC3\x9F"},
        {"\xE2\x82\xAC \xF0\x9F\x98\x80", "\xE2\x82\xAC \xF0\x9F\x98\x80"},
        {"a\x80z", "a" R "z"},
        {"\xC0\xAF", R R},             /* overlong '/' */
        {"\xE0\x80\xAF", R R R},       /* overlong, three bytes */
        {"\xED\xA0\x80", R R R},       /* a surrogate */
        {"\xF4\x90\x80\x80", R R R R}, /* above U+10FFFF */
        {"\xF5", R},
        {"end\xE2\x82", "end" R R}, /* cut in the middle */
        {"\xE2\x82x", R R "x"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char out[64];
        size_t bytes = utf8_clean(out, sizeof out, cases[i].in, strlen(cases[i].in));
        assert_string_equal(out, cases[i].out);
        assert_int_equal(bytes, strlen(cases[i].out));
    }
}

TEST(escapes_what_json_forbids)
{
    char out[64];
    (void)utf8_json(out, sizeof out, "say \"\\\" \n\x01 \x7f\xff", 13);
    assert_string_equal(out, "say \\\"\\\\\\\" \\u000a\\u0001 \x7f" R);
}

TEST(shows_nothing_that_a_terminal_obeys)
{
    static const struct {
        const char *in;
        const char *out;
    } cases[] = {
        {"plain gr\xC3\xBC\xC3\x9F \xE2\x82\xAC", "plain gr\xC3\xBC\xC3\x9F \xE2\x82\xAC"},
        {"a\033[2J\r\nb\x7f", "a?[2J??b?"},
        {"\xC2\x80\xC2\x9b\xC2\x9f\xC2\xA0", "???\xC2\xA0"},
        {"\xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xAA\xE2\x80\xAE\xE2\x80\xAF", "????\xE2\x80\xAF"},
        {"\xE2\x81\xA6\xE2\x81\xA9\xE2\x80\x8E\xE2\x80\x8F\xD8\x9C\xEF\xBB\xBF", "??????"},
        {"\x9b\xff", "??"},
    };
    char out[64];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t bytes = utf8_shown(out, sizeof out, cases[i].in, strlen(cases[i].in));
        assert_string_equal(out, cases[i].out);
        assert_int_equal(bytes, strlen(cases[i].out));
    }
    assert_int_equal(utf8_shown(out, 4, "ab\xE2\x82\xAC", 5), 2);
    assert_string_equal(out, "ab");
}

TEST(cuts_between_characters)
{
    char out[6];
    assert_int_equal(utf8_character("a", 0, NULL), 0);
    assert_int_equal(utf8_clean(out, sizeof out, "abc\xE2\x82\xAC", 6), 3);
    assert_string_equal(out, "abc");
    assert_int_equal(utf8_clean(out, sizeof out, "ab\xE2\x82\xAC", 5), 5);
    assert_string_equal(out, "ab\xE2\x82\xAC");
    assert_int_equal(utf8_json(out, sizeof out, "abcd\"", 5), 4);
    assert_string_equal(out, "abcd");
    assert_int_equal(utf8_json(out, 1, "abc", 3), 0);
    assert_string_equal(out, "");
}

/* A second, plain decoder: counts the characters of valid text, -1 for invalid text. */
static int count_characters(const unsigned char *text, size_t bytes)
{
    int count = 0;
    for (size_t i = 0; i < bytes; count++) {
        uint32_t code = text[i];
        size_t more = code < 0x80 ? 0 : code >= 0xF0 ? 3 : code >= 0xE0 ? 2 : 1;
        static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        if ((code >= 0x80 && code < 0xC0) || code > 0xF7 || i + more >= bytes) {
            return -1;
        }
        code &= more == 0 ? 0x7FU : (0x3FU >> more);
        for (size_t k = 1; k <= more; k++) {
            if ((text[i + k] & 0xC0) != 0x80) {
                return -1;
            }
            code = code << 6 | (text[i + k] & 0x3FU);
        }
        if (code < least[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
            return -1;
        }
        i += more + 1;
    }
    return count;
}

TEST(any_bytes_become_valid_text)
{
    uint64_t seed = 88172645463325252U;
    for (int round = 0; round < 20000; round++) {
        char in[12];
        char out[64];
        for (size_t i = 0; i < sizeof in; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            /* Mostly bytes of multi-byte characters: plain ones hide mistakes. */
            in[i] = (char)(seed % 4 == 0 ? seed >> 8 : (seed >> 8) | 0x80);
        }
        size_t bytes = utf8_clean(out, 1 + seed % sizeof out, in, sizeof in);
        assert_true(count_characters((const unsigned char *)out, bytes) >= 0);
        if (count_characters((const unsigned char *)in, sizeof in) >= 0 && bytes == sizeof in) {
            assert_memory_equal(out, in, sizeof in);
        }
    }
}
