/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records for a person: the offset, the kind, and members as name=value.
 */
#include "dump.h"

#include "text_out.h"

#include <inttypes.h>
#include <string.h>

static void print_text(FILE *file, const struct fxt_string *string)
{
    (void)fputc('"', file);
    text_print_bytes(file, string->text, string->text_bytes);
    (void)fputc('"', file);
}

/* `empty` stands for a stack without entries. */
static void print_stack(FILE *file, const char *name, const char *empty, const uint64_t *stack,
                        size_t count)
{
    (void)fprintf(file, " %s", name);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(file, "%c0x%" PRIx64, i == 0 ? '=' : ',', stack[i]);
    }
    if (count == 0) {
        (void)fprintf(file, "=%s", empty);
    }
}

static void print_sample(FILE *file, const struct fxt_sample *sample)
{
    const struct {
        uint64_t field;
        const char *name;
        uint64_t value;
    } numbers[] = {
        {FXT_SAMPLE_BOOT_TS, "time_ns", sample->boot_ts_ns},
        {FXT_SAMPLE_CPU, "cpu", sample->cpu},
        {FXT_SAMPLE_PID, "pid", sample->pid},
        {FXT_SAMPLE_TID, "tid", sample->tid},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if ((sample->fields & numbers[i].field) != 0) {
            (void)fprintf(file, " %s=%" PRId64, numbers[i].name, (int64_t)numbers[i].value);
        }
    }
    if ((sample->fields & FXT_SAMPLE_CONTINUATION) != 0) {
        (void)fprintf(file, " continuation=0x%" PRIx64, sample->continuation);
    }
    if ((sample->fields & FXT_SAMPLE_CONTINUATION_COMPLETION) != 0) {
        (void)fprintf(file, " completes=0x%" PRIx64, sample->continuation_completion);
    }
    if ((sample->fields & FXT_SAMPLE_QUALITY) != 0) {
        (void)fprintf(file, " quality=%u closed=%u cfi=%u fp=%u",
                      (unsigned)(sample->quality & 0xff), (unsigned)(sample->quality >> 8 & 0xff),
                      (unsigned)(sample->quality >> 16 & 0xffff),
                      (unsigned)(sample->quality >> 32 & 0xffff));
    }
    if ((sample->fields & FXT_SAMPLE_USER_STACK) != 0) {
        print_stack(file, "user", "-", sample->user_stack, sample->user_count);
    }
    if ((sample->fields & FXT_SAMPLE_KERNEL_STACK) != 0) {
        print_stack(file, "kernel", "[kernel]", sample->kernel_stack, sample->kernel_count);
    }
}

static void print_module(FILE *file, const struct fxt_module *module)
{
    (void)fprintf(file, " time_ns=%" PRIu64 " pid=%" PRId64 " id=%u name=\"", module->time_ns,
                  (int64_t)module->pid, module->module_id);
    text_print_bytes(file, module->name, module->name_bytes);
    (void)fputs("\" build_id=", file);
    for (size_t i = 0; i < module->build_id_bytes; i++) {
        (void)fprintf(file, "%02x", module->build_id[i]);
    }
    (void)fputs(module->build_id_bytes == 0 ? "-" : "", file);
}

static void print_mmap(FILE *file, const struct fxt_mmap *mmap)
{
    (void)fprintf(file,
                  " time_ns=%" PRIu64 " pid=%" PRId64 " id=%u start=0x%" PRIx64 " size=0x%" PRIx64
                  " vaddr=0x%" PRIx64 " flags=%c%c%c",
                  mmap->time_ns, (int64_t)mmap->pid, mmap->module_id, mmap->start, mmap->size_bytes,
                  mmap->vaddr, (mmap->flags & 4) != 0 ? 'r' : '-',
                  (mmap->flags & 2) != 0 ? 'w' : '-', (mmap->flags & 1) != 0 ? 'x' : '-');
}

static void print_name(FILE *file, const struct fxt_name *name)
{
    (void)fprintf(file, " pid=%" PRId64, (int64_t)name->pid);
    if (name->tid != 0) {
        (void)fprintf(file, " tid=%" PRId64, (int64_t)name->tid);
    }
    (void)fprintf(file, " since_ns=%" PRIu64 " name=", name->since_ns);
    print_text(file, &name->name);
}

/* The length of the line at `text`, without its newline. */
static size_t line_bytes(const uint8_t *text, size_t size_bytes)
{
    const uint8_t *end = memchr(text, '\n', size_bytes);
    return end == NULL ? size_bytes : (size_t)(end - text);
}

static void print_data(FILE *file, const struct fxt_record *record)
{
    const uint8_t *at = record->data.payload;
    const uint8_t *end = at + record->data.payload_bytes;
    do {
        size_t bytes = line_bytes(at, (size_t)(end - at));
        (void)fprintf(file, "%" PRIu64 " data ", record->offset_bytes);
        print_text(file, &record->data.name);
        (void)fputc(' ', file);
        text_print_bytes(file, (const char *)at, bytes);
        (void)fputc('\n', file);
        at += bytes + 1;
    } while (at < end);
}

void dump_print_text(FILE *file, const struct fxt_record *record)
{
    static const char *const kinds[] = {
        [FXT_RECORD_MAGIC] = "magic",
        [FXT_RECORD_PROVIDER] = "provider",
        [FXT_RECORD_INITIALIZATION] = "initialization",
        [FXT_RECORD_STRING] = "string",
        [FXT_RECORD_MODULE] = "module",
        [FXT_RECORD_MMAP] = "mmap",
        [FXT_RECORD_SAMPLE] = "sample",
        [FXT_RECORD_DROP_STATS] = "drop_stats",
        [FXT_RECORD_OTHER] = "other",
    };
    if (record->kind == FXT_RECORD_DATA) {
        print_data(file, record);
        return;
    }
    (void)fprintf(file, "%" PRIu64 " %s", record->offset_bytes,
                  record->kind != FXT_RECORD_NAME ? kinds[record->kind]
                  : record->name.tid == 0         ? "process"
                                                  : "thread");
    switch (record->kind) {
    case FXT_RECORD_PROVIDER:
        (void)fprintf(file, " id=%" PRIu32, record->provider_id);
        break;
    case FXT_RECORD_INITIALIZATION:
        (void)fprintf(file, " ticks_per_second=%" PRIu64, record->ticks_per_second);
        break;
    case FXT_RECORD_STRING:
        (void)fprintf(file, " index=%u text=", record->string.index);
        print_text(file, &record->string);
        break;
    case FXT_RECORD_NAME:
        print_name(file, &record->name);
        break;
    case FXT_RECORD_MODULE:
        print_module(file, &record->module);
        break;
    case FXT_RECORD_MMAP:
        print_mmap(file, &record->mmap);
        break;
    case FXT_RECORD_SAMPLE:
        print_sample(file, &record->sample);
        break;
    case FXT_RECORD_DROP_STATS:
        (void)fprintf(file,
                      " cpu=%" PRIu64 " first_ns=%" PRIu64 " last_ns=%" PRIu64 " records=%" PRIu32
                      " bytes=%" PRIu32,
                      record->drop_stats.cpu, record->drop_stats.first_ns,
                      record->drop_stats.last_ns, record->drop_stats.record_count,
                      record->drop_stats.size_bytes);
        break;
    case FXT_RECORD_OTHER:
        (void)fprintf(file, " type=%u size=%zu", record->type, record->size_bytes);
        break;
    case FXT_RECORD_MAGIC:
    case FXT_RECORD_DATA:
        break;
    }
    (void)fputc('\n', file);
}
