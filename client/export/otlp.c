/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints one ExportProfilesServiceRequest of OpenTelemetry: the dictionary, then for each process a
 * resource with one profile; of a process that changed its owner (unit, container), for each.
 * Samples of a process that share stack, thread and CPU are one, with the time of each, in order;
 * where times of the wall clock are not known, or samples stand for different amounts, with what
 * they stand for together: stores do not take a value for each time. What is nested in something
 * else is made twice: once to be counted, since its length stands before it.
 */
#include "writers.h"

#include "cleanup.h"
#include "compare.h"
#include "export_books.h"
#include "grow.h"
#include "otlp_dictionary.h"
#include "otlp_resource.h"
#include "sample_groups.h"

#include <inttypes.h>
#include <otlp.pb-c.h>
#include <stdlib.h>
#include <string.h>

#define ATTRIBUTES_MAX 3

struct otlp {
    const struct profile *profile; /* borrowed */
    struct otlp_dictionary dictionary;
    struct message_out out;
    struct sample_groups groups;
    uint64_t *times; /* owned; of the group at hand */
    size_t time_capacity;
    struct otlp_books books;
    uint64_t period; /* in units of its type; 0: not known, or there is none */
    int64_t wall_offset_ns;
    bool has_wall;
};

static void otlp_done(struct otlp *writer)
{
    otlp_dictionary_done(&writer->dictionary);
    message_out_done(&writer->out);
    sample_groups_done(&writer->groups);
    free(writer->times);
}

/* A lane's attributes. Returns how many there are. */
static size_t find_attributes(struct otlp *writer, const struct sample_lane *lane, int32_t *ret)
{
    struct otlp_dictionary *dictionary = &writer->dictionary;
    const struct profile_task *task = lane->task;
    size_t count = 0;
    if (task->tid <= INT64_MAX) {
        ret[count++] = otlp_number_attribute(dictionary, "thread.id", (int64_t)task->tid);
    }
    if (task->thread_name != INTERN_NONE) {
        ret[count++] = otlp_text_attribute(dictionary, "thread.name",
                                           profile_text(writer->profile, task->thread_name));
    }
    ret[count++] = otlp_number_attribute(dictionary, "cpu.logical_number", lane->cpu);
    return count;
}

static void keep_fault(struct otlp *writer, int r)
{
    writer->dictionary.fault = writer->dictionary.fault == 0 ? r : writer->dictionary.fault;
}

static void add_sample(struct otlp *writer, size_t number)
{
    const struct profile_sample *sample = &writer->profile->samples[number];
    const struct sample_lane *lane = NULL;
    int32_t attributes[ATTRIBUTES_MAX];
    int32_t stack = otlp_stack(&writer->dictionary, sample);
    if (writer->dictionary.fault == 0) {
        keep_fault(writer,
                   sample_groups_add(&writer->groups, (uint32_t)number, (uint32_t)stack, &lane));
    }
    if (lane != NULL) {
        (void)find_attributes(writer, lane, attributes);
    }
}

static uint64_t wall_ns(const struct otlp *writer, uint64_t time_ns)
{
    return writer->has_wall ? time_ns + (uint64_t)writer->wall_offset_ns : 0;
}

static int compare_times(const void *left, const void *right)
{
    return compare_u64(*(const uint64_t *)left, *(const uint64_t *)right);
}

/* Puts the times of samples in order. Returns 0, or -ENOMEM. */
static int sort_times(struct otlp *writer, const uint32_t *samples, size_t count)
{
    bool is_sorted = true;
    if (grow(writer->times, writer->time_capacity, count) < 0) {
        return -ENOMEM;
    }
    uint64_t *times = writer->times;
    for (size_t i = 0; i < count; i++) {
        times[i] = wall_ns(writer, writer->profile->samples[samples[i]].time_ns);
        is_sorted = is_sorted && (i == 0 || times[i - 1] <= times[i]);
    }
    if (!is_sorted) {
        qsort(times, count, sizeof *times, compare_times);
    }
    return 0;
}

/* Writes one sample of a lane that stands for all of one stack, with their times in order.
 * `sample` has the lane's attributes. */
static void write_group(struct otlp *writer, struct message_out *out, Otlp__Sample sample,
                        const uint32_t *samples, size_t count)
{
    int64_t value = 0;
    sample.stack_index = (int32_t)writer->groups.stack_of[samples[0]];
    if (writer->has_wall && writer->profile->values == NULL) {
        keep_fault(writer, sort_times(writer, samples, count));
        if (writer->dictionary.fault != 0) {
            return;
        }
        sample.n_timestamps_unix_nano = count;
        sample.timestamps_unix_nano = writer->times;
    } else {
        for (size_t i = 0; i < count; i++) {
            value += (int64_t)profile_value(writer->profile, samples[i]);
        }
        sample.n_values = 1;
        sample.values = &value;
    }
    keep_fault(writer, message_out_field(out, OTLP_FIELD_SAMPLES, &sample.base));
}

static void write_lane(struct otlp *writer, struct message_out *out, const struct sample_lane *lane)
{
    const uint32_t *stack_of = writer->groups.stack_of;
    const uint32_t *samples = writer->groups.order + lane->first;
    int32_t attributes[ATTRIBUTES_MAX];
    Otlp__Sample sample = OTLP__SAMPLE__INIT;
    sample.n_attribute_indices = find_attributes(writer, lane, attributes);
    sample.attribute_indices = attributes;
    for (size_t first = 0, end = 0; first < lane->count && writer->dictionary.fault == 0;
         first = end) {
        for (end = first + 1;
             end < lane->count && stack_of[samples[end]] == stack_of[samples[first]];) {
            end++;
        }
        write_group(writer, out, sample, samples + first, end - first);
    }
}

/* All of a profile but its samples. `lane`: one of those that it has, whose session it is of; NULL:
 * it stands for the whole recording. */
static void write_profile_head(struct otlp *writer, struct message_out *out,
                               const struct sample_lane *lane)
{
    const struct profile *profile = writer->profile;
    struct profile_span span =
        lane == NULL ? profile_span(profile) : profile_session_span(profile, lane->task->segment);
    Otlp__Profile head = OTLP__PROFILE__INIT;
    Otlp__ValueType samples = OTLP__VALUE_TYPE__INIT;
    Otlp__ValueType period = OTLP__VALUE_TYPE__INIT;
    otlp_name_types(&writer->dictionary, &samples, &period);
    head.sample_type = &samples;
    head.time_unix_nano = wall_ns(writer, span.begin_ns);
    head.duration_nano = span.length_ns;
    if (writer->period > 0) {
        head.period_type = &period;
        head.period = (int64_t)writer->period;
    }
    head.n_attribute_indices = writer->books.count;
    head.attribute_indices = writer->books.attributes;
    keep_fault(writer, message_out_write(out, &head.base));
}

/* Writes what a profile holds: of the lanes, or `lost` ticks that no sample stands for. */
static void write_profile(struct otlp *writer, struct message_out *out,
                          const struct sample_lane *lanes, size_t count, uint64_t lost)
{
    write_profile_head(writer, out, count > 0 ? &lanes[0] : NULL);
    for (size_t i = 0; i < count && writer->dictionary.fault == 0; i++) {
        write_lane(writer, out, &lanes[i]);
    }
    if (lost > 0) {
        int64_t value = (int64_t)lost;
        Otlp__Sample sample = OTLP__SAMPLE__INIT;
        sample.stack_index = otlp_lost_stack(&writer->dictionary);
        sample.n_values = 1;
        sample.values = &value;
        keep_fault(writer, message_out_field(out, OTLP_FIELD_SAMPLES, &sample.base));
    }
}

/* Writes a process: its length first, and so for what is in it. */
static void write_process(struct otlp *writer, const struct otlp_origin *process,
                          const struct sample_lane *lanes, size_t count, uint64_t lost)
{
    struct message_out profile = {.file = NULL};
    struct message_out scope = {.file = NULL};
    struct message_out resource = {.file = NULL};
    write_profile(writer, &profile, lanes, count, lost);
    keep_fault(writer, otlp_write_scope(&scope));
    keep_fault(writer, otlp_write_resource(&resource, writer->profile, process));
    uint64_t scope_bytes =
        scope.written_bytes + message_field_bytes(OTLP_FIELD_PROFILES, profile.written_bytes);
    uint64_t resource_bytes =
        resource.written_bytes + message_field_bytes(OTLP_FIELD_SCOPE_PROFILES, scope_bytes);
    message_out_begin(&writer->out, OTLP_FIELD_RESOURCE_PROFILES, resource_bytes);
    keep_fault(writer, otlp_write_resource(&writer->out, writer->profile, process));
    message_out_begin(&writer->out, OTLP_FIELD_SCOPE_PROFILES, scope_bytes);
    keep_fault(writer, otlp_write_scope(&writer->out));
    message_out_begin(&writer->out, OTLP_FIELD_PROFILES, profile.written_bytes);
    write_profile(writer, &writer->out, lanes, count, lost);
}

static void write_processes(struct otlp *writer)
{
    const struct profile *profile = writer->profile;
    const struct sample_lane *lanes = writer->groups.lanes;
    size_t count = sample_groups_lanes(&writer->groups);
    for (size_t first = 0, end = 0; first < count && writer->dictionary.fault == 0; first = end) {
        for (end = first + 1;
             end < count && sample_groups_same_process(&lanes[first], &lanes[end]);) {
            end++;
        }
        const struct profile_task *task = lanes[first].task;
        const char *name = profile_text(profile, task->process_name);
        const struct otlp_origin process = {
            .service = name,
            .executable = name,
            .host = profile_host(profile, task->segment),
            .pid = task->pid,
            .owner = *profile_owner(profile, task->owner),
        };
        write_process(writer, &process, lanes + first, end - first, 0);
    }
}

/* Adds to the dictionary all that will be needed: it is written first. */
static void prepare(struct otlp *writer, uint64_t lost)
{
    struct message_out nowhere = {.file = NULL};
    otlp_books_add(&writer->books, &writer->dictionary);
    for (size_t i = 0; i < writer->profile->sample_count && writer->dictionary.fault == 0; i++) {
        otlp_stack_fetch_ahead(&writer->dictionary, i);
        add_sample(writer, i);
    }
    if (lost > 0) {
        (void)otlp_lost_stack(&writer->dictionary);
    }
    write_profile_head(writer, &nowhere, NULL);
    otlp_dictionary_seal(&writer->dictionary);
    if (writer->dictionary.fault == 0) {
        keep_fault(writer,
                   sample_groups_sort(&writer->groups, otlp_stack_count(&writer->dictionary)));
    }
}

int otlp_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    cleanup_(otlp_done) struct otlp writer = {
        .profile = profile, .out = {.file = file}, .period = otlp_period(profile)};
    struct message_out size = {.file = NULL};
    uint64_t lost = options->has_lost_frame ? export_books_lost(profile) : 0;
    writer.has_wall = profile_wall_offset_ns(profile, &writer.wall_offset_ns);
    if (sample_groups_init(&writer.groups, profile) < 0) {
        return -ENOMEM;
    }
    otlp_dictionary_init(&writer.dictionary, profile);
    prepare(&writer, lost);
    if (writer.dictionary.fault != 0) {
        return writer.dictionary.fault;
    }
    otlp_dictionary_write(&writer.dictionary, &size);
    message_out_begin(&writer.out, OTLP_FIELD_DICTIONARY, size.written_bytes);
    otlp_dictionary_write(&writer.dictionary, &writer.out);
    write_processes(&writer);
    if (lost > 0) {
        const struct otlp_origin outside = {.service = "[lost]",
                                            .executable = "[lost]",
                                            .pid = PROFILE_PID_OUTSIDE,
                                            .owner = *profile_owner(profile, INTERN_NONE)};
        write_process(&writer, &outside, NULL, 0, lost);
    }
    return writer.dictionary.fault;
}
