/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints a recording as Fuchsia's profiler writes one: FXT, in which a sample is a Backtrace
 * record, and nothing is that `ffx profiler symbolize` refuses. Its reader puts all modules of a
 * pid together, whatever their time, so each pid has one layout, and its samples stand behind it.
 * Names of processes and threads stand before the first sample that has them. Numbers of modules
 * have 16 bits: modules beyond are left out, their frames stay addresses.
 */
#include "writers.h"

#include "build_id_bytes.h"
#include "byte_out.h"
#include "cleanup.h"
#include "fxt_writer.h"
#include "grow.h"
#include "process_layout.h"
#include "sample_order.h"
#include "stack_runs.h"
#include "utf8.h"

#include <string.h>

#define KIND_BACKTRACE 2
#define FRAME_COUNT    FXT_BITS(28, 35)
#define FRAMES_MAX     ((size_t)255)
#define HEAD_WORDS     4 /* of a backtrace: header, time, pid, tid */
#define FLAGS_R_X      5
#define BUILD_ID_BYTES ((size_t)64)
#define SEGMENT_ID     1
#define AHEAD_SAMPLE   ((size_t)32) /* so many samples ahead they are fetched, and their stacks */
#define AHEAD_STACK    ((size_t)16)

/* Padded by hand, since its bytes are a key. */
struct task_key {
    uint64_t pid;
    uint64_t tid;
    uint32_t name; /* of the profile's texts */
    uint32_t zero;
};

struct fuchsia {
    const struct profile *profile; /* borrowed */
    struct process_layout layout;  /* of the process at hand */
    struct stack_runs stacks;      /* of it: arrays of uint64_t, addresses as they are written */
    uint32_t *stack_of;            /* owned; of each of its samples */
    size_t stack_of_capacity;
    struct intern names; /* struct task_key; those that were written */
    bool *is_named;      /* owned; by task: all of its names were written */
    uint64_t words[FXT_RECORD_WORDS_MAX];
    struct fxt_writer record;
    struct byte_out out;
};

static void fuchsia_done(struct fuchsia *writer)
{
    process_layout_done(&writer->layout);
    stack_runs_done(&writer->stacks);
    free(writer->stack_of);
    free(writer->is_named);
    intern_done(&writer->names);
}

static struct fxt_writer *begin_record(struct fuchsia *writer)
{
    fxt_writer_init(&writer->record, writer->words, sizeof writer->words);
    return &writer->record;
}

static void end_record(struct fuchsia *writer)
{
    byte_out_put(&writer->out, writer->words, writer->record.used_bytes);
}

/* Writes the name of a process, or with `tid` above 0 of a thread, if it is new. */
static int write_name(struct fuchsia *writer, const struct profile_sample *sample, uint64_t tid,
                      uint32_t name)
{
    const struct profile_task *task = profile_task(writer->profile, sample->task);
    char text[FXT_STRING_BYTES_MAX + 1];
    const struct task_key key = {.pid = task->pid, .tid = tid, .name = name};
    size_t known_count = writer->names.item_count;
    uint32_t item = 0;
    int r = name == INTERN_NONE ? 0 : intern_add(&writer->names, &key, sizeof key, &item);
    if (r < 0 || name == INTERN_NONE || item < known_count) {
        return r;
    }
    const char *whole = profile_text(writer->profile, name);
    const struct fxt_name record = {
        .pid = task->pid,
        .tid = tid,
        .since_ns = sample->time_ns,
        .name = {.text = text, .text_bytes = utf8_clean(text, sizeof text, whole, strlen(whole))},
    };
    fxt_write_name(begin_record(writer), &record);
    end_record(writer);
    return 0;
}

/* A stack_run_fn: lays out all pages of the stack, and makes the addresses of its innermost frames,
 * as many as the format has room for, behind the place of a record's head. */
static int make_addresses(const struct profile_sample *sample, void *userdata, struct made_run *ret)
{
    struct fuchsia *writer = userdata;
    struct place_walk walk;
    struct stack_place place;
    uint64_t *addresses = writer->words + HEAD_WORDS;
    size_t count = 0;
    int r = 0;
    place_walk_begin(&walk, writer->profile, sample);
    while (r == 0 && place_walk_next(&walk, &place)) {
        uint64_t address = 0;
        uint32_t module = 0;
        if (place.has_address) {
            r = process_layout_add(&writer->layout, writer->profile, sample, &place, &address,
                                   &module);
        }
        if (place.has_address && count < FRAMES_MAX) {
            addresses[count++] = address + place.is_caller;
        }
    }
    *ret = (struct made_run){addresses, count * sizeof *addresses};
    return r;
}

/* Finds the stacks of all samples of the process, and so its pages. */
static int lay_out(struct fuchsia *writer, const uint32_t *samples, size_t count)
{
    const struct profile *profile = writer->profile;
    process_layout_done(&writer->layout);
    stack_runs_done(&writer->stacks);
    int r = grow(writer->stack_of, writer->stack_of_capacity, count);
    for (size_t i = 0; i < count && r == 0; i++) {
        stack_runs_fetch_ahead(&writer->stacks, profile, samples, count, i);
        r = stack_runs_find(&writer->stacks, profile, &profile->samples[samples[i]], make_addresses,
                            writer, &writer->stack_of[i]);
    }
    return r;
}

static void write_module(struct fuchsia *writer, const struct profile_sample *first,
                         uint32_t number)
{
    const struct layout_module *laid = process_layout_module(&writer->layout, number);
    if (laid->module == INTERN_NONE || number > UINT16_MAX) {
        return;
    }
    const struct profile_module *module = &writer->profile->modules[laid->module];
    const char *whole = profile_text(writer->profile, module->name);
    char name[FXT_MODULE_TEXT_BYTES_MAX + 1];
    uint8_t build_id[BUILD_ID_BYTES];
    const struct fxt_module record = {
        .time_ns = first->time_ns,
        .pid = profile_task(writer->profile, first->task)->pid,
        .module_id = (uint16_t)number,
        .name = name,
        .name_bytes = utf8_clean(name, sizeof name, whole, strlen(whole)),
        .build_id = build_id,
        .build_id_bytes = build_id_bytes(profile_text(writer->profile, module->build_id), build_id,
                                         sizeof build_id),
    };
    fxt_write_module(begin_record(writer), &record);
    end_record(writer);
}

static void write_range(struct fuchsia *writer, const struct profile_sample *first,
                        const struct layout_range *range)
{
    const struct fxt_mmap record = {
        .time_ns = first->time_ns,
        .pid = profile_task(writer->profile, first->task)->pid,
        .module_id = (uint16_t)range->module,
        .flags = FLAGS_R_X,
        .start = range->start,
        .size_bytes = range->size_bytes,
        .vaddr = range->start - process_layout_module(&writer->layout, range->module)->bias,
    };
    if (range->module <= UINT16_MAX) {
        fxt_write_mmap(begin_record(writer), &record);
        end_record(writer);
    }
}

static int write_layout(struct fuchsia *writer, const struct profile_sample *first)
{
    size_t count = 0;
    cleanup_(freep) struct layout_range *ranges = process_layout_ranges(&writer->layout, &count);
    if (ranges == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < writer->layout.modules.item_count; i++) {
        write_module(writer, first, (uint32_t)i);
    }
    for (size_t i = 0; i < count; i++) {
        write_range(writer, first, &ranges[i]);
    }
    return 0;
}

static void write_backtrace(struct fuchsia *writer, const struct profile_sample *sample,
                            uint32_t stack)
{
    const struct profile_task *task = profile_task(writer->profile, sample->task);
    struct made_run addresses = stack_runs_at(&writer->stacks, stack);
    size_t count = addresses.size_bytes / sizeof(uint64_t);
    const uint64_t head[HEAD_WORDS] = {
        fxt_put(FXT_HEADER_TYPE, FXT_TYPE_PROFILER) |
            fxt_put(FXT_HEADER_WORDS, HEAD_WORDS + count) |
            fxt_put(FXT_PROFILER_KIND, KIND_BACKTRACE) | fxt_put(FRAME_COUNT, count),
        sample->time_ns,
        task->pid,
        task->tid,
    };
    byte_out_put(&writer->out, head, sizeof head);
    byte_out_put(&writer->out, addresses.bytes, addresses.size_bytes);
}

static int write_sample(struct fuchsia *writer, const struct profile_sample *sample, uint32_t stack)
{
    const struct profile_task *task = profile_task(writer->profile, sample->task);
    int r = 0;
    if (!writer->is_named[sample->task]) {
        writer->is_named[sample->task] = true;
        r = write_name(writer, sample, 0, task->process_name);
        r = r < 0 || task->tid == 0 ? r : write_name(writer, sample, task->tid, task->thread_name);
    }
    if (r == 0) {
        write_backtrace(writer, sample, stack);
    }
    return r;
}

/* Writes what is of one pid: so many samples. */
static int write_process(struct fuchsia *writer, const uint32_t *samples, size_t count)
{
    const struct profile_sample *all = writer->profile->samples;
    int r = lay_out(writer, samples, count);
    if (r == 0) {
        r = write_layout(writer, &all[samples[0]]);
    }
    for (size_t i = 0; i < count && r == 0; i++) {
        if (count - i > AHEAD_SAMPLE) {
            __builtin_prefetch(&all[samples[i + AHEAD_SAMPLE]]);
        }
        if (count - i > AHEAD_STACK) {
            stack_runs_fetch(&writer->stacks, writer->stack_of[i + AHEAD_STACK]);
        }
        r = write_sample(writer, &all[samples[i]], writer->stack_of[i]);
    }
    return r;
}

int fuchsia_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    cleanup_(fuchsia_done) struct fuchsia writer = {.profile = profile, .out = {.file = file}};
    cleanup_(freep) uint32_t *order = sample_order(profile, SAMPLE_ORDER_PID);
    writer.is_named = calloc(profile->tasks.item_count + 1, sizeof *writer.is_named);
    int r = order == NULL || writer.is_named == NULL ? -ENOMEM : 0;
    (void)options;
    fxt_write_segment_begin(begin_record(&writer), SEGMENT_ID, "cpu-profilerd");
    end_record(&writer);
    for (size_t i = 0, end = 0; i < profile->sample_count && r == 0; i = end) {
        end = sample_order_end(profile, order, SAMPLE_ORDER_PID, i);
        r = write_process(&writer, order + i, end - i);
    }
    byte_out_flush(&writer.out);
    return r;
}
