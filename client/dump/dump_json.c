/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records as JSON objects. Members that a record does not have are left out.
 */
#include "cleanup.h"
#include "dump.h"
#include "json.h"
#include "json_out.h"

#include <string.h>

#define DATA_DEPTH_MAX 16

static void add_stack(struct json_out *out, const char *name, const uint64_t *stack, size_t count)
{
    json_out_begin(out, name, '[');
    for (size_t i = 0; i < count; i++) {
        json_out_hex(out, NULL, stack[i]);
    }
    json_out_end(out, ']');
}

static void add_quality(struct json_out *out, uint64_t quality)
{
    json_out_begin(out, "quality", '{');
    json_out_u64(out, "stack", quality & 0xff);
    json_out_u64(out, "closed", quality >> 8 & 0xff);
    json_out_u64(out, "cfi_frames", quality >> 16 & 0xffff);
    json_out_u64(out, "fp_frames", quality >> 32 & 0xffff);
    json_out_end(out, '}');
}

static void add_sample(struct json_out *out, const struct fxt_sample *sample)
{
    json_out_string(out, "record", "sample");
    if ((sample->fields & FXT_SAMPLE_BOOT_TS) != 0) {
        json_out_u64(out, "time_ns", sample->boot_ts_ns);
    }
    if ((sample->fields & FXT_SAMPLE_CPU) != 0) {
        json_out_u64(out, "cpu", sample->cpu);
    }
    if ((sample->fields & FXT_SAMPLE_PID) != 0) {
        json_out_i64(out, "pid", (int64_t)sample->pid);
    }
    if ((sample->fields & FXT_SAMPLE_TID) != 0) {
        json_out_i64(out, "tid", (int64_t)sample->tid);
    }
    if ((sample->fields & FXT_SAMPLE_CONTINUATION) != 0) {
        json_out_hex(out, "continuation", sample->continuation);
    }
    if ((sample->fields & FXT_SAMPLE_CONTINUATION_COMPLETION) != 0) {
        json_out_hex(out, "continuation_completion", sample->continuation_completion);
    }
    if ((sample->fields & FXT_SAMPLE_USER_STACK) != 0) {
        add_stack(out, "user_stack", sample->user_stack, sample->user_count);
    }
    if ((sample->fields & FXT_SAMPLE_KERNEL_STACK) != 0) {
        add_stack(out, "kernel_stack", sample->kernel_stack, sample->kernel_count);
    }
    if ((sample->fields & FXT_SAMPLE_QUALITY) != 0) {
        add_quality(out, sample->quality);
    }
}

static void add_module(struct json_out *out, const struct fxt_module *module)
{
    char build_id[2 * UINT8_MAX + 1] = "";
    for (size_t i = 0; i < module->build_id_bytes; i++) {
        (void)sprintf(build_id + 2 * i, "%02x", module->build_id[i]);
    }
    json_out_string(out, "record", "module");
    json_out_u64(out, "time_ns", module->time_ns);
    json_out_i64(out, "pid", (int64_t)module->pid);
    json_out_u64(out, "module_id", module->module_id);
    json_out_text(out, "name", module->name, module->name_bytes);
    json_out_string(out, "build_id", build_id);
}

static void add_mmap(struct json_out *out, const struct fxt_mmap *mmap)
{
    json_out_string(out, "record", "mmap");
    json_out_u64(out, "time_ns", mmap->time_ns);
    json_out_i64(out, "pid", (int64_t)mmap->pid);
    json_out_u64(out, "module_id", mmap->module_id);
    json_out_hex(out, "start", mmap->start);
    json_out_hex(out, "size", mmap->size_bytes);
    json_out_hex(out, "vaddr", mmap->vaddr);
    json_out_u64(out, "flags", mmap->flags);
}

static void add_name(struct json_out *out, const struct fxt_name *name)
{
    json_out_string(out, "record", name->tid == 0 ? "process" : "thread");
    json_out_i64(out, "pid", (int64_t)name->pid);
    if (name->tid != 0) {
        json_out_i64(out, "tid", (int64_t)name->tid);
    }
    json_out_u64(out, "since_ns", name->since_ns);
    json_out_text(out, "name", name->name.text, name->name.text_bytes);
}

static void add_drop_stats(struct json_out *out, const struct fxt_drop_stats *stats)
{
    json_out_string(out, "record", "drop_stats");
    json_out_u64(out, "cpu", stats->cpu);
    json_out_u64(out, "first_ns", stats->first_ns);
    json_out_u64(out, "last_ns", stats->last_ns);
    json_out_u64(out, "records", stats->record_count);
    json_out_u64(out, "bytes", stats->size_bytes);
}

/* One line of a Data blob: as it stands where it is JSON, else as a text. */
static void add_data_line(struct json_out *out, const struct fxt_string *name, const char *line,
                          size_t line_bytes)
{
    cleanup_(json_freep) cJSON *value = NULL;
    json_out_string(out, "record", "data");
    json_out_text(out, "name", name->text, name->text_bytes);
    if (json_parse(line, line_bytes, DATA_DEPTH_MAX, &value, NULL) == 0) {
        cleanup_(freep) char *json = strndup(line, line_bytes);
        json_out_raw(out, "value", json);
    } else {
        json_out_text(out, "value", line, line_bytes);
    }
}

static void print_data(FILE *file, const struct fxt_data *data)
{
    const char *at = (const char *)data->payload;
    const char *end = at + data->payload_bytes;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *line_end = newline == NULL ? end : newline;
        struct json_out out = {.file = file};
        json_out_begin(&out, NULL, '{');
        add_data_line(&out, &data->name, at, (size_t)(line_end - at));
        json_out_end(&out, '}');
        (void)fputc('\n', file);
        at = line_end + 1;
    }
}

void dump_print_json(FILE *file, const struct fxt_record *record)
{
    struct json_out out = {.file = file};
    switch (record->kind) {
    case FXT_RECORD_DATA:
        print_data(file, &record->data);
        return;
    case FXT_RECORD_NAME:
        json_out_begin(&out, NULL, '{');
        add_name(&out, &record->name);
        break;
    case FXT_RECORD_MODULE:
        json_out_begin(&out, NULL, '{');
        add_module(&out, &record->module);
        break;
    case FXT_RECORD_MMAP:
        json_out_begin(&out, NULL, '{');
        add_mmap(&out, &record->mmap);
        break;
    case FXT_RECORD_SAMPLE:
        json_out_begin(&out, NULL, '{');
        add_sample(&out, &record->sample);
        break;
    case FXT_RECORD_DROP_STATS:
        json_out_begin(&out, NULL, '{');
        add_drop_stats(&out, &record->drop_stats);
        break;
    case FXT_RECORD_MAGIC:
    case FXT_RECORD_PROVIDER:
    case FXT_RECORD_INITIALIZATION:
    case FXT_RECORD_STRING:
    case FXT_RECORD_OTHER:
        return;
    }
    json_out_end(&out, '}');
    (void)fputc('\n', file);
}
