/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Encodes records. Each function computes the record's size in words and checks each limit, then
 * reserves that size in one step and fills it, so memory never holds half a record. After the first
 * failure no more records are written: those that were written are whole, and a flag says that some
 * are missing. The writer has no tables; the caller knows which indices are in use.
 */
#include "fxt_writer.h"

#include <string.h>

void fxt_writer_init(struct fxt_writer *writer, void *bytes, size_t capacity_bytes)
{
    *writer = (struct fxt_writer){.bytes = bytes, .capacity_bytes = capacity_bytes};
}

bool fxt_writer_ok(const struct fxt_writer *writer)
{
    return !writer->failed;
}

static size_t words_for(size_t size_bytes)
{
    return (size_bytes + FXT_WORD_BYTES - 1) / FXT_WORD_BYTES;
}

static uint8_t *put_word(uint8_t *at, uint64_t word)
{
    memcpy(at, &word, sizeof word);
    return at + sizeof word;
}

/* Pads with zeros to a whole word. */
static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t size_bytes)
{
    size_t padded_bytes = words_for(size_bytes) * FXT_WORD_BYTES;
    if (size_bytes > 0) {
        memcpy(at, bytes, size_bytes);
        memset(at + size_bytes, 0, padded_bytes - size_bytes);
    }
    return at + padded_bytes;
}

/* Takes `words` of the memory, puts the header there and returns where its body goes, or NULL. */
static uint8_t *begin_record(struct fxt_writer *writer, enum fxt_type type, size_t words,
                             uint64_t header_bits)
{
    if (writer->failed || words > FXT_RECORD_WORDS_MAX ||
        words > (writer->capacity_bytes - writer->used_bytes) / FXT_WORD_BYTES) {
        writer->failed = true;
        return NULL;
    }
    uint8_t *at = writer->bytes + writer->used_bytes;
    writer->used_bytes += words * FXT_WORD_BYTES;
    return put_word(at, fxt_put(FXT_HEADER_TYPE, type) | fxt_put(FXT_HEADER_WORDS, words) |
                            header_bits);
}

static bool string_is_valid(const struct fxt_string *string)
{
    return string->index == 0 ? string->text_bytes <= FXT_STRING_BYTES_MAX
                              : string->index <= FXT_STRING_INDEX_MAX;
}

static uint64_t string_reference(const struct fxt_string *string)
{
    if (string->index != 0 || string->text_bytes == 0) {
        return string->index;
    }
    return FXT_REFERENCE_INLINE | string->text_bytes;
}

static size_t inline_bytes(const struct fxt_string *string)
{
    return string->index == 0 ? string->text_bytes : 0;
}

static void put_string_record(struct fxt_writer *writer, uint16_t index, const char *text,
                              size_t text_bytes)
{
    uint8_t *at = begin_record(writer, FXT_TYPE_STRING, 1 + words_for(text_bytes),
                               fxt_put(FXT_STRING_RECORD_INDEX, index) |
                                   fxt_put(FXT_STRING_RECORD_BYTES, text_bytes));
    if (at != NULL) {
        (void)put_bytes(at, text, text_bytes);
    }
}

void fxt_write_string(struct fxt_writer *writer, uint16_t index, const char *text,
                      size_t text_bytes)
{
    if (index < FXT_STRING_FIRST_FREE || index > FXT_STRING_INDEX_MAX ||
        text_bytes > FXT_STRING_BYTES_MAX) {
        writer->failed = true;
        return;
    }
    put_string_record(writer, index, text, text_bytes);
}

static void put_magic(struct fxt_writer *writer)
{
    /* The magic number is a whole record, header included. */
    (void)begin_record(writer, FXT_TYPE_METADATA, 1, FXT_MAGIC_WORD);
}

static void put_provider(struct fxt_writer *writer, uint32_t provider_id, const char *name)
{
    size_t name_bytes = strlen(name);
    if (provider_id == 0 || name_bytes > FXT_PROVIDER_NAME_BYTES_MAX) {
        writer->failed = true;
        return;
    }
    uint8_t *at = begin_record(writer, FXT_TYPE_METADATA, 1 + words_for(name_bytes),
                               fxt_put(FXT_METADATA_KIND, FXT_METADATA_PROVIDER_INFO) |
                                   fxt_put(FXT_PROVIDER_ID, provider_id) |
                                   fxt_put(FXT_PROVIDER_NAME_BYTES, name_bytes));
    if (at != NULL) {
        (void)put_bytes(at, name, name_bytes);
    }
    (void)begin_record(writer, FXT_TYPE_METADATA, 1,
                       fxt_put(FXT_METADATA_KIND, FXT_METADATA_PROVIDER_SECTION) |
                           fxt_put(FXT_PROVIDER_ID, provider_id));
}

void fxt_write_segment_begin(struct fxt_writer *writer, uint32_t provider_id,
                             const char *provider_name)
{
    size_t used_bytes = writer->used_bytes;
    put_magic(writer);
    put_provider(writer, provider_id, provider_name);
    uint8_t *at = begin_record(writer, FXT_TYPE_INITIALIZATION, 2, 0);
    if (at != NULL) {
        (void)put_word(at, FXT_TICKS_PER_SECOND);
    }
    for (enum fxt_known_string string = FXT_STRING_PROCESS; string < FXT_STRING_FIRST_FREE;
         string++) {
        const char *text = fxt_known_string_text(string);
        put_string_record(writer, (uint16_t)string, text, strlen(text));
    }
    if (writer->failed) {
        writer->used_bytes = used_bytes;
    }
}

static uint8_t *put_word_argument(uint8_t *at, enum fxt_argument type, enum fxt_known_string name,
                                  uint64_t value)
{
    at = put_word(at, fxt_put(FXT_ARGUMENT_TYPE, type) | fxt_put(FXT_ARGUMENT_WORDS, 2) |
                          fxt_put(FXT_ARGUMENT_NAME, name));
    return put_word(at, value);
}

static uint8_t *put_uint32_argument(uint8_t *at, enum fxt_known_string name, uint32_t value)
{
    return put_word(at, fxt_put(FXT_ARGUMENT_TYPE, FXT_ARGUMENT_UINT32) |
                            fxt_put(FXT_ARGUMENT_WORDS, 1) | fxt_put(FXT_ARGUMENT_NAME, name) |
                            fxt_put(FXT_ARGUMENT_UINT32_VALUE, value));
}

void fxt_write_name(struct fxt_writer *writer, const struct fxt_name *name)
{
    bool is_thread = name->tid != 0;
    if (!string_is_valid(&name->name)) {
        writer->failed = true;
        return;
    }
    size_t text_bytes = inline_bytes(&name->name);
    uint8_t *at = begin_record(
        writer, FXT_TYPE_KERNEL_OBJECT, 2 + words_for(text_bytes) + (is_thread ? 4 : 2),
        fxt_put(FXT_OBJECT_KIND, is_thread ? FXT_OBJECT_THREAD : FXT_OBJECT_PROCESS) |
            fxt_put(FXT_OBJECT_NAME, string_reference(&name->name)) |
            fxt_put(FXT_OBJECT_ARGUMENT_COUNT, is_thread ? 2 : 1));
    if (at == NULL) {
        return;
    }
    at = put_word(at, is_thread ? name->tid : name->pid);
    at = put_bytes(at, name->name.text, text_bytes);
    if (is_thread) {
        at = put_word_argument(at, FXT_ARGUMENT_KOID, FXT_STRING_PROCESS, name->pid);
    }
    (void)put_word_argument(at, FXT_ARGUMENT_UINT64, FXT_STRING_SINCE, name->since_ns);
}

/* What both type-10 records begin with: time, process, and a thread that is always 0. */
static uint8_t *begin_profiler_record(struct fxt_writer *writer, size_t words, uint64_t header_bits,
                                      uint64_t time_ns, uint64_t pid)
{
    uint8_t *at = begin_record(writer, FXT_TYPE_PROFILER, words, header_bits);
    if (at == NULL) {
        return NULL;
    }
    at = put_word(at, time_ns);
    at = put_word(at, pid);
    return put_word(at, 0);
}

void fxt_write_module(struct fxt_writer *writer, const struct fxt_module *module)
{
    if (module->name_bytes > FXT_MODULE_TEXT_BYTES_MAX ||
        module->build_id_bytes > FXT_MODULE_TEXT_BYTES_MAX) {
        writer->failed = true;
        return;
    }
    uint8_t *at = begin_profiler_record(
        writer, 4 + words_for(module->name_bytes) + words_for(module->build_id_bytes),
        fxt_put(FXT_PROFILER_KIND, FXT_PROFILER_MODULE) |
            fxt_put(FXT_PROFILER_MODULE_ID, module->module_id) |
            fxt_put(FXT_MODULE_NAME_BYTES, module->name_bytes) |
            fxt_put(FXT_MODULE_BUILD_ID_BYTES, module->build_id_bytes),
        module->time_ns, module->pid);
    if (at != NULL) {
        at = put_bytes(at, module->name, module->name_bytes);
        (void)put_bytes(at, module->build_id, module->build_id_bytes);
    }
}

void fxt_write_mmap(struct fxt_writer *writer, const struct fxt_mmap *mmap)
{
    if (mmap->flags > FXT_MMAP_FLAGS_MAX) {
        writer->failed = true;
        return;
    }
    uint8_t *at = begin_profiler_record(writer, 7,
                                        fxt_put(FXT_PROFILER_KIND, FXT_PROFILER_MMAP) |
                                            fxt_put(FXT_PROFILER_MODULE_ID, mmap->module_id) |
                                            fxt_put(FXT_MMAP_FLAGS, mmap->flags),
                                        mmap->time_ns, mmap->pid);
    if (at != NULL) {
        at = put_word(at, mmap->start);
        at = put_word(at, mmap->size_bytes);
        (void)put_word(at, mmap->vaddr);
    }
}

static uint8_t *put_field(uint8_t *at, uint64_t fields, uint64_t field, uint64_t value)
{
    return (fields & field) != 0 ? put_word(at, value) : at;
}

static uint8_t *put_stack(uint8_t *at, uint64_t fields, uint64_t field, const uint64_t *stack,
                          size_t count)
{
    if ((fields & field) == 0) {
        return at;
    }
    at = put_word(at, count);
    return put_bytes(at, stack, count * FXT_WORD_BYTES);
}

void fxt_write_sample(struct fxt_writer *writer, const struct fxt_sample *sample)
{
    uint64_t fields = sample->fields;
    size_t user_count = (fields & FXT_SAMPLE_USER_STACK) != 0 ? sample->user_count : 0;
    size_t kernel_count = (fields & FXT_SAMPLE_KERNEL_STACK) != 0 ? sample->kernel_count : 0;
    if ((fields & ~FXT_SAMPLE_FIELDS_KNOWN) != 0 || user_count > FXT_RECORD_WORDS_MAX ||
        kernel_count > FXT_RECORD_WORDS_MAX) {
        writer->failed = true;
        return;
    }
    /* A word for the fields and one for each of them: a value, or a stack's count. */
    size_t payload_words = 1 + (size_t)__builtin_popcountll(fields) + user_count + kernel_count;
    uint8_t *at = begin_record(writer, FXT_TYPE_BLOB, 1 + payload_words,
                               fxt_put(FXT_BLOB_PAYLOAD_BYTES, payload_words * FXT_WORD_BYTES) |
                                   fxt_put(FXT_BLOB_TYPE, FXT_BLOB_SAMPLE));
    if (at == NULL) {
        return;
    }
    at = put_word(at, fields);
    at = put_field(at, fields, FXT_SAMPLE_CONTINUATION, sample->continuation);
    at = put_field(at, fields, FXT_SAMPLE_CONTINUATION_COMPLETION, sample->continuation_completion);
    at = put_field(at, fields, FXT_SAMPLE_PID, sample->pid);
    at = put_field(at, fields, FXT_SAMPLE_TID, sample->tid);
    at = put_field(at, fields, FXT_SAMPLE_BOOT_TS, sample->boot_ts_ns);
    at = put_stack(at, fields, FXT_SAMPLE_USER_STACK, sample->user_stack, user_count);
    at = put_field(at, fields, FXT_SAMPLE_CPU, sample->cpu);
    at = put_stack(at, fields, FXT_SAMPLE_KERNEL_STACK, sample->kernel_stack, kernel_count);
    at = put_field(at, fields, FXT_SAMPLE_QUALITY, sample->quality);
    at = put_field(at, fields, FXT_SAMPLE_WEIGHT, sample->weight);
    (void)put_field(at, fields, FXT_SAMPLE_EVENT, sample->event);
}

void fxt_write_drop_stats(struct fxt_writer *writer, const struct fxt_drop_stats *stats)
{
    uint8_t *at = begin_record(writer, FXT_TYPE_EVENT, 7,
                               fxt_put(FXT_EVENT_KIND, FXT_EVENT_KIND_DURATION_COMPLETE) |
                                   fxt_put(FXT_EVENT_ARGUMENT_COUNT, 2) |
                                   fxt_put(FXT_EVENT_CATEGORY, FXT_STRING_META) |
                                   fxt_put(FXT_EVENT_NAME, FXT_STRING_DROP_STATS));
    if (at == NULL) {
        return;
    }
    at = put_word(at, stats->first_ns);
    at = put_word(at, 0); /* the process; the thread is the CPU */
    at = put_word(at, stats->cpu);
    at = put_uint32_argument(at, FXT_STRING_NUM_RECORDS, stats->record_count);
    at = put_uint32_argument(at, FXT_STRING_NUM_BYTES, stats->size_bytes);
    (void)put_word(at, stats->last_ns);
}

void fxt_write_data(struct fxt_writer *writer, enum fxt_known_string name, const void *payload,
                    size_t payload_bytes)
{
    const struct fxt_string string = {.index = (uint16_t)name};
    if (name < FXT_STRING_PROCESS || name >= FXT_STRING_FIRST_FREE) {
        writer->failed = true;
        return;
    }
    fxt_write_named_data(writer, &string, payload, payload_bytes);
}

void fxt_write_named_data(struct fxt_writer *writer, const struct fxt_string *name,
                          const void *payload, size_t payload_bytes)
{
    if (!string_is_valid(name) || payload_bytes > FXT_DATA_BYTES_MAX) {
        writer->failed = true;
        return;
    }
    const size_t text_bytes = inline_bytes(name);
    uint8_t *at = begin_record(
        writer, FXT_TYPE_BLOB, 1 + words_for(text_bytes) + words_for(payload_bytes),
        fxt_put(FXT_BLOB_NAME, string_reference(name)) |
            fxt_put(FXT_BLOB_PAYLOAD_BYTES, payload_bytes) | fxt_put(FXT_BLOB_TYPE, FXT_BLOB_DATA));
    if (at != NULL) {
        at = put_bytes(at, name->text, text_bytes);
        (void)put_bytes(at, payload, payload_bytes);
    }
}
