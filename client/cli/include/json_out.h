/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Prints JSON as it goes, with integers to the last digit (addresses and times do not fit a double)
 * and with commas where they belong. Texts become valid: what is not UTF-8 is U+FFFD, and what a
 * terminal would obey (utf8_is_control()) is escaped, since JSON too is read on terminals.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_out {
    FILE *file;      /* borrowed */
    bool need_comma; /* before the next value of the object or array at hand */
};

/* `name` is the member's, or NULL in an array and at the top. */
void json_out_begin(struct json_out *out, const char *name, char bracket);
void json_out_end(struct json_out *out, char bracket);
void json_out_text(struct json_out *out, const char *name, const char *text, size_t text_bytes);
void json_out_string(struct json_out *out, const char *name, const char *text); /* NULL: null */
void json_out_u64(struct json_out *out, const char *name, uint64_t value);
void json_out_i64(struct json_out *out, const char *name, int64_t value);
void json_out_hex(struct json_out *out, const char *name, uint64_t value);  /* as text, "0x1f" */
void json_out_double(struct json_out *out, const char *name, double value); /* finite */
void json_out_percent(struct json_out *out, const char *name, uint64_t part, uint64_t whole);

/*
 * A value that is JSON already, or NULL for null. The control characters in its texts are escaped;
 * they stand nowhere else but as white space, which becomes spaces.
 */
void json_out_raw(struct json_out *out, const char *name, const char *json);
