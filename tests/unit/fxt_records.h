/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the tests of the trace format share: writing a record that is given as a value, and
 * comparing one with another.
 */

#include "fxt_reader.h"
#include "fxt_writer.h"
#include "unit_test.h"

#define RECORD(type, member, ...)                                                                  \
    {                                                                                              \
        .kind = FXT_RECORD_##type, .member = { __VA_ARGS__ }                                       \
    }
#define TEXT(literal) .text = (literal), .text_bytes = sizeof(literal) - 1

/* Of a kind that the writer has a function for. */
static inline void write_record(struct fxt_writer *writer, const struct fxt_record *record)
{
    switch (record->kind) {
    case FXT_RECORD_STRING:
        fxt_write_string(writer, record->string.index, record->string.text,
                         record->string.text_bytes);
        return;
    case FXT_RECORD_NAME:
        fxt_write_name(writer, &record->name);
        return;
    case FXT_RECORD_MODULE:
        fxt_write_module(writer, &record->module);
        return;
    case FXT_RECORD_MMAP:
        fxt_write_mmap(writer, &record->mmap);
        return;
    case FXT_RECORD_SAMPLE:
        fxt_write_sample(writer, &record->sample);
        return;
    case FXT_RECORD_DROP_STATS:
        fxt_write_drop_stats(writer, &record->drop_stats);
        return;
    case FXT_RECORD_DATA:
        fxt_write_data(writer, (enum fxt_known_string)record->data.name.index, record->data.payload,
                       record->data.payload_bytes);
        return;
    case FXT_RECORD_MAGIC:
    case FXT_RECORD_PROVIDER:
    case FXT_RECORD_INITIALIZATION:
    case FXT_RECORD_OTHER:
        fail();
    }
}

static inline void assert_same_bytes(const void *actual, size_t actual_bytes, const void *expected,
                                     size_t expected_bytes)
{
    assert_int_equal(actual_bytes, expected_bytes);
    if (expected_bytes > 0) {
        assert_memory_equal(actual, expected, expected_bytes);
    }
}

static inline void assert_same_string(const struct fxt_string *actual,
                                      const struct fxt_string *expected)
{
    assert_int_equal(actual->index, expected->index);
    assert_same_bytes(actual->text, actual->text_bytes, expected->text, expected->text_bytes);
}

/* Compares kind and values, not where the records stand: most by what the writer makes of both. */
static inline void assert_same_record(const struct fxt_record *actual,
                                      const struct fxt_record *expected)
{
    static uint64_t words[2][4096];
    struct fxt_writer writers[2];
    assert_int_equal(actual->kind, expected->kind);
    switch (expected->kind) {
    case FXT_RECORD_MAGIC:
    case FXT_RECORD_OTHER:
        return;
    case FXT_RECORD_PROVIDER:
    case FXT_RECORD_STRING:
        assert_same_string(&actual->string, &expected->string);
        return;
    case FXT_RECORD_INITIALIZATION:
        assert_int_equal(actual->ticks_per_second, expected->ticks_per_second);
        return;
    case FXT_RECORD_NAME:
        assert_same_string(&actual->name.name, &expected->name.name);
        break;
    case FXT_RECORD_DATA:
        assert_same_string(&actual->data.name, &expected->data.name);
        break;
    case FXT_RECORD_MODULE:
    case FXT_RECORD_MMAP:
    case FXT_RECORD_SAMPLE:
    case FXT_RECORD_DROP_STATS:
        break;
    }
    for (size_t i = 0; i < 2; i++) {
        fxt_writer_init(&writers[i], words[i], sizeof words[i]);
        write_record(&writers[i], i == 0 ? actual : expected);
        assert_true(fxt_writer_ok(&writers[i]));
    }
    assert_same_bytes(words[0], writers[0].used_bytes, words[1], writers[1].used_bytes);
}
