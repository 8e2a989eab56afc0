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

static inline void assert_same_sample(const struct fxt_sample *actual,
                                      const struct fxt_sample *expected)
{
    assert_int_equal(actual->fields, expected->fields);
    assert_int_equal(actual->continuation, expected->continuation);
    assert_int_equal(actual->continuation_completion, expected->continuation_completion);
    assert_int_equal(actual->pid, expected->pid);
    assert_int_equal(actual->tid, expected->tid);
    assert_int_equal(actual->boot_ts_ns, expected->boot_ts_ns);
    assert_same_bytes(actual->user_stack, actual->user_count * 8, expected->user_stack,
                      expected->user_count * 8);
    assert_int_equal(actual->cpu, expected->cpu);
    assert_same_bytes(actual->kernel_stack, actual->kernel_count * 8, expected->kernel_stack,
                      expected->kernel_count * 8);
    assert_int_equal(actual->quality, expected->quality);
    assert_int_equal(actual->weight, expected->weight);
    assert_int_equal(actual->event, expected->event);
}

static inline void assert_same_module(const struct fxt_module *actual,
                                      const struct fxt_module *expected)
{
    assert_int_equal(actual->time_ns, expected->time_ns);
    assert_int_equal(actual->pid, expected->pid);
    assert_int_equal(actual->module_id, expected->module_id);
    assert_same_bytes(actual->name, actual->name_bytes, expected->name, expected->name_bytes);
    assert_same_bytes(actual->build_id, actual->build_id_bytes, expected->build_id,
                      expected->build_id_bytes);
}

static inline void assert_same_mmap(const struct fxt_mmap *actual, const struct fxt_mmap *expected)
{
    assert_int_equal(actual->time_ns, expected->time_ns);
    assert_int_equal(actual->pid, expected->pid);
    assert_int_equal(actual->module_id, expected->module_id);
    assert_int_equal(actual->flags, expected->flags);
    assert_int_equal(actual->start, expected->start);
    assert_int_equal(actual->size_bytes, expected->size_bytes);
    assert_int_equal(actual->vaddr, expected->vaddr);
}

static inline void assert_same_drop_stats(const struct fxt_drop_stats *actual,
                                          const struct fxt_drop_stats *expected)
{
    assert_int_equal(actual->cpu, expected->cpu);
    assert_int_equal(actual->first_ns, expected->first_ns);
    assert_int_equal(actual->last_ns, expected->last_ns);
    assert_int_equal(actual->record_count, expected->record_count);
    assert_int_equal(actual->size_bytes, expected->size_bytes);
}

/* Compares kind and values, not where the records stand. */
static inline void assert_same_record(const struct fxt_record *actual,
                                      const struct fxt_record *expected)
{
    assert_int_equal(actual->kind, expected->kind);
    switch (expected->kind) {
    case FXT_RECORD_PROVIDER:
    case FXT_RECORD_STRING:
        assert_same_string(&actual->string, &expected->string);
        return;
    case FXT_RECORD_INITIALIZATION:
        assert_int_equal(actual->ticks_per_second, expected->ticks_per_second);
        return;
    case FXT_RECORD_NAME:
        assert_int_equal(actual->name.pid, expected->name.pid);
        assert_int_equal(actual->name.tid, expected->name.tid);
        assert_int_equal(actual->name.since_ns, expected->name.since_ns);
        assert_same_string(&actual->name.name, &expected->name.name);
        return;
    case FXT_RECORD_MODULE:
        assert_same_module(&actual->module, &expected->module);
        return;
    case FXT_RECORD_MMAP:
        assert_same_mmap(&actual->mmap, &expected->mmap);
        return;
    case FXT_RECORD_SAMPLE:
        assert_same_sample(&actual->sample, &expected->sample);
        return;
    case FXT_RECORD_DROP_STATS:
        assert_same_drop_stats(&actual->drop_stats, &expected->drop_stats);
        return;
    case FXT_RECORD_DATA:
        assert_same_string(&actual->data.name, &expected->data.name);
        assert_same_bytes(actual->data.payload, actual->data.payload_bytes, expected->data.payload,
                          expected->data.payload_bytes);
        return;
    case FXT_RECORD_MAGIC:
    case FXT_RECORD_OTHER:
        return;
    }
}
