/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints trace events as Chrome and Perfetto show them: a slice for each function that a thread's
 * stacks have in a row. A sample stands for the period before it. Where the next one comes within
 * one and a half, the functions that both have go on; behind a longer gap the thread had not run,
 * and all slices end. Each slice says how many samples it is made of, in all and in itself: times
 * between samples vary, so lengths only nearly are multiples of the period. Of another event a
 * sample is the time that it stands for, or where that is none the moment when it happened. Of a
 * wait that may stand for others the recording does not have its own length, which the slice says.
 *
 * There are many times more slices than frames. So what a slice says of its frame is made once for
 * each frame, before its numbers and behind them.
 */
#include "writers.h"

#include "byte_out.h"
#include "cleanup.h"
#include "export_books.h"
#include "export_cost.h"
#include "extremes.h"
#include "grow.h"
#include "json_out.h"
#include "sample_order.h"
#include "text_forms.h"
#include "wait_sums.h"

#include <inttypes.h>
#include <stdlib.h>

#define NS_PER_US         UINT64_C(1000)
#define PERIOD_DEFAULT_NS UINT64_C(1000000)
#define TRUNCATED         INTERN_NONE
#define TASK_MAX          (INT64_C(1) << 22)  /* no pid of Linux is higher */
#define SEGMENT_MAX       511                 /* whose tasks have numbers of their own */
#define LOST_TASK         INT64_C(0x7fffffff) /* no number is higher in all readers */
#define AHEAD_SAMPLE      ((size_t)32)        /* so far ahead samples are fetched, and stacks */
#define AHEAD_CHAIN       ((size_t)16)

/* A slice that has not ended yet. */
struct slice {
    uint32_t frame; /* of the profile, or TRUNCATED */
    uint64_t begin_ns;
    uint64_t total; /* what the samples stand for, as the next */
    uint64_t self;
    bool has_others; /* one of them may stand for other waits too */
};

/* A task of a segment behind SEGMENT_MAX. */
struct later_task {
    uint64_t number;
    uint64_t segment;
};

struct chrome {
    const struct profile *profile; /* borrowed */
    struct json_out out;
    struct byte_out slices_out; /* slices, of one thread: then it is empty */
    struct text_forms names;    /* by frame: how a slice begins, */
    struct text_forms places;   /* and ends */
    struct intern later_tasks;  /* struct later_task */
    struct slice *slices;       /* owned; of the thread at hand, outermost first */
    size_t slice_capacity;
    size_t slice_count;
    uint64_t end_ns; /* of the last sample of the thread at hand */
    int64_t pid;     /* of it */
    int64_t tid;
    struct export_cost cost;
    bool has_estimates; /* some waits stand for others too */
    int fault;          /* the first -errno */
};

static void chrome_done(struct chrome *writer)
{
    text_forms_done(&writer->names);
    text_forms_done(&writer->places);
    intern_done(&writer->later_tasks);
    free(writer->slices);
}

/* When a slice is: as put_slice() puts it. Readers add in floating point, so only of whole
 * microseconds an end is the very number at which the next slice begins. */
static void print_span(struct json_out *out, uint64_t begin_ns, uint64_t end_ns)
{
    json_out_u64(out, "ts", begin_ns / NS_PER_US);
    json_out_u64(out, "dur", end_ns / NS_PER_US - begin_ns / NS_PER_US);
}

/* A task's number on its track. Tasks of another segment are others, whose slices would overlap.
 * Behind SEGMENT_MAX, where there is room for one segment's, they are counted. */
static int find_track(struct chrome *writer, uint64_t number, uint32_t segment, int64_t *ret)
{
    const struct later_task task = {number, segment};
    int64_t before = segment > 0 ? (int64_t)segment - 1 : 0;
    uint32_t item = 0;
    int r = 0;
    if (number >= (uint64_t)TASK_MAX) {
        *ret = -1 - before;
    } else if (before < SEGMENT_MAX) {
        *ret = (int64_t)number + before * TASK_MAX;
    } else {
        r = intern_add(&writer->later_tasks, &task, sizeof task, &item);
        *ret = SEGMENT_MAX * TASK_MAX + (item < TASK_MAX - 1 ? (int64_t)item : TASK_MAX - 2);
    }
    return r;
}

static void begin_event(struct json_out *out, const char *phase, const char *name, int64_t pid,
                        int64_t tid)
{
    json_out_begin(out, NULL, '{');
    json_out_string(out, "ph", phase);
    json_out_string(out, "name", name);
    json_out_i64(out, "pid", pid);
    json_out_i64(out, "tid", tid);
}

/* Says something of a process or a thread: its name, as a rule. */
static void print_said(struct chrome *writer, const char *what, const char *member,
                       const char *text)
{
    struct json_out *out = &writer->out;
    begin_event(out, "M", what, writer->pid, writer->tid);
    json_out_begin(out, "args", '{');
    json_out_string(out, member, text);
    json_out_end(out, '}');
    json_out_end(out, '}');
}

static void print_name(struct chrome *writer, const char *what, const char *name)
{
    print_said(writer, what, "name", name);
}

/* How a slice begins: slices stand behind the names of their thread. */
static void print_slice_begin(FILE *file, const char *name)
{
    struct json_out out = {.file = file, .need_comma = true};
    json_out_begin(&out, NULL, '{');
    json_out_string(&out, "ph", "X");
    json_out_string(&out, "name", name);
}

/* Text forms of frames. */
static void print_name_form(FILE *file, const struct profile *profile, uint32_t number)
{
    print_slice_begin(file, profile_text(profile, profile_frame(profile, number)->name));
}

static void print_place_form(FILE *file, const struct profile *profile, uint32_t number)
{
    const struct profile_frame *frame = profile_frame(profile, number);
    struct json_out out = {.file = file, .need_comma = true};
    if (frame->module != INTERN_NONE) {
        json_out_string(&out, "module",
                        profile_text(profile, profile->modules[frame->module].name));
    }
    if (frame->file != INTERN_NONE) {
        json_out_string(&out, "file", profile_text(profile, frame->file));
    }
    if (frame->line > 0) {
        json_out_u64(&out, "line", frame->line);
    }
    json_out_end(&out, '}');
    json_out_end(&out, '}');
}

static void put_form(struct chrome *writer, struct text_forms *forms, uint32_t frame)
{
    const struct text_form *form = text_forms_get(forms, frame);
    if (form == NULL) {
        writer->fault = -ENOMEM;
        return;
    }
    byte_out_put(&writer->slices_out, form->text, form->text_bytes);
}

static void put_member(struct byte_out *out, const char *before, uint64_t value)
{
    byte_out_text(out, before);
    byte_out_decimal(out, value);
}

/* A number of a task, which may be negative. */
static void put_task(struct byte_out *out, const char *before, int64_t number)
{
    byte_out_text(out, before);
    if (number < 0) {
        byte_out_text(out, "-");
    }
    byte_out_decimal(out, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

static void put_slice(struct chrome *writer, const struct slice *slice, uint64_t end_ns)
{
    struct byte_out *out = &writer->slices_out;
    bool is_marker = slice->frame == TRUNCATED;
    bool is_kernel = !is_marker && profile_frame(writer->profile, slice->frame)->is_kernel != 0;
    uint64_t begin_us = slice->begin_ns / NS_PER_US;
    if (is_marker) {
        byte_out_text(out, ",{\"ph\":\"X\",\"name\":\"[truncated]\"");
    } else {
        put_form(writer, &writer->names, slice->frame);
    }
    put_task(out, ",\"pid\":", writer->pid);
    put_task(out, ",\"tid\":", writer->tid);
    byte_out_text(out, is_kernel ? ",\"cat\":\"kernel\"" : ",\"cat\":\"user\"");
    put_member(out, ",\"ts\":", begin_us);
    put_member(out, ",\"dur\":", end_ns / NS_PER_US - begin_us);
    put_member(
        out, writer->profile->event.is_clock ? ",\"args\":{\"samples\":" : ",\"args\":{\"total\":",
        slice->total);
    put_member(out, ",\"self\":", slice->self);
    if (slice->has_others) {
        byte_out_text(out, ",\"length\":\"with others that it stands for\"");
    }
    if (is_marker) {
        byte_out_text(out, "}}");
    } else {
        put_form(writer, &writer->places, slice->frame);
    }
}

/* Ends the slices behind the first `count`. The outermost is printed first: of slices that begin
 * and end together, readers take the first for the outer one. */
static void end_slices(struct chrome *writer, size_t count)
{
    for (size_t i = count; i < writer->slice_count; i++) {
        put_slice(writer, &writer->slices[i], writer->end_ns);
    }
    writer->slice_count = count < writer->slice_count ? count : writer->slice_count;
}

/* The frame at a depth from the root, of a stack that begins with TRUNCATED where it has no root.
 */
static uint32_t frame_at(const uint32_t *frames, size_t count, bool is_truncated, size_t depth)
{
    if (is_truncated && depth == 0) {
        return TRUNCATED;
    }
    return frames[count - 1 - (depth - is_truncated)];
}

/* The period of a sample of the clock. */
static uint64_t period_ns(const struct chrome *writer, const struct profile_sample *sample)
{
    return writer->cost.is_time ? export_cost_of_one(&writer->cost, writer->profile, sample)
                                : PERIOD_DEFAULT_NS;
}

/* The time that a sample stands for, up to its own. */
static uint64_t length_ns(const struct chrome *writer, const struct profile_sample *sample)
{
    const struct profile_event *event = &writer->profile->event;
    return event->is_clock  ? period_ns(writer, sample)
           : event->is_time ? profile_value_of(writer->profile, sample)
                            : NS_PER_US;
}

static int add_sample(struct chrome *writer, const struct profile_sample *sample)
{
    size_t count = 0;
    uint64_t value = profile_value_of(writer->profile, sample);
    uint64_t span_ns = length_ns(writer, sample);
    const uint32_t *frames = profile_chain(writer->profile, sample->chain, &count);
    bool is_truncated = profile_rooted(sample) == PROFILE_STACK_TRUNCATED;
    size_t depth_count = count + is_truncated;
    uint64_t begin_ns = sample->time_ns > span_ns ? sample->time_ns - span_ns : 0;
    uint64_t gap_ns = writer->profile->event.is_clock ? span_ns / 2 : 0;
    size_t shared = 0;
    if (writer->slice_count > 0 && begin_ns <= writer->end_ns + gap_ns) {
        begin_ns = writer->end_ns;
    } else {
        end_slices(writer, 0);
    }
    while (shared < depth_count && shared < writer->slice_count &&
           writer->slices[shared].frame == frame_at(frames, count, is_truncated, shared)) {
        shared++;
    }
    end_slices(writer, shared);
    if (grow(writer->slices, writer->slice_capacity, depth_count) < 0) {
        return -ENOMEM;
    }
    for (size_t depth = shared; depth < depth_count; depth++) {
        writer->slices[depth] = (struct slice){
            .frame = frame_at(frames, count, is_truncated, depth), .begin_ns = begin_ns};
    }
    writer->slice_count = depth_count;
    bool has_others = writer->has_estimates && wait_sums_stand_for_others(writer->profile, sample);
    for (size_t depth = 0; depth < depth_count; depth++) {
        writer->slices[depth].total += value;
        writer->slices[depth].has_others = writer->slices[depth].has_others || has_others;
    }
    writer->slices[depth_count - 1].self += value;
    /* speedscope shows nothing of a thread behind a slice without a length. */
    writer->end_ns = max_u64(sample->time_ns, (begin_ns / NS_PER_US + 1) * NS_PER_US);
    return 0;
}

/* Fetches into the CPU's cache what will be needed for the sample so far behind the one `at`. */
static void fetch_ahead(const struct profile *profile, const uint32_t *order, size_t count,
                        size_t at)
{
    if (count - at > AHEAD_SAMPLE) {
        __builtin_prefetch(&profile->samples[order[at + AHEAD_SAMPLE]]);
    }
    if (count - at > AHEAD_CHAIN) {
        intern_fetch_bytes(&profile->chains, profile->samples[order[at + AHEAD_CHAIN]].chain);
    }
}

/* Names, and whose it is, are those that the thread had last. */
static int print_thread(struct chrome *writer, const uint32_t *order, size_t count)
{
    const struct profile *profile = writer->profile;
    const struct profile_sample *last = &profile->samples[order[count - 1]];
    const struct profile_task *task = profile_task(profile, last->task);
    uint32_t name = task->thread_name;
    const char *process = profile_text(profile, task->process_name);
    int r = find_track(writer, task->pid, task->segment, &writer->pid);
    if (r == 0) {
        r = find_track(writer, task->tid, task->segment, &writer->tid);
    }
    if (r < 0) {
        return r;
    }
    print_name(writer, "process_name", process);
    if (profile_owner_is_named(profile, task->owner)) {
        print_said(writer, "process_labels", "labels",
                   profile_text(profile, profile_label(profile, last, PROFILE_LABEL_UNIT)));
    }
    print_name(writer, "thread_name", name == INTERN_NONE ? process : profile_text(profile, name));
    for (size_t i = 0; i < count && r == 0; i++) {
        fetch_ahead(profile, order, count, i);
        r = add_sample(writer, &profile->samples[order[i]]);
    }
    end_slices(writer, 0);
    byte_out_flush(&writer->slices_out);
    return r < 0 ? r : writer->fault;
}

static void print_lost(struct chrome *writer)
{
    struct json_out *out = &writer->out;
    uint64_t lost = export_books_lost(writer->profile);
    uint64_t length_ns = writer->cost.is_time
                             ? export_books_lost_cost(writer->profile, &writer->cost)
                             : lost * PERIOD_DEFAULT_NS;
    if (lost > 0) {
        writer->pid = LOST_TASK;
        writer->tid = LOST_TASK;
        print_name(writer, "process_name", "[lost]");
        begin_event(out, "X", "[lost]", LOST_TASK, LOST_TASK);
        print_span(out, writer->profile->first_ns, writer->profile->first_ns + length_ns);
        json_out_begin(out, "args", '{');
        json_out_u64(out, "samples", lost);
        json_out_u64(out, "self", lost);
        json_out_end(out, '}');
        json_out_end(out, '}');
    }
}

int chrome_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    cleanup_(freep) uint32_t *order = sample_order(profile, SAMPLE_ORDER_THREAD);
    cleanup_(chrome_done) struct chrome writer = {
        .profile = profile,
        .out = {.file = file},
        .slices_out = {.file = file},
        .cost = export_cost_of(profile),
        .has_estimates = export_books_has_estimates(profile),
    };
    int r =
        order == NULL ? -ENOMEM : text_forms_init_frames(&writer.names, profile, print_name_form);
    r = r == 0 ? text_forms_init_frames(&writer.places, profile, print_place_form) : r;
    json_out_begin(&writer.out, NULL, '{');
    json_out_begin(&writer.out, "traceEvents", '[');
    for (size_t first = 0, end = 0; first < profile->sample_count && r == 0; first = end) {
        end = sample_order_end(profile, order, SAMPLE_ORDER_THREAD, first);
        r = print_thread(&writer, order + first, end - first);
    }
    if (options->has_lost_frame) {
        print_lost(&writer);
    }
    json_out_end(&writer.out, ']');
    json_out_string(&writer.out, "displayTimeUnit", "ns");
    json_out_begin(&writer.out, "otherData", '{');
    if (!profile->event.is_clock) {
        json_out_string(&writer.out, "event", profile->event.name);
        json_out_string(&writer.out, "unit", profile->event.unit);
    }
    json_out_raw(&writer.out, "session", profile->session_json);
    json_out_raw(&writer.out, "books", profile->books_json);
    json_out_end(&writer.out, '}');
    json_out_end(&writer.out, '}');
    (void)fputc('\n', file);
    return r;
}
