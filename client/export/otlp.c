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
#include "export_cost.h"
#include "otlp_dictionary.h"
#include "otlp_resource.h"

#include <inttypes.h>
#include <otlp.pb-c.h>
#include <stdlib.h>
#include <string.h>

#define ATTRIBUTES_MAX 3

/* What a sample has of the dictionary. Samples that are equal in it are one. */
struct sample_key {
    uint64_t pid;
    uint64_t tid;
    uint32_t segment;
    uint32_t process_name;
    uint32_t owner;
    uint32_t thread_name;
    uint32_t cpu;
    int32_t stack;
    uint32_t number; /* of the sample */
};

struct otlp {
    const struct profile *profile; /* borrowed */
    struct otlp_dictionary dictionary;
    struct message_out out;
    struct sample_key *keys; /* owned; sorted */
    struct otlp_books books;
    uint64_t period; /* in units of its type; 0: not known, or there is none */
    int64_t wall_offset_ns;
    bool has_wall;
};

static void otlp_done(struct otlp *writer)
{
    otlp_dictionary_done(&writer->dictionary);
    message_out_done(&writer->out);
    free(writer->keys);
}

static int compare_process(const struct sample_key *a, const struct sample_key *b)
{
    int r = compare_u64(a->segment, b->segment);
    r = r == 0 ? compare_u64(a->pid, b->pid) : r;
    r = r == 0 ? compare_u64(a->process_name, b->process_name) : r;
    return r == 0 ? compare_u64(a->owner, b->owner) : r;
}

static int compare_group(const struct sample_key *a, const struct sample_key *b)
{
    int r = compare_process(a, b);
    r = r == 0 ? compare_u64(a->tid, b->tid) : r;
    r = r == 0 ? compare_u64(a->thread_name, b->thread_name) : r;
    r = r == 0 ? compare_u64(a->cpu, b->cpu) : r;
    return r == 0 ? compare_u64((uint32_t)a->stack, (uint32_t)b->stack) : r;
}

static int compare_keys(const void *left, const void *right)
{
    const struct sample_key *a = left;
    const struct sample_key *b = right;
    int r = compare_group(a, b);
    return r == 0 ? compare_u64(a->number, b->number) : r;
}

/* A sample's attributes. Returns how many there are. */
static size_t find_attributes(struct otlp *writer, const struct sample_key *key, int32_t *ret)
{
    struct otlp_dictionary *dictionary = &writer->dictionary;
    size_t count = 0;
    if (key->tid <= INT64_MAX) {
        ret[count++] = otlp_number_attribute(dictionary, "thread.id", (int64_t)key->tid);
    }
    if (key->thread_name != INTERN_NONE) {
        ret[count++] = otlp_text_attribute(dictionary, "thread.name",
                                           profile_text(writer->profile, key->thread_name));
    }
    ret[count++] = otlp_number_attribute(dictionary, "cpu.logical_number", key->cpu);
    return count;
}

static void add_sample(struct otlp *writer, size_t number)
{
    const struct profile_sample *sample = &writer->profile->samples[number];
    const struct profile_task *task = profile_task(writer->profile, sample->task);
    int32_t attributes[ATTRIBUTES_MAX];
    writer->keys[number] = (struct sample_key){
        .pid = task->pid,
        .tid = task->tid,
        .segment = task->segment,
        .process_name = task->process_name,
        .owner = task->owner,
        .thread_name = task->thread_name,
        .cpu = sample->cpu,
        .stack = otlp_stack(&writer->dictionary, sample),
        .number = (uint32_t)number,
    };
    (void)find_attributes(writer, &writer->keys[number], attributes);
}

static uint64_t wall_ns(const struct otlp *writer, uint64_t time_ns)
{
    return writer->has_wall ? time_ns + (uint64_t)writer->wall_offset_ns : 0;
}

static void keep_fault(struct otlp *writer, int r)
{
    writer->dictionary.fault = writer->dictionary.fault == 0 ? r : writer->dictionary.fault;
}

static int compare_times(const void *left, const void *right)
{
    return compare_u64(*(const uint64_t *)left, *(const uint64_t *)right);
}

/* Writes one sample that stands for those of the keys, with their times in order. */
static void write_group(struct otlp *writer, struct message_out *out, const struct sample_key *keys,
                        size_t count)
{
    cleanup_(freep) uint64_t *times = calloc(count, sizeof *times);
    int32_t attributes[ATTRIBUTES_MAX];
    int64_t value = 0;
    Otlp__Sample sample = OTLP__SAMPLE__INIT;
    if (times == NULL) {
        keep_fault(writer, -ENOMEM);
        return;
    }
    sample.stack_index = keys[0].stack;
    sample.n_attribute_indices = find_attributes(writer, keys, attributes);
    sample.attribute_indices = attributes;
    if (writer->has_wall && writer->profile->values == NULL) {
        for (size_t i = 0; i < count; i++) {
            times[i] = wall_ns(writer, writer->profile->samples[keys[i].number].time_ns);
        }
        qsort(times, count, sizeof *times, compare_times);
        sample.n_timestamps_unix_nano = count;
        sample.timestamps_unix_nano = times;
    } else {
        for (size_t i = 0; i < count; i++) {
            value += (int64_t)profile_value(writer->profile, keys[i].number);
        }
        sample.n_values = 1;
        sample.values = &value;
    }
    keep_fault(writer, message_out_field(out, OTLP_FIELD_SAMPLES, &sample.base));
}

static void write_samples(struct otlp *writer, struct message_out *out,
                          const struct sample_key *keys, size_t count)
{
    for (size_t first = 0, end = 0; first < count && writer->dictionary.fault == 0; first = end) {
        for (end = first + 1; end < count && compare_group(&keys[first], &keys[end]) == 0;) {
            end++;
        }
        write_group(writer, out, keys + first, end - first);
    }
}

/* What samples count, and what their period is in. A store names a profile by the latter, or where
 * there is none, as of waits, by the former. */
static void name_types(struct otlp *writer, Otlp__ValueType *samples, Otlp__ValueType *period)
{
    struct otlp_dictionary *dictionary = &writer->dictionary;
    const struct profile_event *event = &writer->profile->event;
    char name[EXPORT_EVENT_BYTES];
    (void)export_event_name(event, name);
    if (!event->is_clock) {
        const char *unit = event->is_time ? "nanoseconds" : "count";
        samples->type_strindex =
            otlp_string(dictionary, strcmp(name, "off-cpu") == 0 ? "off_cpu" : name);
        samples->unit_strindex = otlp_string(dictionary, unit);
        *period = *samples;
        return;
    }
    samples->type_strindex = otlp_string(dictionary, "samples");
    samples->unit_strindex = otlp_string(dictionary, "count");
    period->type_strindex = otlp_string(dictionary, "cpu");
    period->unit_strindex = otlp_string(dictionary, "nanoseconds");
}

/* The period of samples; 0: there is none. */
static uint64_t find_period(const struct profile *profile)
{
    const struct profile_event *event = &profile->event;
    return event->is_clock ? profile_period_ns(profile) : event->is_time ? 0 : 1;
}

/* All of a profile but its samples. */
static void write_profile_head(struct otlp *writer, struct message_out *out)
{
    const struct profile *profile = writer->profile;
    Otlp__Profile head = OTLP__PROFILE__INIT;
    Otlp__ValueType samples = OTLP__VALUE_TYPE__INIT;
    Otlp__ValueType period = OTLP__VALUE_TYPE__INIT;
    name_types(writer, &samples, &period);
    head.sample_type = &samples;
    head.time_unix_nano = wall_ns(writer, profile->first_ns);
    head.duration_nano = profile->last_ns - profile->first_ns;
    if (writer->period > 0) {
        head.period_type = &period;
        head.period = (int64_t)writer->period;
    }
    head.n_attribute_indices = writer->books.count;
    head.attribute_indices = writer->books.attributes;
    keep_fault(writer, message_out_write(out, &head.base));
}

/* Writes what a profile holds: of the keys, or `lost` ticks that no sample stands for. */
static void write_profile(struct otlp *writer, struct message_out *out,
                          const struct sample_key *keys, size_t count, uint64_t lost)
{
    write_profile_head(writer, out);
    write_samples(writer, out, keys, count);
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
                          const struct sample_key *keys, size_t count, uint64_t lost)
{
    struct message_out profile = {.file = NULL};
    struct message_out scope = {.file = NULL};
    struct message_out resource = {.file = NULL};
    write_profile(writer, &profile, keys, count, lost);
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
    write_profile(writer, &writer->out, keys, count, lost);
}

static void write_processes(struct otlp *writer)
{
    const struct profile *profile = writer->profile;
    const struct sample_key *keys = writer->keys;
    size_t count = profile->sample_count;
    for (size_t first = 0, end = 0; first < count && writer->dictionary.fault == 0; first = end) {
        for (end = first + 1; end < count && compare_process(&keys[first], &keys[end]) == 0;) {
            end++;
        }
        const char *name = profile_text(profile, keys[first].process_name);
        const struct otlp_origin process = {
            .service = name,
            .executable = name,
            .host = profile_host(profile, keys[first].segment),
            .pid = keys[first].pid,
            .owner = *profile_owner(profile, keys[first].owner),
        };
        write_process(writer, &process, keys + first, end - first, 0);
    }
}

/* Adds to the dictionary all that will be needed: it is written first. */
static void prepare(struct otlp *writer, uint64_t lost)
{
    struct message_out nowhere = {.file = NULL};
    otlp_books_add(&writer->books, &writer->dictionary);
    for (size_t i = 0; i < writer->profile->sample_count; i++) {
        add_sample(writer, i);
    }
    if (lost > 0) {
        (void)otlp_lost_stack(&writer->dictionary);
    }
    write_profile_head(writer, &nowhere);
    otlp_dictionary_seal(&writer->dictionary);
    if (writer->profile->sample_count > 0) {
        qsort(writer->keys, writer->profile->sample_count, sizeof *writer->keys, compare_keys);
    }
}

int otlp_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    cleanup_(otlp_done) struct otlp writer = {
        .profile = profile, .out = {.file = file}, .period = find_period(profile)};
    struct message_out size = {.file = NULL};
    uint64_t lost = options->has_lost_frame ? export_books_lost(profile) : 0;
    writer.has_wall = profile_wall_offset_ns(profile, &writer.wall_offset_ns);
    writer.keys = calloc(profile->sample_count + 1, sizeof *writer.keys);
    if (writer.keys == NULL) {
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
