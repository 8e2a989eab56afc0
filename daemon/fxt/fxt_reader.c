/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decodes one record at a time. The tables change only after all of a record was checked, so a
 * record that was refused can be offered again and is refused again. A magic number begins a
 * segment, which has tables of its own.
 *
 * Record types of this project are parsed strictly: set reserved bits, wrong padding and words left
 * over are errors. Other types are skipped by their size. The caller checks that texts are UTF-8
 * and that addresses make sense.
 */
#include "fxt_reader.h"

#include "fxt_cursor.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct fxt_reader {
    struct fxt_cursor cursor;
    bool started; /* the magic number has been read */
};

struct fxt_reader *fxt_reader_new(void)
{
    return calloc(1, sizeof(struct fxt_reader));
}

struct fxt_reader *fxt_reader_free(struct fxt_reader *reader)
{
    if (reader != NULL) {
        fxt_tables_reset(&reader->cursor.tables);
        free(reader);
    }
    return NULL;
}

const char *fxt_reader_error(const struct fxt_reader *reader)
{
    return reader->cursor.error;
}

static bool string_is(const struct fxt_string *string, enum fxt_known_string known)
{
    const char *text = fxt_known_string_text(known);
    return string->text_bytes == strlen(text) &&
           memcmp(string->text, text, string->text_bytes) == 0;
}

static int read_provider_info(struct fxt_cursor *cursor, struct fxt_record *ret)
{
    uint32_t id = (uint32_t)fxt_get(cursor->header, FXT_PROVIDER_ID);
    ret->kind = FXT_RECORD_PROVIDER;
    ret->string.text_bytes = fxt_get(cursor->header, FXT_PROVIDER_NAME_BYTES);
    int r = fxt_cursor_check_reserved(cursor, FXT_PROVIDER_RESERVED);
    if (r == 0) {
        r = fxt_cursor_take_text(cursor, ret->string.text_bytes, &ret->string.text);
    }
    if (r == 0) {
        r = fxt_cursor_check_end(cursor);
    }
    if (r == 0) {
        r = fxt_tables_define_provider(&cursor->tables, id);
    }
    if (r == -EEXIST) {
        return fxt_cursor_refuse(cursor, "provider %" PRIu32 " is defined already", id);
    }
    if (r == -ENOSPC) {
        return fxt_cursor_refuse(cursor, "more than %zu providers", FXT_PROVIDERS_MAX);
    }
    return r;
}

static int read_provider_section(struct fxt_cursor *cursor, struct fxt_record *ret)
{
    uint32_t id = (uint32_t)fxt_get(cursor->header, FXT_PROVIDER_ID);
    ret->kind = FXT_RECORD_PROVIDER;
    ret->string = (struct fxt_string){.text = ""};
    int r = fxt_cursor_check_reserved(cursor, FXT_SECTION_RESERVED);
    if (r == 0) {
        r = fxt_cursor_check_end(cursor);
    }
    if (r == 0) {
        r = fxt_tables_select_provider(&cursor->tables, id);
    }
    if (r == -ENOENT) {
        return fxt_cursor_refuse(cursor, "provider %" PRIu32 " is not defined", id);
    }
    return r;
}

static int read_trace_info(struct fxt_cursor *cursor, struct fxt_record *ret)
{
    if (fxt_get(cursor->header, FXT_TRACE_INFO_KIND) != FXT_TRACE_INFO_KIND_MAGIC) {
        return 0;
    }
    if (cursor->header != FXT_MAGIC_WORD) {
        return fxt_cursor_refuse(cursor, "a wrong magic number");
    }
    fxt_tables_reset(&cursor->tables);
    ret->kind = FXT_RECORD_MAGIC;
    return 0;
}

static int read_metadata(struct fxt_cursor *cursor, struct fxt_record *ret)
{
    uint64_t kind = fxt_get(cursor->header, FXT_METADATA_KIND);
    if (kind == FXT_METADATA_PROVIDER_INFO) {
        return read_provider_info(cursor, ret);
    }
    if (kind == FXT_METADATA_PROVIDER_SECTION) {
        return read_provider_section(cursor, ret);
    }
    return kind == FXT_METADATA_TRACE_INFO ? read_trace_info(cursor, ret) : 0;
}

static int read_initialization(struct fxt_cursor *cursor, struct fxt_record *ret)
{
    ret->kind = FXT_RECORD_INITIALIZATION;
    int r = fxt_cursor_check_reserved(cursor, FXT_INITIALIZATION_RESERVED);
    if (r == 0) {
        r = fxt_cursor_take_word(cursor, &ret->ticks_per_second);
    }
    if (r == 0) {
        r = fxt_cursor_check_end(cursor);
    }
    if (r < 0) {
        return r;
    }
    if (ret->ticks_per_second == 0) {
        return fxt_cursor_refuse(cursor, "a second has 0 ticks");
    }
    cursor->tables.current->ticks_per_second = ret->ticks_per_second;
    return 0;
}

static int read_string(struct fxt_cursor *cursor, struct fxt_record *ret)
{
    struct fxt_string *string = &ret->string;
    ret->kind = FXT_RECORD_STRING;
    string->index = (uint16_t)fxt_get(cursor->header, FXT_STRING_RECORD_INDEX);
    string->text_bytes = fxt_get(cursor->header, FXT_STRING_RECORD_BYTES);
    if (string->index == 0) {
        return fxt_cursor_refuse(cursor, "string 0 cannot be defined");
    }
    int r = fxt_cursor_check_reserved(cursor, FXT_STRING_RECORD_RESERVED);
    if (r == 0) {
        r = fxt_cursor_take_text(cursor, string->text_bytes, &string->text);
    }
    if (r == 0) {
        r = fxt_cursor_check_end(cursor);
    }
    if (r == 0) {
        r = fxt_provider_define_string(cursor->tables.current, string->index, string->text,
                                       string->text_bytes);
    }
    return r == -EEXIST ? fxt_cursor_refuse(cursor, "string %u is defined already", string->index)
                        : r;
}

/* Not a record of ours, but others' records refer to what it defines. */
static int read_thread(struct fxt_cursor *cursor)
{
    uint8_t index = (uint8_t)fxt_get(cursor->header, FXT_THREAD_INDEX);
    uint64_t pid = 0;
    uint64_t tid = 0;
    if (index == 0) {
        return fxt_cursor_refuse(cursor, "thread 0 cannot be defined");
    }
    int r = fxt_cursor_check_reserved(cursor, FXT_THREAD_RESERVED);
    if (r == 0) {
        r = fxt_cursor_take_thread(cursor, 0, &pid, &tid);
    }
    if (r == 0) {
        r = fxt_cursor_check_end(cursor);
    }
    if (r == 0) {
        r = fxt_provider_define_thread(cursor->tables.current, index, pid, tid);
    }
    return r == -EEXIST ? fxt_cursor_refuse(cursor, "thread %u is defined already", index) : r;
}

/* Takes the next argument, which must be a uint32 of that name. */
static int take_count(struct fxt_cursor *cursor, enum fxt_known_string name, uint32_t *ret)
{
    struct fxt_cursor_argument argument;
    int r = fxt_cursor_take_argument(cursor, &argument);
    if (r < 0) {
        return r;
    }
    if (!string_is(&argument.name, name) || argument.type != FXT_ARGUMENT_UINT32 ||
        argument.value_words != 0) {
        return fxt_cursor_refuse(cursor, "drop_stats without a uint32 '%s'",
                                 fxt_known_string_text(name));
    }
    *ret = (uint32_t)fxt_get(argument.header, FXT_ARGUMENT_UINT32_VALUE);
    return 0;
}

/* What follows category and name. */
static int read_drop_stats(struct fxt_cursor *cursor, struct fxt_drop_stats *ret)
{
    if (fxt_get(cursor->header, FXT_EVENT_KIND) != FXT_EVENT_KIND_DURATION_COMPLETE ||
        fxt_get(cursor->header, FXT_EVENT_ARGUMENT_COUNT) != 2) {
        return fxt_cursor_refuse(cursor,
                                 "drop_stats is not a complete duration with two arguments");
    }
    int r = take_count(cursor, FXT_STRING_NUM_RECORDS, &ret->record_count);
    if (r == 0) {
        r = take_count(cursor, FXT_STRING_NUM_BYTES, &ret->size_bytes);
    }
    if (r == 0) {
        r = fxt_cursor_take_time_ns(cursor, &ret->last_ns);
    }
    return r == 0 ? fxt_cursor_check_end(cursor) : r;
}

static int read_event(struct fxt_cursor *cursor, struct fxt_record *ret)
{
    struct fxt_drop_stats stats = {0};
    struct fxt_string category = {.text = ""};
    struct fxt_string name = {.text = ""};
    uint64_t pid = 0;
    int r = fxt_cursor_take_time_ns(cursor, &stats.first_ns);
    if (r == 0) {
        r = fxt_cursor_take_thread(cursor, fxt_get(cursor->header, FXT_EVENT_THREAD), &pid,
                                   &stats.cpu);
    }
    if (r == 0) {
        r = fxt_cursor_take_string(cursor, fxt_get(cursor->header, FXT_EVENT_CATEGORY), &category);
    }
    if (r == 0) {
        r = fxt_cursor_take_string(cursor, fxt_get(cursor->header, FXT_EVENT_NAME), &name);
    }
    if (r < 0) {
        return r;
    }
    if (!string_is(&category, FXT_STRING_META) || !string_is(&name, FXT_STRING_DROP_STATS)) {
        return 0;
    }
    if (pid != 0) {
        return fxt_cursor_refuse(cursor, "drop_stats of process %" PRIu64 ", not of a CPU", pid);
    }
    r = read_drop_stats(cursor, &stats);
    ret->kind = FXT_RECORD_DROP_STATS;
    ret->drop_stats = stats;
    return r;
}

/* What of a sample has not been taken. It stays in registers, as a cursor does not. */
struct sample_words {
    const uint64_t *at;
    size_t left;
};

/* Takes the word of a field, if the sample has it; else the field is 0. */
static inline int take_field(struct fxt_cursor *cursor, struct sample_words *words, bool has_field,
                             uint64_t *ret)
{
    *ret = 0;
    if (!has_field) {
        return 0;
    }
    if (words->left == 0) {
        return fxt_cursor_refuse_short(cursor);
    }
    *ret = *words->at++;
    words->left--;
    return 0;
}

static inline int take_stack(struct fxt_cursor *cursor, struct sample_words *words, bool has_stack,
                             const uint64_t **ret_stack, size_t *ret_count)
{
    uint64_t count = 0;
    int r = take_field(cursor, words, has_stack, &count);
    if (r < 0) {
        return r;
    }
    if (count > words->left) {
        return fxt_cursor_refuse(cursor, "a stack of %" PRIu64 " entries; words left: %zu", count,
                                 words->left);
    }
    *ret_stack = has_stack ? words->at : NULL;
    *ret_count = count;
    words->at += count;
    words->left -= count;
    return 0;
}

static int check_sample(struct fxt_cursor *cursor)
{
    if (fxt_get(cursor->header, FXT_BLOB_NAME) != 0) {
        return fxt_cursor_refuse(cursor, "a sample has a name");
    }
    if (fxt_get(cursor->header, FXT_BLOB_PAYLOAD_BYTES) != cursor->words_left * FXT_WORD_BYTES) {
        return fxt_cursor_refuse(cursor, "a sample's payload is not as long as its record");
    }
    return 0;
}

/* Sets each member of `ret`. */
static int read_sample(struct fxt_cursor *cursor, struct fxt_sample *ret)
{
    struct sample_words words = {(const uint64_t *)(const void *)cursor->at, cursor->words_left};
    if (check_sample(cursor) < 0 || take_field(cursor, &words, true, &ret->fields) < 0) {
        return -EBADMSG;
    }
    const uint64_t fields = ret->fields;
    if ((fields & ~FXT_SAMPLE_FIELDS_KNOWN) != 0) {
        return fxt_cursor_refuse(cursor, "unknown sample fields 0x%" PRIx64,
                                 fields & ~FXT_SAMPLE_FIELDS_KNOWN);
    }
#define HAS(field) ((fields & (field)) != 0)
    if (take_field(cursor, &words, HAS(FXT_SAMPLE_CONTINUATION), &ret->continuation) < 0 ||
        take_field(cursor, &words, HAS(FXT_SAMPLE_CONTINUATION_COMPLETION),
                   &ret->continuation_completion) < 0 ||
        take_field(cursor, &words, HAS(FXT_SAMPLE_PID), &ret->pid) < 0 ||
        take_field(cursor, &words, HAS(FXT_SAMPLE_TID), &ret->tid) < 0 ||
        take_field(cursor, &words, HAS(FXT_SAMPLE_BOOT_TS), &ret->boot_ts_ns) < 0 ||
        take_stack(cursor, &words, HAS(FXT_SAMPLE_USER_STACK), &ret->user_stack, &ret->user_count) <
            0 ||
        take_field(cursor, &words, HAS(FXT_SAMPLE_CPU), &ret->cpu) < 0 ||
        take_stack(cursor, &words, HAS(FXT_SAMPLE_KERNEL_STACK), &ret->kernel_stack,
                   &ret->kernel_count) < 0 ||
        take_field(cursor, &words, HAS(FXT_SAMPLE_QUALITY), &ret->quality) < 0 ||
        take_field(cursor, &words, HAS(FXT_SAMPLE_WEIGHT), &ret->weight) < 0 ||
        take_field(cursor, &words, HAS(FXT_SAMPLE_EVENT), &ret->event) < 0) {
        return -EBADMSG;
    }
#undef HAS
    cursor->words_left = words.left;
    return fxt_cursor_check_end(cursor);
}

static int read_data(struct fxt_cursor *cursor, struct fxt_data *ret)
{
    ret->payload_bytes = fxt_get(cursor->header, FXT_BLOB_PAYLOAD_BYTES);
    int r = fxt_cursor_take_string(cursor, fxt_get(cursor->header, FXT_BLOB_NAME), &ret->name);
    if (r == 0) {
        r = fxt_cursor_take_bytes(cursor, ret->payload_bytes, &ret->payload);
    }
    return r == 0 ? fxt_cursor_check_end(cursor) : r;
}

static int read_blob(struct fxt_cursor *cursor, struct fxt_record *ret)
{
    uint64_t type = fxt_get(cursor->header, FXT_BLOB_TYPE);
    if (type != FXT_BLOB_DATA && type != FXT_BLOB_SAMPLE) {
        return 0;
    }
    int r = fxt_cursor_check_reserved(cursor, FXT_BLOB_RESERVED);
    if (r < 0) {
        return r;
    }
    ret->kind = type == FXT_BLOB_DATA ? FXT_RECORD_DATA : FXT_RECORD_SAMPLE;
    return type == FXT_BLOB_DATA ? read_data(cursor, &ret->data)
                                 : read_sample(cursor, &ret->sample);
}

/* Takes one argument of a name, and what it says if it is one of ours. */
static int take_name_argument(struct fxt_cursor *cursor, struct fxt_name *name, bool *has_process)
{
    struct fxt_cursor_argument argument;
    int r = fxt_cursor_take_argument(cursor, &argument);
    if (r < 0) {
        return r;
    }
    bool is_process = string_is(&argument.name, FXT_STRING_PROCESS);
    if (!is_process && !string_is(&argument.name, FXT_STRING_SINCE)) {
        return 0;
    }
    if (argument.type != (is_process ? FXT_ARGUMENT_KOID : FXT_ARGUMENT_UINT64) ||
        argument.value_words != 1) {
        return fxt_cursor_refuse(cursor, "a name's '%s' is of the wrong type",
                                 is_process ? "process" : "boot_ts_ns");
    }
    *has_process = *has_process || is_process;
    *(is_process ? &name->pid : &name->since_ns) = argument.value;
    return 0;
}

static int read_kernel_object(struct fxt_cursor *cursor, struct fxt_record *ret)
{
    uint64_t kind = fxt_get(cursor->header, FXT_OBJECT_KIND);
    uint64_t argument_count = fxt_get(cursor->header, FXT_OBJECT_ARGUMENT_COUNT);
    struct fxt_name name = {0};
    bool is_thread = kind == FXT_OBJECT_THREAD;
    bool has_process = false;
    if (!is_thread && kind != FXT_OBJECT_PROCESS) {
        return 0;
    }
    int r = fxt_cursor_check_reserved(cursor, FXT_OBJECT_RESERVED);
    if (r == 0) {
        r = fxt_cursor_take_word(cursor, is_thread ? &name.tid : &name.pid);
    }
    if (r == 0) {
        r = fxt_cursor_take_string(cursor, fxt_get(cursor->header, FXT_OBJECT_NAME), &name.name);
    }
    for (uint64_t i = 0; r == 0 && i < argument_count; i++) {
        r = take_name_argument(cursor, &name, &has_process);
    }
    if (r == 0) {
        r = fxt_cursor_check_end(cursor);
    }
    if (r < 0) {
        return r;
    }
    if (is_thread && name.tid == 0) {
        return fxt_cursor_refuse(cursor, "a thread's koid is 0");
    }
    /* A thread of an unknown process is valid, but nothing that this project writes. */
    if (!is_thread || has_process) {
        ret->kind = FXT_RECORD_NAME;
        ret->name = name;
    }
    return 0;
}

/* Takes what both type-10 records of ours begin with. */
static int take_profiler_start(struct fxt_cursor *cursor, uint64_t *ret_time_ns, uint64_t *ret_pid)
{
    uint64_t tid = 0;
    int r = fxt_cursor_take_time_ns(cursor, ret_time_ns);
    if (r == 0) {
        r = fxt_cursor_take_thread(cursor, fxt_get(cursor->header, FXT_PROFILER_THREAD), ret_pid,
                                   &tid);
    }
    if (r == 0 && tid != 0) {
        return fxt_cursor_refuse(cursor, "a module or mapping of thread %" PRIu64, tid);
    }
    return r;
}

static int read_module(struct fxt_cursor *cursor, struct fxt_module *ret)
{
    ret->module_id = (uint16_t)fxt_get(cursor->header, FXT_PROFILER_MODULE_ID);
    ret->name_bytes = fxt_get(cursor->header, FXT_MODULE_NAME_BYTES);
    ret->build_id_bytes = fxt_get(cursor->header, FXT_MODULE_BUILD_ID_BYTES);
    int r = fxt_cursor_check_reserved(cursor, FXT_MODULE_RESERVED);
    if (r == 0) {
        r = take_profiler_start(cursor, &ret->time_ns, &ret->pid);
    }
    if (r == 0) {
        r = fxt_cursor_take_text(cursor, ret->name_bytes, &ret->name);
    }
    if (r == 0) {
        r = fxt_cursor_take_bytes(cursor, ret->build_id_bytes, &ret->build_id);
    }
    return r == 0 ? fxt_cursor_check_end(cursor) : r;
}

static int read_mmap(struct fxt_cursor *cursor, struct fxt_mmap *ret)
{
    ret->module_id = (uint16_t)fxt_get(cursor->header, FXT_PROFILER_MODULE_ID);
    ret->flags = (uint8_t)fxt_get(cursor->header, FXT_MMAP_FLAGS);
    int r = fxt_cursor_check_reserved(cursor, FXT_MMAP_RESERVED);
    if (r == 0) {
        r = take_profiler_start(cursor, &ret->time_ns, &ret->pid);
    }
    if (r == 0) {
        r = fxt_cursor_take_word(cursor, &ret->start);
    }
    if (r == 0) {
        r = fxt_cursor_take_word(cursor, &ret->size_bytes);
    }
    if (r == 0) {
        r = fxt_cursor_take_word(cursor, &ret->vaddr);
    }
    return r == 0 ? fxt_cursor_check_end(cursor) : r;
}

static int read_profiler(struct fxt_cursor *cursor, struct fxt_record *ret)
{
    uint64_t kind = fxt_get(cursor->header, FXT_PROFILER_KIND);
    if (kind == FXT_PROFILER_MODULE) {
        ret->kind = FXT_RECORD_MODULE;
        return read_module(cursor, &ret->module);
    }
    if (kind == FXT_PROFILER_MMAP) {
        ret->kind = FXT_RECORD_MMAP;
        return read_mmap(cursor, &ret->mmap);
    }
    return 0;
}

/* `ret` comes in as FXT_RECORD_OTHER, and stays so for what we do not write. */
static int read_record(struct fxt_cursor *cursor, struct fxt_record *ret)
{
    switch ((enum fxt_type)ret->type) {
    case FXT_TYPE_METADATA:
        return read_metadata(cursor, ret);
    case FXT_TYPE_INITIALIZATION:
        return read_initialization(cursor, ret);
    case FXT_TYPE_STRING:
        return read_string(cursor, ret);
    case FXT_TYPE_THREAD:
        return read_thread(cursor);
    case FXT_TYPE_EVENT:
        return read_event(cursor, ret);
    case FXT_TYPE_BLOB:
        return read_blob(cursor, ret);
    case FXT_TYPE_KERNEL_OBJECT:
        return read_kernel_object(cursor, ret);
    case FXT_TYPE_PROFILER:
        return read_profiler(cursor, ret);
    case FXT_TYPE_LARGE: /* refused by its header */
        break;
    }
    return 0;
}

static int check_header(struct fxt_reader *reader)
{
    struct fxt_cursor *cursor = &reader->cursor;
    if (!reader->started && cursor->header != FXT_MAGIC_WORD) {
        return fxt_cursor_refuse(cursor, "no magic number: this is not an FXT file");
    }
    if (fxt_get(cursor->header, FXT_HEADER_TYPE) == FXT_TYPE_LARGE) {
        return fxt_cursor_refuse(cursor, "a large record (type 15)");
    }
    return fxt_get(cursor->header, FXT_HEADER_WORDS) == 0
               ? fxt_cursor_refuse(cursor, "a record of size 0")
               : 0;
}

static bool is_sample(uint64_t header)
{
    return fxt_get(header, FXT_HEADER_TYPE) == FXT_TYPE_BLOB &&
           fxt_get(header, FXT_BLOB_TYPE) == FXT_BLOB_SAMPLE;
}

int fxt_reader_next(struct fxt_reader *reader, const uint8_t *bytes, size_t size_bytes,
                    struct fxt_record *ret)
{
    struct fxt_cursor *cursor = &reader->cursor;
    assert((uintptr_t)bytes % FXT_WORD_BYTES == 0);
    if (size_bytes < FXT_WORD_BYTES) {
        return 0;
    }
    memcpy(&cursor->header, bytes, sizeof cursor->header);
    int r = check_header(reader);
    if (r < 0) {
        return r;
    }
    size_t words = fxt_get(cursor->header, FXT_HEADER_WORDS);
    if (words * FXT_WORD_BYTES > size_bytes) {
        return 0;
    }
    cursor->at = bytes + FXT_WORD_BYTES;
    cursor->words_left = words - 1;
    if (!is_sample(cursor->header)) { /* which sets all that it has */
        *ret = (struct fxt_record){0};
    }
    ret->kind = FXT_RECORD_OTHER;
    ret->type = (uint8_t)fxt_get(cursor->header, FXT_HEADER_TYPE);
    ret->size_bytes = words * FXT_WORD_BYTES;
    ret->offset_bytes = cursor->offset_bytes;
    if (ret->type != FXT_TYPE_METADATA && cursor->tables.current == NULL) {
        r = fxt_tables_need_provider(&cursor->tables);
    }
    if (r == 0) {
        r = read_record(cursor, ret);
    }
    if (r < 0) {
        return r;
    }
    ret->provider_id = cursor->tables.current == NULL ? 0 : cursor->tables.current->id;
    cursor->offset_bytes += ret->size_bytes;
    reader->started = true;
    return 1;
}
