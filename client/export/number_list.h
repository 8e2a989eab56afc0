/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Arrays of JSON that have millions of numbers: each is put into a buffer, and the stream is called
 * for many of them at once. json_out() prints what stands before and behind such an array.
 */

#include "byte_out.h"
#include "json_out.h"

#include <stdbool.h>
#include <stdint.h>

#define NUMBER_LIST_NS_PER_MS UINT64_C(1000000)

/* All zero at first. */
struct number_list {
    struct byte_out out;
    bool need_comma;
};

static inline void number_list_begin(struct number_list *list, struct json_out *out,
                                     const char *name)
{
    json_out_begin(out, name, '[');
    list->out.file = out->file;
    list->need_comma = false;
}

static inline void number_list_end(struct number_list *list, struct json_out *out)
{
    byte_out_flush(&list->out);
    json_out_end(out, ']');
}

static inline void number_list_comma(struct number_list *list)
{
    if (list->need_comma) {
        byte_out_put(&list->out, ",", 1);
    }
    list->need_comma = true;
}

static inline void number_list_add(struct number_list *list, uint64_t value)
{
    number_list_comma(list);
    byte_out_decimal(&list->out, value);
}

/* A time as milliseconds, to the last nanosecond. */
static inline void number_list_add_ms(struct number_list *list, uint64_t time_ns)
{
    number_list_comma(list);
    byte_out_decimal(&list->out, time_ns / NUMBER_LIST_NS_PER_MS);
    byte_out_put(&list->out, ".", 1);
    char *into = byte_out_room(&list->out, DIGITS_MAX);
    list->out.used_bytes += digits_decimal_padded(time_ns % NUMBER_LIST_NS_PER_MS, 6, into);
}

/* A list in the list. */
static inline void number_list_open(struct number_list *list)
{
    number_list_comma(list);
    byte_out_put(&list->out, "[", 1);
    list->need_comma = false;
}

static inline void number_list_close(struct number_list *list)
{
    byte_out_put(&list->out, "]", 1);
    list->need_comma = true;
}
