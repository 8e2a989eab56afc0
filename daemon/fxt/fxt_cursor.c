/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the fields of one record. The caller has checked the record's size, from its header,
 * against the input. Each step is checked against the words that are left of the record. Resolving
 * a reference reads the tables and does not change them.
 */
#include "fxt_cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fxt_cursor_refuse(struct fxt_cursor *cursor, const char *format, ...)
{
    char text[120];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)snprintf(cursor->error, sizeof cursor->error, "offset %" PRIu64 ": %s",
                   cursor->offset_bytes, text);
    return -EBADMSG;
}

int fxt_cursor_refuse_short(struct fxt_cursor *cursor)
{
    return fxt_cursor_refuse(cursor, "the record is too short for what it holds");
}

int fxt_cursor_check_reserved(struct fxt_cursor *cursor, uint64_t reserved)
{
    return (cursor->header & reserved) == 0 ? 0
                                            : fxt_cursor_refuse(cursor, "reserved bits are set");
}

int fxt_cursor_check_end(struct fxt_cursor *cursor)
{
    return cursor->words_left == 0
               ? 0
               : fxt_cursor_refuse(cursor, "words left over: %zu", cursor->words_left);
}

int fxt_cursor_take_bytes(struct fxt_cursor *cursor, size_t size_bytes, const uint8_t **ret)
{
    size_t words = (size_bytes + FXT_WORD_BYTES - 1) / FXT_WORD_BYTES;
    if (words > cursor->words_left) {
        return fxt_cursor_refuse_short(cursor);
    }
    for (size_t i = size_bytes; i < words * FXT_WORD_BYTES; i++) {
        if (cursor->at[i] != 0) {
            return fxt_cursor_refuse(cursor, "padding is not zero");
        }
    }
    *ret = cursor->at;
    cursor->at += words * FXT_WORD_BYTES;
    cursor->words_left -= words;
    return 0;
}

int fxt_cursor_take_text(struct fxt_cursor *cursor, size_t size_bytes, const char **ret)
{
    const uint8_t *bytes = NULL;
    int r = fxt_cursor_take_bytes(cursor, size_bytes, &bytes);
    if (r == 0) {
        *ret = (const char *)bytes;
    }
    return r;
}

static int take_inline_string(struct fxt_cursor *cursor, size_t text_bytes, struct fxt_string *ret)
{
    const char *text = NULL;
    int r = fxt_cursor_take_text(cursor, text_bytes, &text);
    if (r == 0) {
        *ret = (struct fxt_string){.text = text, .text_bytes = text_bytes};
    }
    return r;
}

static int find_string(struct fxt_cursor *cursor, uint16_t index, struct fxt_string *ret)
{
    const struct fxt_text *text = fxt_provider_find_string(cursor->tables.current, index);
    if (text == NULL) {
        return fxt_cursor_refuse(cursor, "string %u is not defined", index);
    }
    *ret = (struct fxt_string){.index = index, .text = text->bytes, .text_bytes = text->size_bytes};
    return 0;
}

int fxt_cursor_take_string(struct fxt_cursor *cursor, uint64_t reference, struct fxt_string *ret)
{
    if ((reference & FXT_REFERENCE_INLINE) != 0) {
        return take_inline_string(cursor, reference & FXT_REFERENCE_BYTES_MASK, ret);
    }
    if (reference != 0) {
        return find_string(cursor, (uint16_t)reference, ret);
    }
    *ret = (struct fxt_string){.text = ""};
    return 0;
}

static int find_thread(struct fxt_cursor *cursor, uint8_t index, uint64_t *ret_pid,
                       uint64_t *ret_tid)
{
    const struct fxt_thread *thread = fxt_provider_find_thread(cursor->tables.current, index);
    if (thread == NULL) {
        return fxt_cursor_refuse(cursor, "thread %u is not defined", index);
    }
    *ret_pid = thread->pid;
    *ret_tid = thread->tid;
    return 0;
}

int fxt_cursor_take_thread(struct fxt_cursor *cursor, uint64_t reference, uint64_t *ret_pid,
                           uint64_t *ret_tid)
{
    if (reference != 0) {
        return find_thread(cursor, (uint8_t)reference, ret_pid, ret_tid);
    }
    uint64_t pid = 0;
    uint64_t tid = 0;
    int r = fxt_cursor_take_word(cursor, &pid);
    if (r == 0) {
        r = fxt_cursor_take_word(cursor, &tid);
    }
    if (r < 0) {
        return r;
    }
    *ret_pid = pid;
    *ret_tid = tid;
    return 0;
}

int fxt_cursor_take_time_ns(struct fxt_cursor *cursor, uint64_t *ret)
{
    uint64_t ticks = 0;
    int r = fxt_cursor_take_word(cursor, &ticks);
    if (r < 0) {
        return r;
    }
    unsigned __int128 time_ns =
        (unsigned __int128)ticks * FXT_TICKS_PER_SECOND / cursor->tables.current->ticks_per_second;
    if (time_ns > UINT64_MAX) {
        return fxt_cursor_refuse(cursor, "a time beyond 64 bits of nanoseconds");
    }
    *ret = (uint64_t)time_ns;
    return 0;
}

int fxt_cursor_take_argument(struct fxt_cursor *cursor, struct fxt_cursor_argument *ret)
{
    struct fxt_cursor_argument argument = {0};
    int r = fxt_cursor_take_word(cursor, &argument.header);
    if (r < 0) {
        return r;
    }
    size_t words = fxt_get(argument.header, FXT_ARGUMENT_WORDS);
    if (words == 0 || words - 1 > cursor->words_left) {
        return fxt_cursor_refuse(cursor, "an argument of %zu words; words left: %zu", words,
                                 cursor->words_left + 1);
    }

    /* The name must end within the argument, so the cursor sees nothing else meanwhile. */
    size_t words_after = cursor->words_left - (words - 1);
    cursor->words_left = words - 1;
    r = fxt_cursor_take_string(cursor, fxt_get(argument.header, FXT_ARGUMENT_NAME), &argument.name);
    if (r < 0) {
        return r;
    }
    argument.type = fxt_get(argument.header, FXT_ARGUMENT_TYPE);
    argument.value_words = cursor->words_left;
    if (cursor->words_left > 0) {
        memcpy(&argument.value, cursor->at, sizeof argument.value);
    }
    cursor->at += cursor->words_left * FXT_WORD_BYTES;
    cursor->words_left = words_after;
    *ret = argument;
    return 0;
}
