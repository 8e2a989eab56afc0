/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A group of one is one record without an id. Any other is partials, each with its time, task,
 * place in the kernel, and its own innermost user frames, and then the completion with the rest of
 * the stack. They are encoded one behind the other and put at once, so no partial is ever without
 * its completion; one whose completion is not known yet has room kept for it.
 *
 * An id is cpu << 48 | n, n counting up from 1: it is drawn for a group and never comes again,
 * whatever becomes of the group.
 */
#include "trace_lanes.h"

#include "cleanup.h"
#include "fxt_writer.h"

#include <assert.h>
#include <string.h>

#define CPU_SHIFT  48
#define PUT_WORDS  (TRACE_GROUPS_WORDS_MAX + 8) /* a group, and before it a report of drops */
#define WORD_BYTES sizeof(uint64_t)

/* Header, field bits, id, the stack's count, quality. */
#define COMPLETION_WORDS 5

/* Header, field bits, id, pid, tid, time. */
#define PARTIAL_WORDS 6

/* A continuation whose completion is to come. */
struct open_id {
    uint64_t id;
    uint64_t time_ns; /* of the sample that opened it */
};

struct lane_account {
    uint32_t cpu;
    uint64_t last_n; /* of the ids drawn */
    struct trace_lane_counts counts[SAMPLE_EVENTS_MAX];
    /* What there was no room for, until it has been told. */
    uint32_t untold_count;
    uint32_t untold_bytes;
    uint64_t untold_first_ns;
    uint64_t untold_last_ns;
    struct open_id open[TRACE_OPEN_MAX]; /* in the order of their opening */
    size_t open_count;
};

struct trace_lanes {
    struct trace_buffer *buffer;
    size_t cpu_count;
    size_t completion_bytes; /* of the longest one */
    uint64_t words[PUT_WORDS];
    struct lane_account accounts[];
};

struct trace_lanes *trace_lanes_new(const struct trace_lanes_config *config)
{
    struct trace_lanes *lanes =
        calloc(1, sizeof *lanes + config->cpu_count * sizeof lanes->accounts[0]);
    if (lanes == NULL) {
        return NULL;
    }
    lanes->buffer = config->buffer;
    lanes->cpu_count = config->cpu_count;
    lanes->completion_bytes = (COMPLETION_WORDS + config->stack_count_max) * WORD_BYTES;
    assert(lanes->completion_bytes <= sizeof lanes->words);
    for (size_t i = 0; i < config->cpu_count; i++) {
        lanes->accounts[i].cpu = config->cpus[i];
    }
    return lanes;
}

struct trace_lanes *trace_lanes_free(struct trace_lanes *lanes)
{
    free(lanes);
    return NULL;
}

struct trace_lane_counts trace_lanes_counts(const struct trace_lanes *lanes, size_t cpu_index,
                                            uint32_t event)
{
    return lanes->accounts[cpu_index].counts[event];
}

static uint64_t draw_id(struct lane_account *account)
{
    return (uint64_t)account->cpu << CPU_SHIFT | ++account->last_n;
}

/* What stands in front of the next record of this CPU, if anything does. */
static void begin_put(struct trace_lanes *lanes, const struct lane_account *account,
                      struct fxt_writer *writer)
{
    fxt_writer_init(writer, lanes->words, sizeof lanes->words);
    if (account->untold_count > 0) {
        fxt_write_drop_stats(writer, &(struct fxt_drop_stats){
                                         .cpu = account->cpu,
                                         .first_ns = account->untold_first_ns,
                                         .last_ns = account->untold_last_ns,
                                         .record_count = account->untold_count,
                                         .size_bytes = account->untold_bytes,
                                     });
    }
}

static bool end_put(struct trace_lanes *lanes, size_t cpu_index, const struct fxt_writer *writer,
                    size_t sample_count)
{
    struct lane_account *account = &lanes->accounts[cpu_index];
    if (!fxt_writer_ok(writer) ||
        !trace_buffer_put_samples(lanes->buffer, TRACE_LANE_CPU(cpu_index), lanes->words,
                                  writer->used_bytes, (uint32_t)sample_count)) {
        return false;
    }
    account->untold_count = 0;
    account->untold_bytes = 0;
    return true;
}

static void note_dropped(struct lane_account *account, const struct sample *sample)
{
    const uint64_t time_ns = sample->time_ns;
    if (account->untold_count == 0 || time_ns < account->untold_first_ns) {
        account->untold_first_ns = time_ns;
    }
    if (account->untold_count == 0 || time_ns > account->untold_last_ns) {
        account->untold_last_ns = time_ns;
    }
    account->untold_count++;
    account->counts[sample->event].dropped++;
}

static void note_dropped_bytes(struct lane_account *account, size_t bytes)
{
    uint32_t room_bytes = UINT32_MAX - account->untold_bytes;
    account->untold_bytes += bytes < room_bytes ? (uint32_t)bytes : room_bytes;
}

/* The fields that every sample has, whatever else its record says. */
static struct fxt_sample describe(const struct sample *sample)
{
    return (struct fxt_sample){
        .fields = FXT_SAMPLE_PID | FXT_SAMPLE_TID | FXT_SAMPLE_BOOT_TS |
                  (sample_has_kernel_stack(sample) ? FXT_SAMPLE_KERNEL_STACK : 0) |
                  (sample->weight != 1 ? FXT_SAMPLE_WEIGHT : 0) |
                  (sample->event != 0 ? FXT_SAMPLE_EVENT : 0),
        .pid = (uint64_t)(int64_t)sample->pid,
        .tid = (uint64_t)(int64_t)sample->tid,
        .boot_ts_ns = sample->time_ns,
        .kernel_stack = sample->kernel_stack,
        .kernel_count = sample->kernel_count,
        .weight = sample->weight,
        .event = sample->event,
    };
}

static void add_stack(struct fxt_sample *record, const uint64_t *stack, size_t count)
{
    if (count > 0) {
        record->fields |= FXT_SAMPLE_USER_STACK;
        record->user_stack = stack;
        record->user_count = count;
    }
}

static void add_quality(struct fxt_sample *record, const struct sample *sample,
                        enum stack_closed closed)
{
    record->fields |= FXT_SAMPLE_QUALITY;
    record->quality = (uint64_t)sample->quality | (uint64_t)closed << 8 |
                      (uint64_t)sample->cfi_frame_count << 16 |
                      (uint64_t)sample->fp_frame_count << 32;
}

static void write_whole(struct fxt_writer *writer, const struct sample *sample)
{
    struct fxt_sample record = describe(sample);
    record.fields |= FXT_SAMPLE_CPU;
    record.cpu = sample->cpu;
    add_stack(&record, sample->user_stack, sample->user_count);
    add_quality(&record, sample, STACK_CLOSED_NORMALLY);
    fxt_write_sample(writer, &record);
}

static void write_completion(struct fxt_writer *writer, uint64_t id, const struct sample *sample,
                             size_t shared_count, bool has_quality, enum stack_closed closed)
{
    struct fxt_sample record = {
        .fields = FXT_SAMPLE_CONTINUATION_COMPLETION,
        .continuation_completion = id,
    };
    add_stack(&record, sample->user_stack + (sample->user_count - shared_count), shared_count);
    if (has_quality) {
        add_quality(&record, sample, closed);
    }
    fxt_write_sample(writer, &record);
}

static void write_group(struct fxt_writer *writer, const struct trace_group *group, uint64_t id)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct sample *sample = group->members[i];
        struct fxt_sample record = describe(sample);
        record.fields |= FXT_SAMPLE_CONTINUATION;
        record.continuation = id;
        add_stack(&record, sample->user_stack, sample->user_count - group->shared_count);
        if (group->quality_differs) {
            add_quality(&record, sample, STACK_CLOSED_NORMALLY);
        }
        fxt_write_sample(writer, &record);
    }
    write_completion(writer, id, group->members[0], group->shared_count, !group->quality_differs,
                     STACK_CLOSED_NORMALLY);
}

void trace_lanes_put(struct trace_lanes *lanes, size_t cpu_index, const struct trace_group *group)
{
    struct lane_account *account = &lanes->accounts[cpu_index];
    struct fxt_writer writer;
    begin_put(lanes, account, &writer);
    size_t before_bytes = writer.used_bytes;
    if (group->count == 1) {
        write_whole(&writer, group->members[0]);
    } else {
        write_group(&writer, group, draw_id(account));
    }
    bool is_kept = end_put(lanes, cpu_index, &writer, group->count);
    for (size_t i = 0; i < group->count; i++) {
        if (is_kept) {
            account->counts[group->members[i]->event].kept++;
        } else {
            note_dropped(account, group->members[i]);
        }
    }
    note_dropped_bytes(account, is_kept ? 0 : writer.used_bytes - before_bytes);
}

void trace_lanes_drop(struct trace_lanes *lanes, size_t cpu_index, const struct sample *sample)
{
    struct lane_account *account = &lanes->accounts[cpu_index];
    struct fxt_writer writer;
    fxt_writer_init(&writer, lanes->words, sizeof lanes->words);
    write_whole(&writer, sample);
    note_dropped(account, sample);
    note_dropped_bytes(account, writer.used_bytes);
}

bool trace_lanes_settle(struct trace_lanes *lanes)
{
    bool settled = true;
    for (size_t i = 0; i < lanes->cpu_count; i++) {
        struct fxt_writer writer;
        begin_put(lanes, &lanes->accounts[i], &writer);
        if (writer.used_bytes > 0) {
            settled = end_put(lanes, i, &writer, 0) && settled;
        }
    }
    return settled;
}

static struct open_id *find_open(struct lane_account *account, uint64_t id)
{
    for (size_t i = 0; i < account->open_count; i++) {
        if (account->open[i].id == id) {
            return &account->open[i];
        }
    }
    return NULL;
}

bool trace_lanes_complete(struct trace_lanes *lanes, size_t cpu_index, uint64_t id,
                          const struct sample *sample, enum stack_closed closed)
{
    struct lane_account *account = &lanes->accounts[cpu_index];
    struct open_id *open = find_open(account, id);
    if (open == NULL) {
        return false;
    }
    struct fxt_writer writer;
    fxt_writer_init(&writer, lanes->words, lanes->completion_bytes);
    write_completion(&writer, id, sample, sample->user_count, true, closed);
    if (!fxt_writer_ok(&writer)) {
        /* A longer stack than was announced. */
        const struct sample none = {.quality = STACK_NONE};
        fxt_writer_init(&writer, lanes->words, sizeof lanes->words);
        write_completion(&writer, id, &none, 0, true, STACK_CLOSED_LOST);
    }
    trace_buffer_release(lanes->buffer, TRACE_LANE_CPU(cpu_index), lanes->completion_bytes);
    (void)trace_buffer_put(lanes->buffer, TRACE_LANE_CPU(cpu_index), lanes->words,
                           writer.used_bytes);
    account->open_count--;
    memmove(open, open + 1, (size_t)(account->open + account->open_count - open) * sizeof *open);
    return true;
}

/* Completes the oldest one without a stack. */
static void close_first(struct trace_lanes *lanes, size_t cpu_index, enum stack_closed closed)
{
    const struct sample none = {.quality = STACK_NONE};
    (void)trace_lanes_complete(lanes, cpu_index, lanes->accounts[cpu_index].open[0].id, &none,
                               closed);
}

void trace_lanes_close(struct trace_lanes *lanes, uint64_t time_ns, enum stack_closed closed)
{
    for (size_t i = 0; i < lanes->cpu_count; i++) {
        struct lane_account *account = &lanes->accounts[i];
        while (account->open_count > 0 && account->open[0].time_ns <= time_ns) {
            close_first(lanes, i, closed);
        }
    }
}

/* Whether the partial went into the lane, with room kept for its completion if that has none yet.
 */
static bool put_partial(struct trace_lanes *lanes, size_t cpu_index,
                        const struct fxt_sample *record, bool is_first)
{
    size_t lane = TRACE_LANE_CPU(cpu_index);
    struct fxt_writer writer;
    if (is_first && !trace_buffer_reserve(lanes->buffer, lane, lanes->completion_bytes)) {
        return false;
    }
    begin_put(lanes, &lanes->accounts[cpu_index], &writer);
    fxt_write_sample(&writer, record);
    if (end_put(lanes, cpu_index, &writer, 1)) {
        return true;
    }
    if (is_first) {
        trace_buffer_release(lanes->buffer, lane, lanes->completion_bytes);
    }
    return false;
}

bool trace_lanes_open(struct trace_lanes *lanes, size_t cpu_index, const struct sample *sample,
                      uint64_t *id)
{
    struct lane_account *account = &lanes->accounts[cpu_index];
    bool is_first = find_open(account, *id) == NULL;
    if (is_first && account->open_count == TRACE_OPEN_MAX) {
        close_first(lanes, cpu_index, STACK_CLOSED_LIMIT);
    }
    struct fxt_sample record = describe(sample);
    record.fields |= FXT_SAMPLE_CONTINUATION;
    record.continuation = is_first ? draw_id(account) : *id;
    if (!put_partial(lanes, cpu_index, &record, is_first)) {
        note_dropped(account, sample);
        note_dropped_bytes(account, (PARTIAL_WORDS + sample_own_words(sample)) * WORD_BYTES);
        return false;
    }
    if (is_first) {
        account->open[account->open_count++] =
            (struct open_id){record.continuation, sample->time_ns};
        *id = record.continuation;
    }
    account->counts[sample->event].kept++;
    return true;
}
