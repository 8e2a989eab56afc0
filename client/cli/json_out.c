/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints JSON without a tree and without allocations. The caller keeps the nesting right, and
 * checks the stream for errors. What each value of a large output passes through does without
 * printf() and the stream's lock: one thread prints.
 */
#include "json_out.h"

#include "digits.h"
#include "percent.h"
#include "utf8.h"

#include <inttypes.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

/* How many bytes from the front are ASCII that stands for itself, in JSON or in a text of it. */
static size_t count_plain(const char *bytes, size_t size_bytes, bool in_text)
{
    size_t count = 0;
    while (count < size_bytes && bytes[count] >= 0x20 && bytes[count] < 0x7f &&
           !(in_text && (bytes[count] == '"' || bytes[count] == '\\'))) {
        count++;
    }
    return count;
}

static size_t print_character(FILE *file, const char *text, size_t text_bytes)
{
    uint32_t character = 0;
    size_t length = utf8_character(text, text_bytes, &character);
    if (length == 0) {
        (void)fputs(REPLACEMENT, file);
        length = 1;
    } else if (character == '"' || character == '\\') {
        (void)fprintf(file, "\\%c", (char)character);
    } else if (utf8_is_control(character)) {
        (void)fprintf(file, "\\u%04" PRIx32, character);
    } else {
        (void)fwrite(text, 1, length, file);
    }
    return length;
}

static void print_escaped(FILE *file, const char *text, size_t text_bytes)
{
    (void)putc_unlocked('"', file);
    for (size_t length = 0; text_bytes > 0; text += length, text_bytes -= length) {
        length = count_plain(text, text_bytes, true);
        if (length > 0) {
            (void)fwrite_unlocked(text, 1, length, file);
        } else {
            length = print_character(file, text, text_bytes);
        }
    }
    (void)putc_unlocked('"', file);
}

static void print_json(FILE *file, const char *json)
{
    size_t json_bytes = strlen(json);
    while (json_bytes > 0) {
        uint32_t character = ' ';
        size_t length = count_plain(json, json_bytes, false);
        if (length == 0) {
            length = utf8_character(json, json_bytes, &character);
        }
        if (length == 0) {
            (void)fputs(REPLACEMENT, file);
            length = 1;
        } else if (character < 0x20) {
            (void)fputc(' ', file);
        } else if (utf8_is_control(character)) {
            (void)fprintf(file, "\\u%04" PRIx32, character);
        } else {
            (void)fwrite_unlocked(json, 1, length, file);
        }
        json += length;
        json_bytes -= length;
    }
}

static void begin_value(struct json_out *out, const char *name)
{
    if (out->need_comma) {
        (void)putc_unlocked(',', out->file);
    }
    if (name != NULL) {
        print_escaped(out->file, name, strlen(name));
        (void)putc_unlocked(':', out->file);
    }
    out->need_comma = true;
}

void json_out_begin(struct json_out *out, const char *name, char bracket)
{
    begin_value(out, name);
    (void)putc_unlocked(bracket, out->file);
    out->need_comma = false;
}

void json_out_end(struct json_out *out, char bracket)
{
    (void)putc_unlocked(bracket, out->file);
    out->need_comma = true;
}

void json_out_text(struct json_out *out, const char *name, const char *text, size_t text_bytes)
{
    begin_value(out, name);
    print_escaped(out->file, text, text_bytes);
}

void json_out_raw(struct json_out *out, const char *name, const char *json)
{
    begin_value(out, name);
    print_json(out->file, json == NULL ? "null" : json);
}

void json_out_string(struct json_out *out, const char *name, const char *text)
{
    if (text == NULL) {
        json_out_raw(out, name, NULL);
    } else {
        json_out_text(out, name, text, strlen(text));
    }
}

void json_out_u64(struct json_out *out, const char *name, uint64_t value)
{
    char digits[DIGITS_MAX];
    begin_value(out, name);
    (void)fwrite_unlocked(digits, 1, digits_decimal(value, digits), out->file);
}

void json_out_i64(struct json_out *out, const char *name, int64_t value)
{
    if (value >= 0) {
        json_out_u64(out, name, (uint64_t)value);
    } else {
        begin_value(out, name);
        (void)fprintf(out->file, "%" PRId64, value);
    }
}

void json_out_hex(struct json_out *out, const char *name, uint64_t value)
{
    begin_value(out, name);
    (void)fprintf(out->file, "\"0x%" PRIx64 "\"", value);
}

void json_out_double(struct json_out *out, const char *name, double value)
{
    begin_value(out, name);
    (void)fprintf(out->file, "%.15g", value);
}

void json_out_percent(struct json_out *out, const char *name, uint64_t part, uint64_t whole)
{
    begin_value(out, name);
    (void)fprintf(out->file, "%.2f", percent_of(part, whole));
}
