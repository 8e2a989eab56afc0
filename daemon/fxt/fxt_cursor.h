/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One record on its way through the reader: hands out its words, texts and references in order,
 * and never beyond the record. The reader's own; no other file includes it.
 *
 * Every function returns 0, or -EBADMSG and puts a sentence into `error`. Outputs are written only
 * on success. References and ticks are those of the current provider, which there must be.
 */

#include "fxt_format.h"
#include "fxt_tables.h"

#include <string.h>

struct fxt_cursor {
    struct fxt_tables tables;
    uint64_t offset_bytes; /* of the record, in the whole stream */
    uint64_t header;       /* its first word */
    const uint8_t *at;     /* what of its body has not been taken; borrowed */
    size_t words_left;
    char error[160];
};

/* Fills `error` with the offset and a printf text; returns -EBADMSG. */
int fxt_cursor_refuse(struct fxt_cursor *cursor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

int fxt_cursor_check_reserved(struct fxt_cursor *cursor, uint64_t reserved);
int fxt_cursor_check_end(struct fxt_cursor *cursor);

/* Says that the record ends within what was to be taken. */
int fxt_cursor_refuse_short(struct fxt_cursor *cursor);

static inline int fxt_cursor_take_word(struct fxt_cursor *cursor, uint64_t *ret)
{
    if (cursor->words_left == 0) {
        return fxt_cursor_refuse_short(cursor);
    }
    memcpy(ret, cursor->at, sizeof *ret);
    cursor->at += FXT_WORD_BYTES;
    cursor->words_left--;
    return 0;
}

/* Takes `size_bytes` and their padding, which must be zero; `*ret` points into the record. */
int fxt_cursor_take_bytes(struct fxt_cursor *cursor, size_t size_bytes, const uint8_t **ret);
int fxt_cursor_take_text(struct fxt_cursor *cursor, size_t size_bytes, const char **ret);

/* Resolves a 16-bit string reference, taking an inline text from the record. */
int fxt_cursor_take_string(struct fxt_cursor *cursor, uint64_t reference, struct fxt_string *ret);
/* Resolves an 8-bit thread reference, taking inline words from the record. */
int fxt_cursor_take_thread(struct fxt_cursor *cursor, uint64_t reference, uint64_t *ret_pid,
                           uint64_t *ret_tid);
/* Takes a time in the provider's ticks. */
int fxt_cursor_take_time_ns(struct fxt_cursor *cursor, uint64_t *ret);

struct fxt_cursor_argument {
    struct fxt_string name;
    uint64_t header;
    uint64_t type;
    size_t value_words; /* after header and name */
    uint64_t value;     /* the first of them, 0 where there is none */
};

/* Takes a whole argument, of whatever type, by its size. */
int fxt_cursor_take_argument(struct fxt_cursor *cursor, struct fxt_cursor_argument *ret);
