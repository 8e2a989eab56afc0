/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checks JSON texts before cJSON parses them, and has common functions for cJSON's tree. The
 * checker accepts exactly RFC 8259 in UTF-8, except texts that cJSON would misread: \u0000 (it
 * would end the string), numbers of more than 63 characters or beyond a double, and nesting deeper
 * than the caller allows. It recurses no deeper than that. json_take_members() refuses repeated
 * members.
 */
#include "json.h"

#include "utf8.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES_MAX 63
#define ENDS             "the text ends in the middle"

struct cursor {
    const char *begin;
    const char *at;
    const char *end;
    unsigned depth_left;
    const char *wrong; /* a static text, set where the first fault is */
};

static bool refuse(struct cursor *cursor, const char *wrong)
{
    cursor->wrong = wrong;
    return false;
}

/* The byte at the cursor; NUL, which nothing accepts, at the end. */
static unsigned char peek(const struct cursor *cursor)
{
    return cursor->at < cursor->end ? (unsigned char)*cursor->at : '\0';
}

static bool is_space(char byte)
{
    return byte != '\0' && strchr(" \t\n\r", byte) != NULL;
}

static void skip_space(struct cursor *cursor)
{
    while (cursor->at < cursor->end && is_space(*cursor->at)) {
        cursor->at++;
    }
}

/* Refuses what stands at the cursor, with words of their own for the end and a trailing comma. */
static bool refuse_here(struct cursor *cursor, const char *wrong)
{
    const char *before = cursor->at;
    while (before > cursor->begin && is_space(before[-1])) {
        before--;
    }
    bool has_comma = before > cursor->begin && before[-1] == ',';
    if (cursor->at == cursor->end) {
        wrong = ENDS;
    } else if (has_comma && peek(cursor) == '}') {
        wrong = "a comma before '}'";
    } else if (has_comma && peek(cursor) == ']') {
        wrong = "a comma before ']'";
    }
    return refuse(cursor, wrong);
}

static bool skip_byte(struct cursor *cursor, char byte)
{
    if (cursor->at < cursor->end && *cursor->at == byte) {
        cursor->at++;
        return true;
    }
    return false;
}

static bool skip_word(struct cursor *cursor, const char *word)
{
    size_t bytes = strlen(word);
    if ((size_t)(cursor->end - cursor->at) < bytes || memcmp(cursor->at, word, bytes) != 0) {
        return refuse_here(cursor, "a value is expected");
    }
    cursor->at += bytes;
    return true;
}

static bool skip_utf8(struct cursor *cursor)
{
    size_t bytes = utf8_character(cursor->at, (size_t)(cursor->end - cursor->at), NULL);
    cursor->at += bytes;
    return bytes > 0 ? true : refuse(cursor, "bytes that are not UTF-8");
}

/* The four digits behind \u. Returns their value, or -1. */
static int skip_hex4(struct cursor *cursor)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    int value = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = peek(cursor) == '\0' ? NULL : strchr(digits, *cursor->at);
        if (digit == NULL) {
            return -1;
        }
        int number = (int)(digit - digits);
        value = value * 16 + (number < 16 ? number : number - 6);
        cursor->at++;
    }
    return value;
}

static bool skip_unicode_escape(struct cursor *cursor)
{
    int unit = skip_hex4(cursor);
    if (unit < 0) {
        return refuse(cursor, "a broken escape");
    }
    if (unit == 0) {
        return refuse(cursor, "a NUL character");
    }
    if (unit >= 0xd800 && unit <= 0xdbff) {
        int low = skip_byte(cursor, '\\') && skip_byte(cursor, 'u') ? skip_hex4(cursor) : -1;
        return low >= 0xdc00 && low <= 0xdfff ? true : refuse(cursor, "half a character");
    }
    return unit >= 0xdc00 && unit <= 0xdfff ? refuse(cursor, "half a character") : true;
}

/* What follows a backslash. */
static bool skip_escape(struct cursor *cursor)
{
    unsigned char byte = peek(cursor);
    if (byte == '\0' || strchr("\"\\/bfnrtu", byte) == NULL) {
        return refuse(cursor, "a broken escape");
    }
    cursor->at++;
    return byte != 'u' || skip_unicode_escape(cursor);
}

static bool skip_character(struct cursor *cursor)
{
    unsigned char byte = peek(cursor);
    if (byte < 0x20) {
        return refuse(cursor, "a control character in a string");
    }
    if (byte >= 0x80) {
        return skip_utf8(cursor);
    }
    cursor->at++;
    return byte != '\\' || skip_escape(cursor);
}

static bool skip_string(struct cursor *cursor)
{
    if (!skip_byte(cursor, '"')) {
        return refuse_here(cursor, "a name in double quotes is expected");
    }
    while (cursor->at < cursor->end && *cursor->at != '"') {
        if (!skip_character(cursor)) {
            return false;
        }
    }
    return skip_byte(cursor, '"') ? true : refuse(cursor, ENDS);
}

static bool skip_digits(struct cursor *cursor)
{
    const char *start = cursor->at;
    while (peek(cursor) >= '0' && peek(cursor) <= '9') {
        cursor->at++;
    }
    return cursor->at > start;
}

static bool skip_number(struct cursor *cursor)
{
    const char *start = cursor->at;
    (void)skip_byte(cursor, '-');
    bool good = skip_byte(cursor, '0') || skip_digits(cursor);
    if (good && skip_byte(cursor, '.')) {
        good = skip_digits(cursor);
    }
    if (good && (skip_byte(cursor, 'e') || skip_byte(cursor, 'E'))) {
        if (!skip_byte(cursor, '+')) {
            (void)skip_byte(cursor, '-');
        }
        good = skip_digits(cursor);
    }
    if (!good) {
        return refuse_here(cursor, "a digit is expected");
    }
    char digits[NUMBER_BYTES_MAX + 1] = "";
    size_t bytes = (size_t)(cursor->at - start);
    if (bytes > NUMBER_BYTES_MAX) {
        return refuse(cursor, "a number that is too long");
    }
    memcpy(digits, start, bytes);
    return isfinite(strtod(digits, NULL)) ? true : refuse(cursor, "a number that is too large");
}

static bool skip_value(struct cursor *cursor);

/* The inside of an object or an array, up to its closing byte. */
static bool skip_elements(struct cursor *cursor, char close, bool named)
{
    cursor->at++;
    skip_space(cursor);
    if (skip_byte(cursor, close)) {
        return true;
    }
    do {
        skip_space(cursor);
        if (named) {
            if (!skip_string(cursor)) {
                return false;
            }
            skip_space(cursor);
            if (!skip_byte(cursor, ':')) {
                return refuse_here(cursor, "':' is expected");
            }
        }
        if (!skip_value(cursor)) {
            return false;
        }
    } while (skip_byte(cursor, ','));
    if (skip_byte(cursor, close)) {
        return true;
    }
    return refuse_here(cursor, named ? "',' or '}' is expected" : "',' or ']' is expected");
}

static bool skip_nested(struct cursor *cursor)
{
    if (cursor->depth_left == 0) {
        return refuse(cursor, "too deep nesting");
    }
    bool named = *cursor->at == '{';
    cursor->depth_left--;
    bool good = skip_elements(cursor, named ? '}' : ']', named);
    cursor->depth_left++;
    return good;
}

/* One value with the white space around it. */
static bool skip_value(struct cursor *cursor)
{
    skip_space(cursor);
    unsigned char byte = peek(cursor);
    bool good = false;
    if (cursor->at == cursor->end) {
        return refuse(cursor, ENDS);
    }
    if (byte == '{' || byte == '[') {
        good = skip_nested(cursor);
    } else if (byte == '"') {
        good = skip_string(cursor);
    } else if (byte == '-' || (byte >= '0' && byte <= '9')) {
        good = skip_number(cursor);
    } else {
        good = skip_word(cursor, byte == 't' ? "true" : byte == 'f' ? "false" : "null");
    }
    if (good) {
        skip_space(cursor);
    }
    return good;
}

/* Both count from 1; columns in characters. */
static void find_place(const struct cursor *cursor, size_t *ret_line, size_t *ret_column)
{
    *ret_line = 1;
    *ret_column = 1;
    for (const char *at = cursor->begin; at < cursor->at; at++) {
        bool is_newline = *at == '\n';
        bool begins_character = ((unsigned char)*at & 0xc0) != 0x80;
        *ret_line += is_newline;
        *ret_column = is_newline ? 1 : *ret_column + begins_character;
    }
}

int json_parse(const char *text, size_t text_bytes, unsigned depth_max, cJSON **ret,
               struct fault *reterr)
{
    struct cursor cursor = {
        .begin = text,
        .at = text,
        .end = text + text_bytes,
        .depth_left = depth_max,
    };
    bool good = skip_value(&cursor);
    if (good && cursor.at < cursor.end) {
        good = refuse(&cursor, "more text after the end");
    }
    if (!good) {
        size_t line = 0;
        size_t column = 0;
        find_place(&cursor, &line, &column);
        return fault_set(reterr, EINVAL,
                         "line %zu, column %zu: %s; one JSON text in UTF-8 is allowed", line,
                         column, cursor.wrong);
    }
    cJSON *tree = cJSON_ParseWithLength(text, text_bytes);
    if (tree == NULL) {
        return fault_set(reterr, ENOMEM, "out of memory");
    }
    *ret = tree;
    return 0;
}

void json_freep(cJSON **tree)
{
    cJSON_Delete(*tree);
    *tree = NULL;
}

static size_t find_name(const char *const *names, size_t count, const char *name)
{
    size_t index = 0;
    while (index < count && strcmp(names[index], name) != 0) {
        index++;
    }
    return index;
}

int json_take_members(const cJSON *object, const char *const *names, size_t count,
                      const cJSON **ret_items, const char **ret_offender)
{
    for (size_t i = 0; i < count; i++) {
        ret_items[i] = NULL;
    }
    const cJSON *member = NULL;
    cJSON_ArrayForEach(member, object)
    {
        size_t index = find_name(names, count, member->string);
        if (index == count || ret_items[index] != NULL) {
            *ret_offender = member->string;
            return index == count ? -ENOENT : -EEXIST;
        }
        ret_items[index] = member;
    }
    return 0;
}

bool json_is_integer(const cJSON *item)
{
    return cJSON_IsNumber(item) && trunc(item->valuedouble) == item->valuedouble;
}

bool json_read_integer(const cJSON *item, int64_t minimum, int64_t maximum, int64_t *ret)
{
    if (!json_is_integer(item) || item->valuedouble < (double)minimum ||
        item->valuedouble > (double)maximum) {
        return false;
    }
    *ret = (int64_t)item->valuedouble;
    return true;
}
