/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One table names the fields of every record, one walk finds those that a record has, and two small
 * printers show them. A new kind of record is a line a field, here.
 */
#include "dump.h"

#include "cleanup.h"
#include "json.h"
#include "json_out.h"
#include "text_out.h"

#include <inttypes.h>
#include <string.h>

#define DATA_DEPTH_MAX 16

enum field_kind {
    FIELD_NUMBER,
    FIELD_SIGNED,
    FIELD_SIGNED_TEXT, /* a number that the text alone shows as a signed one */
    FIELD_ADDRESS,
    FIELD_ACCESS, /* ELF p_flags; "rwx" in the text */
    FIELD_TEXT,
    FIELD_LINE, /* of a Data blob; JSON as it stands where it is JSON, else a text */
    FIELD_ID,   /* bytes in hexadecimal */
    FIELD_STACK,
    FIELD_BEGIN, /* what follows is one object in JSON, up to FIELD_END */
    FIELD_END,
};

struct field {
    enum fxt_record_kind record;
    enum field_kind kind;
    const char *name;      /* in JSON; in the text too, where it has no name of its own */
    const char *text_name; /* "": the value stands alone */
    size_t at;             /* in struct fxt_record: of a number, or of a pointer to elements */
    size_t size_bytes;
    size_t count_at;   /* in struct fxt_record: how many elements */
    uint64_t bit;      /* of a sample's `fields`; 0: the field is always there */
    bool may_lack;     /* a number that the record does not have where it is 0 */
    const char *empty; /* what the text shows for no elements */
};

struct value {
    uint64_t number;
    const void *data; /* borrowed from the record: characters, bytes or addresses */
    size_t count;     /* of these */
};

#define AT(member)        offsetof(struct fxt_record, member)
#define MEMBER(member)    .at = AT(member), .size_bytes = sizeof((struct fxt_record){0}.member)
#define MANY(data, count) .at = AT(data), .count_at = AT(count)
#define PART(first, bytes)                                                                         \
    .at = AT(sample.quality) + (first), .size_bytes = (bytes), .bit = FXT_SAMPLE_QUALITY

/* In JSON's order. */
static const struct field known_fields[] = {
    {FXT_RECORD_PROVIDER, FIELD_NUMBER, "id", NULL, MEMBER(provider_id)},
    {FXT_RECORD_INITIALIZATION, FIELD_NUMBER, "ticks_per_second", NULL, MEMBER(ticks_per_second)},
    {FXT_RECORD_STRING, FIELD_NUMBER, "index", NULL, MEMBER(string.index)},
    {FXT_RECORD_STRING, FIELD_TEXT, "text", NULL, MANY(string.text, string.text_bytes)},
    {FXT_RECORD_NAME, FIELD_SIGNED, "pid", NULL, MEMBER(name.pid)},
    {FXT_RECORD_NAME, FIELD_SIGNED, "tid", NULL, MEMBER(name.tid), .may_lack = true},
    {FXT_RECORD_NAME, FIELD_NUMBER, "since_ns", NULL, MEMBER(name.since_ns)},
    {FXT_RECORD_NAME, FIELD_TEXT, "name", NULL, MANY(name.name.text, name.name.text_bytes)},
    {FXT_RECORD_MODULE, FIELD_NUMBER, "time_ns", NULL, MEMBER(module.time_ns)},
    {FXT_RECORD_MODULE, FIELD_SIGNED, "pid", NULL, MEMBER(module.pid)},
    {FXT_RECORD_MODULE, FIELD_NUMBER, "module_id", "id", MEMBER(module.module_id)},
    {FXT_RECORD_MODULE, FIELD_TEXT, "name", NULL, MANY(module.name, module.name_bytes)},
    {FXT_RECORD_MODULE, FIELD_ID, "build_id", NULL, MANY(module.build_id, module.build_id_bytes),
     .empty = "-"},
    {FXT_RECORD_MMAP, FIELD_NUMBER, "time_ns", NULL, MEMBER(mmap.time_ns)},
    {FXT_RECORD_MMAP, FIELD_SIGNED, "pid", NULL, MEMBER(mmap.pid)},
    {FXT_RECORD_MMAP, FIELD_NUMBER, "module_id", "id", MEMBER(mmap.module_id)},
    {FXT_RECORD_MMAP, FIELD_ADDRESS, "start", NULL, MEMBER(mmap.start)},
    {FXT_RECORD_MMAP, FIELD_ADDRESS, "size", NULL, MEMBER(mmap.size_bytes)},
    {FXT_RECORD_MMAP, FIELD_ADDRESS, "vaddr", NULL, MEMBER(mmap.vaddr)},
    {FXT_RECORD_MMAP, FIELD_ACCESS, "flags", NULL, MEMBER(mmap.flags)},
    {FXT_RECORD_SAMPLE, FIELD_SIGNED_TEXT, "time_ns", NULL, MEMBER(sample.boot_ts_ns),
     .bit = FXT_SAMPLE_BOOT_TS},
    {FXT_RECORD_SAMPLE, FIELD_SIGNED_TEXT, "cpu", NULL, MEMBER(sample.cpu), .bit = FXT_SAMPLE_CPU},
    {FXT_RECORD_SAMPLE, FIELD_SIGNED, "pid", NULL, MEMBER(sample.pid), .bit = FXT_SAMPLE_PID},
    {FXT_RECORD_SAMPLE, FIELD_SIGNED, "tid", NULL, MEMBER(sample.tid), .bit = FXT_SAMPLE_TID},
    {FXT_RECORD_SAMPLE, FIELD_ADDRESS, "continuation", NULL, MEMBER(sample.continuation),
     .bit = FXT_SAMPLE_CONTINUATION},
    {FXT_RECORD_SAMPLE, FIELD_ADDRESS, "continuation_completion", "completes",
     MEMBER(sample.continuation_completion), .bit = FXT_SAMPLE_CONTINUATION_COMPLETION},
    {FXT_RECORD_SAMPLE, FIELD_STACK, "user_stack", "user",
     MANY(sample.user_stack, sample.user_count), .bit = FXT_SAMPLE_USER_STACK, .empty = "-"},
    {FXT_RECORD_SAMPLE, FIELD_STACK, "kernel_stack", "kernel",
     MANY(sample.kernel_stack, sample.kernel_count), .bit = FXT_SAMPLE_KERNEL_STACK,
     .empty = "[kernel]"},
    {FXT_RECORD_SAMPLE, FIELD_BEGIN, "quality", NULL, PART(0, 0)},
    {FXT_RECORD_SAMPLE, FIELD_NUMBER, "stack", "quality", PART(0, 1)},
    {FXT_RECORD_SAMPLE, FIELD_NUMBER, "closed", NULL, PART(1, 1)},
    {FXT_RECORD_SAMPLE, FIELD_NUMBER, "cfi_frames", "cfi", PART(2, 2)},
    {FXT_RECORD_SAMPLE, FIELD_NUMBER, "fp_frames", "fp", PART(4, 2)},
    {FXT_RECORD_SAMPLE, FIELD_END, "quality", NULL, PART(0, 0)},
    {FXT_RECORD_SAMPLE, FIELD_NUMBER, "weight", NULL, MEMBER(sample.weight),
     .bit = FXT_SAMPLE_WEIGHT},
    {FXT_RECORD_SAMPLE, FIELD_NUMBER, "event", NULL, MEMBER(sample.event), .bit = FXT_SAMPLE_EVENT},
    {FXT_RECORD_DROP_STATS, FIELD_NUMBER, "cpu", NULL, MEMBER(drop_stats.cpu)},
    {FXT_RECORD_DROP_STATS, FIELD_NUMBER, "first_ns", NULL, MEMBER(drop_stats.first_ns)},
    {FXT_RECORD_DROP_STATS, FIELD_NUMBER, "last_ns", NULL, MEMBER(drop_stats.last_ns)},
    {FXT_RECORD_DROP_STATS, FIELD_NUMBER, "records", NULL, MEMBER(drop_stats.record_count)},
    {FXT_RECORD_DROP_STATS, FIELD_NUMBER, "bytes", NULL, MEMBER(drop_stats.size_bytes)},
    {FXT_RECORD_DATA, FIELD_TEXT, "name", "", MANY(data.name.text, data.name.text_bytes)},
    {FXT_RECORD_DATA, FIELD_LINE, "value", "", MANY(data.payload, data.payload_bytes)},
    {FXT_RECORD_OTHER, FIELD_NUMBER, "type", NULL, MEMBER(type)},
    {FXT_RECORD_OTHER, FIELD_NUMBER, "size", NULL, MEMBER(size_bytes)},
};

static const char *record_name(const struct fxt_record *record)
{
    static const char *const names[] = {
        [FXT_RECORD_MAGIC] = "magic",
        [FXT_RECORD_PROVIDER] = "provider",
        [FXT_RECORD_INITIALIZATION] = "initialization",
        [FXT_RECORD_STRING] = "string",
        [FXT_RECORD_NAME] = "thread",
        [FXT_RECORD_MODULE] = "module",
        [FXT_RECORD_MMAP] = "mmap",
        [FXT_RECORD_SAMPLE] = "sample",
        [FXT_RECORD_DROP_STATS] = "drop_stats",
        [FXT_RECORD_DATA] = "data",
        [FXT_RECORD_OTHER] = "other",
    };
    bool is_process = record->kind == FXT_RECORD_NAME && record->name.tid == 0;
    return is_process ? "process" : names[record->kind];
}

/* The next field that the record has, from `field` on (NULL: the first), or NULL. */
static const struct field *next_field(const struct fxt_record *record, const struct field *field,
                                      struct value *ret)
{
    const char *base = (const char *)record;
    const struct field *end = known_fields + sizeof known_fields / sizeof known_fields[0];
    for (field = field == NULL ? known_fields : field + 1; field < end; field++) {
        if (field->record != record->kind ||
            (field->bit != 0 && (record->sample.fields & field->bit) == 0)) {
            continue;
        }
        *ret = (struct value){0};
        if (field->count_at != 0) {
            memcpy(&ret->data, base + field->at, sizeof ret->data);
            memcpy(&ret->count, base + field->count_at, sizeof ret->count);
        } else {
            /* A shorter number is the low end of a long one: fxt_format.h asserts the order. */
            memcpy(&ret->number, base + field->at, field->size_bytes);
        }
        if (!field->may_lack || ret->number != 0) {
            return field;
        }
    }
    return NULL;
}

static void print_json_line(struct json_out *out, const struct field *field,
                            const struct value *value)
{
    cleanup_(json_freep) cJSON *tree = NULL;
    if (value->data != NULL &&
        json_parse(value->data, value->count, DATA_DEPTH_MAX, &tree, NULL) == 0) {
        cleanup_(freep) char *json = strndup(value->data, value->count);
        json_out_raw(out, field->name, json);
    } else {
        json_out_text(out, field->name, value->data, value->count);
    }
}

static void print_json_field(struct json_out *out, const struct field *field,
                             const struct value *value)
{
    const uint64_t *stack = value->data;
    const uint8_t *bytes = value->data;
    char id[2 * UINT8_MAX + 1] = "";
    switch (field->kind) {
    case FIELD_NUMBER:
    case FIELD_SIGNED_TEXT:
    case FIELD_ACCESS:
        json_out_u64(out, field->name, value->number);
        break;
    case FIELD_SIGNED:
        json_out_i64(out, field->name, (int64_t)value->number);
        break;
    case FIELD_ADDRESS:
        json_out_hex(out, field->name, value->number);
        break;
    case FIELD_TEXT:
        json_out_text(out, field->name, value->data, value->count);
        break;
    case FIELD_LINE:
        print_json_line(out, field, value);
        break;
    case FIELD_ID:
        for (size_t i = 0; i < value->count; i++) {
            (void)sprintf(id + 2 * i, "%02x", bytes[i]);
        }
        json_out_string(out, field->name, id);
        break;
    case FIELD_STACK:
        json_out_begin(out, field->name, '[');
        for (size_t i = 0; i < value->count; i++) {
            json_out_hex(out, NULL, stack[i]);
        }
        json_out_end(out, ']');
        break;
    case FIELD_BEGIN:
        json_out_begin(out, field->name, '{');
        break;
    case FIELD_END:
        json_out_end(out, '}');
        break;
    }
}

static void print_json(FILE *file, const struct fxt_record *record)
{
    struct json_out out = {.file = file};
    const struct field *field = NULL;
    struct value value;
    json_out_begin(&out, NULL, '{');
    json_out_string(&out, "record",
                    record->kind == FXT_RECORD_MAGIC ? "segment" : record_name(record));
    while ((field = next_field(record, field, &value)) != NULL) {
        print_json_field(&out, field, &value);
    }
    json_out_end(&out, '}');
    (void)fputc('\n', file);
}

static void print_text_field(FILE *file, const struct field *field, const struct value *value)
{
    const char *name = field->text_name == NULL ? field->name : field->text_name;
    const uint64_t *stack = value->data;
    const uint8_t *bytes = value->data;
    if (field->kind == FIELD_BEGIN || field->kind == FIELD_END) {
        return;
    }
    (void)fprintf(file, " %s%s", name, name[0] == '\0' ? "" : "=");
    switch (field->kind) {
    case FIELD_NUMBER:
        (void)fprintf(file, "%" PRIu64, value->number);
        break;
    case FIELD_SIGNED:
    case FIELD_SIGNED_TEXT:
        (void)fprintf(file, "%" PRId64, (int64_t)value->number);
        break;
    case FIELD_ADDRESS:
        (void)fprintf(file, "0x%" PRIx64, value->number);
        break;
    case FIELD_ACCESS:
        (void)fprintf(file, "%c%c%c", (value->number & 4) != 0 ? 'r' : '-',
                      (value->number & 2) != 0 ? 'w' : '-', (value->number & 1) != 0 ? 'x' : '-');
        break;
    case FIELD_TEXT:
    case FIELD_LINE:
        (void)fputs(field->kind == FIELD_TEXT ? "\"" : "", file);
        text_print_bytes(file, value->data, value->count);
        (void)fputs(field->kind == FIELD_TEXT ? "\"" : "", file);
        break;
    case FIELD_ID:
    case FIELD_STACK:
        for (size_t i = 0; i < value->count; i++) {
            if (field->kind == FIELD_ID) {
                (void)fprintf(file, "%02x", bytes[i]);
            } else {
                (void)fprintf(file, "%s0x%" PRIx64, i == 0 ? "" : ",", stack[i]);
            }
        }
        (void)fputs(value->count == 0 ? field->empty : "", file);
        break;
    case FIELD_BEGIN:
    case FIELD_END:
        break;
    }
}

/* Stacks come last: they are long. */
static void print_text(FILE *file, const struct fxt_record *record)
{
    (void)fprintf(file, "%" PRIu64 " %s", record->offset_bytes, record_name(record));
    for (int stacks = 0; stacks < 2; stacks++) {
        const struct field *field = NULL;
        struct value value;
        while ((field = next_field(record, field, &value)) != NULL) {
            if ((field->kind == FIELD_STACK) == (stacks == 1)) {
                print_text_field(file, field, &value);
            }
        }
    }
    (void)fputc('\n', file);
}

/* Prints a record, and a Data blob as one of each of its lines. */
static void print_lines(FILE *file, const struct fxt_record *record,
                        void (*print)(FILE *file, const struct fxt_record *record))
{
    struct fxt_record line = *record;
    if (record->kind != FXT_RECORD_DATA) {
        print(file, record);
        return;
    }
    const uint8_t *at = record->data.payload;
    const uint8_t *end = at + record->data.payload_bytes;
    do {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        line.data.payload = at;
        line.data.payload_bytes = (size_t)((newline == NULL ? end : newline) - at);
        print(file, &line);
        at += line.data.payload_bytes + 1;
    } while (at < end);
}

void dump_print_text(FILE *file, const struct fxt_record *record)
{
    print_lines(file, record, print_text);
}

void dump_print_json(FILE *file, const struct fxt_record *record)
{
    static const unsigned left_out = 1U << FXT_RECORD_PROVIDER | 1U << FXT_RECORD_INITIALIZATION |
                                     1U << FXT_RECORD_STRING | 1U << FXT_RECORD_OTHER;
    bool is_empty = record->kind == FXT_RECORD_DATA && record->data.payload_bytes == 0;
    if (!is_empty && (left_out >> record->kind & 1) == 0) {
        print_lines(file, record, print_json);
    }
}
