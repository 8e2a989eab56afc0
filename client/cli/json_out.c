/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints JSON without a tree and without allocations. The caller keeps the nesting right, and
 * checks the stream for errors.
 */
#include "json_out.h"

#include "percent.h"
#include "utf8.h"

#include <inttypes.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

static void print_escaped(FILE *file, const char *text, size_t text_bytes)
{
    (void)fputc('"', file);
    while (text_bytes > 0) {
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
        text += length;
        text_bytes -= length;
    }
    (void)fputc('"', file);
}

static void print_json(FILE *file, const char *json)
{
    size_t json_bytes = strlen(json);
    while (json_bytes > 0) {
        uint32_t character = 0;
        size_t length = utf8_character(json, json_bytes, &character);
        if (length == 0) {
            (void)fputs(REPLACEMENT, file);
            length = 1;
        } else if (character < 0x20) {
            (void)fputc(' ', file);
        } else if (utf8_is_control(character)) {
            (void)fprintf(file, "\\u%04" PRIx32, character);
        } else {
            (void)fwrite(json, 1, length, file);
        }
        json += length;
        json_bytes -= length;
    }
}

static void begin_value(struct json_out *out, const char *name)
{
    if (out->need_comma) {
        (void)fputc(',', out->file);
    }
    if (name != NULL) {
        print_escaped(out->file, name, strlen(name));
        (void)fputc(':', out->file);
    }
    out->need_comma = true;
}

void json_out_begin(struct json_out *out, const char *name, char bracket)
{
    begin_value(out, name);
    (void)fputc(bracket, out->file);
    out->need_comma = false;
}

void json_out_end(struct json_out *out, char bracket)
{
    (void)fputc(bracket, out->file);
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
    begin_value(out, name);
    (void)fprintf(out->file, "%" PRIu64, value);
}

void json_out_i64(struct json_out *out, const char *name, int64_t value)
{
    begin_value(out, name);
    (void)fprintf(out->file, "%" PRId64, value);
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
