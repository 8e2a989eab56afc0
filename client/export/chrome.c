/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints trace events as Chrome and Perfetto show them: a slice for each function that a thread's
 * stacks have in a row. A sample stands for the period before it. Where the next one comes within
 * one and a half, the functions that both have go on; behind a longer gap the thread had not run,
 * and all slices end. Each slice says how many samples it is made of, in all and in itself: times
 * between samples vary, so lengths only nearly are multiples of the period.
 */
#include "writers.h"

#include "cleanup.h"
#include "export_books.h"
#include "grow.h"
#include "json_out.h"
#include "sample_order.h"

#include <inttypes.h>
#include <stdlib.h>

#define NS_PER_US         UINT64_C(1000)
#define PERIOD_DEFAULT_NS UINT64_C(1000000)
#define TRUNCATED         INTERN_NONE
#define TASK_MAX          (INT64_C(1) << 22)  /* no pid of Linux is higher */
#define SEGMENT_MAX       511                 /* whose tasks have numbers of their own */
#define LOST_TASK         INT64_C(0x7fffffff) /* no number is higher in all readers */

/* A slice that has not ended yet. */
struct slice {
    uint32_t frame; /* of the profile, or TRUNCATED */
    uint64_t begin_ns;
    uint64_t samples;
    uint64_t self_samples;
};

/* A task of a segment behind SEGMENT_MAX. */
struct later_task {
    uint64_t number;
    uint64_t segment;
};

struct chrome {
    const struct profile *profile; /* borrowed */
    struct json_out out;
    struct intern later_tasks; /* struct later_task */
    struct slice *slices;      /* owned; of the thread at hand, outermost first */
    size_t slice_capacity;
    size_t slice_count;
    uint64_t end_ns; /* of the last sample of the thread at hand */
    int64_t pid;     /* of it */
    int64_t tid;
    uint64_t period_ns;
};

static void chrome_done(struct chrome *writer)
{
    intern_done(&writer->later_tasks);
    free(writer->slices);
}

/* When a slice is. Readers add in floating point, so only of whole microseconds an end is the very
 * number at which the next slice begins. */
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

static void print_place(struct chrome *writer, const struct profile_frame *frame)
{
    const struct profile *profile = writer->profile;
    struct json_out *out = &writer->out;
    if (frame->module != INTERN_NONE) {
        json_out_string(out, "module", profile_text(profile, profile->modules[frame->module].name));
    }
    if (frame->file != INTERN_NONE) {
        json_out_string(out, "file", profile_text(profile, frame->file));
    }
    if (frame->line > 0) {
        json_out_u64(out, "line", frame->line);
    }
}

static void print_slice(struct chrome *writer, const struct slice *slice, uint64_t end_ns)
{
    struct json_out *out = &writer->out;
    const struct profile_frame *frame =
        slice->frame == TRUNCATED ? NULL : profile_frame(writer->profile, slice->frame);
    begin_event(out, "X",
                frame == NULL ? "[truncated]" : profile_text(writer->profile, frame->name),
                writer->pid, writer->tid);
    json_out_string(out, "cat", frame != NULL && frame->is_kernel != 0 ? "kernel" : "user");
    print_span(out, slice->begin_ns, end_ns);
    json_out_begin(out, "args", '{');
    json_out_u64(out, "samples", slice->samples);
    json_out_u64(out, "self", slice->self_samples);
    if (frame != NULL) {
        print_place(writer, frame);
    }
    json_out_end(out, '}');
    json_out_end(out, '}');
}

/* Ends the slices behind the first `count`. The outermost is printed first: of slices that begin
 * and end together, readers take the first for the outer one. */
static void end_slices(struct chrome *writer, size_t count)
{
    for (size_t i = count; i < writer->slice_count; i++) {
        print_slice(writer, &writer->slices[i], writer->end_ns);
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

static int add_sample(struct chrome *writer, const struct profile_sample *sample)
{
    size_t count = 0;
    const uint32_t *frames = profile_chain(writer->profile, sample->chain, &count);
    bool is_truncated = profile_rooted(sample) == PROFILE_STACK_TRUNCATED;
    size_t depth_count = count + is_truncated;
    uint64_t begin_ns =
        sample->time_ns > writer->period_ns ? sample->time_ns - writer->period_ns : 0;
    size_t shared = 0;
    if (writer->slice_count > 0 && begin_ns <= writer->end_ns + writer->period_ns / 2) {
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
    for (size_t depth = 0; depth < depth_count; depth++) {
        writer->slices[depth].samples++;
    }
    writer->slices[depth_count - 1].self_samples++;
    writer->end_ns = sample->time_ns;
    return 0;
}

/* Names, and whose it is, are those that the thread had last. */
static int print_thread(struct chrome *writer, const uint32_t *order, size_t count)
{
    const struct profile *profile = writer->profile;
    const struct profile_sample *last = &profile->samples[order[count - 1]];
    uint32_t name = profile_thread_name(profile, last);
    const char *process = profile_text(profile, last->process_name);
    int r = find_track(writer, last->pid, last->segment, &writer->pid);
    if (r == 0) {
        r = find_track(writer, last->tid, last->segment, &writer->tid);
    }
    if (r < 0) {
        return r;
    }
    print_name(writer, "process_name", process);
    if (profile_owner_is_named(profile, last->owner)) {
        print_said(writer, "process_labels", "labels",
                   profile_text(profile, profile_label(profile, last, PROFILE_LABEL_UNIT)));
    }
    print_name(writer, "thread_name", name == INTERN_NONE ? process : profile_text(profile, name));
    for (size_t i = 0; i < count && r == 0; i++) {
        r = add_sample(writer, &profile->samples[order[i]]);
    }
    end_slices(writer, 0);
    return r;
}

static void print_lost(struct chrome *writer)
{
    struct json_out *out = &writer->out;
    uint64_t lost = export_books_lost(writer->profile);
    if (lost > 0) {
        writer->pid = LOST_TASK;
        writer->tid = LOST_TASK;
        print_name(writer, "process_name", "[lost]");
        begin_event(out, "X", "[lost]", LOST_TASK, LOST_TASK);
        print_span(out, writer->profile->first_ns,
                   writer->profile->first_ns + lost * writer->period_ns);
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
    uint64_t period_ns = profile_period_ns(profile);
    cleanup_(chrome_done) struct chrome writer = {
        .profile = profile,
        .out = {.file = file},
        .period_ns = period_ns > 0 ? period_ns : PERIOD_DEFAULT_NS,
    };
    int r = order == NULL ? -ENOMEM : 0;
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
    json_out_raw(&writer.out, "session", profile->session_json);
    json_out_raw(&writer.out, "books", profile->books_json);
    json_out_end(&writer.out, '}');
    json_out_end(&writer.out, '}');
    (void)fputc('\n', file);
    return r;
}
