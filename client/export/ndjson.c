/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints a JSON object a line, for databases: four tables in one stream, the member `table` says
 * which one a line is a row of. The row of the recording comes first; a frame stands before the
 * first stack that has it, a stack before its first sample. Numbers of stacks and frames mean
 * something within one recording, so each row names that.
 */
#include "writers.h"

#include "cleanup.h"
#include "export_cost.h"
#include "json.h"
#include "json_out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ID_BYTES ((size_t)128)

struct ndjson {
    const struct profile *profile; /* borrowed */
    struct json_out out;
    char recording[ID_BYTES];
    bool *is_frame_told; /* owned; by frame */
    bool *is_stack_told; /* owned; by chain */
    struct export_cost cost;
    int64_t wall_offset_ns;
    bool has_wall;
};

static void ndjson_done(struct ndjson *writer)
{
    free(writer->is_frame_told);
    free(writer->is_stack_told);
}

static void begin_row(struct ndjson *writer, const char *table)
{
    json_out_begin(&writer->out, NULL, '{');
    json_out_string(&writer->out, "table", table);
    json_out_string(&writer->out, "recording", writer->recording);
}

static void end_row(struct ndjson *writer)
{
    json_out_end(&writer->out, '}');
    writer->out.need_comma = false;
    (void)fputc('\n', writer->out.file);
}

static const char *text_or_null(const struct ndjson *writer, uint32_t text)
{
    return text == INTERN_NONE ? NULL : profile_text(writer->profile, text);
}

/* A session's own id, and when the first sample was: a session may be read into several files. */
static void name_recording(struct ndjson *writer, const cJSON *session)
{
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "session"));
    (void)snprintf(writer->recording, sizeof writer->recording, "%.64s-%" PRIu64,
                   id == NULL ? "recording" : id, writer->profile->first_ns);
}

static void print_wall(struct ndjson *writer, const char *name, uint64_t time_ns)
{
    if (writer->has_wall) {
        json_out_u64(&writer->out, name, time_ns + (uint64_t)writer->wall_offset_ns);
    } else {
        json_out_raw(&writer->out, name, NULL);
    }
}

/* A period, null where it is not known. */
static void print_period(struct ndjson *writer, const char *name, uint64_t period_ns)
{
    if (period_ns > 0) {
        json_out_u64(&writer->out, name, period_ns);
    } else {
        json_out_raw(&writer->out, name, NULL);
    }
}

static void print_recording(struct ndjson *writer)
{
    const struct profile *profile = writer->profile;
    struct json_out *out = &writer->out;
    cleanup_(json_freep) cJSON *session = cJSON_Parse(profile->session_json);
    name_recording(writer, session);
    begin_row(writer, "recording");
    json_out_string(out, "host",
                    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "host")));
    json_out_string(out, "kernel_release",
                    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "kernel")));
    print_wall(writer, "first_unix_ns", profile->first_ns);
    json_out_u64(out, "duration_ns", profile_span(profile).length_ns);
    print_period(writer, "period_ns", profile_period_ns(profile));
    json_out_u64(out, "samples", profile->sample_count);
    json_out_u64(out, "unselected", profile->unselected_count);
    json_out_raw(out, "books", profile->books_json);
    end_row(writer);
}

static void print_frame(struct ndjson *writer, uint32_t number)
{
    const struct profile_frame *frame = profile_frame(writer->profile, number);
    const struct profile_module *module =
        frame->module == INTERN_NONE ? NULL : &writer->profile->modules[frame->module];
    struct json_out *out = &writer->out;
    writer->is_frame_told[number] = true;
    begin_row(writer, "frame");
    json_out_u64(out, "frame", number);
    json_out_string(out, "name", profile_text(writer->profile, frame->name));
    json_out_string(out, "module",
                    module == NULL ? NULL : profile_text(writer->profile, module->name));
    json_out_string(out, "build_id",
                    module == NULL ? NULL : profile_text(writer->profile, module->build_id));
    json_out_raw(out, "kernel", frame->is_kernel != 0 ? "true" : "false");
    json_out_raw(out, "inlined", frame->is_inlined != 0 ? "true" : "false");
    json_out_string(out, "file", text_or_null(writer, frame->file));
    if (frame->line > 0) {
        json_out_u64(out, "line", frame->line);
    } else {
        json_out_raw(out, "line", NULL);
    }
    end_row(writer);
}

static void print_stack(struct ndjson *writer, uint32_t chain)
{
    size_t count = 0;
    const uint32_t *frames = profile_chain(writer->profile, chain, &count);
    writer->is_stack_told[chain] = true;
    for (size_t i = 0; i < count; i++) {
        if (!writer->is_frame_told[frames[i]]) {
            print_frame(writer, frames[i]);
        }
    }
    begin_row(writer, "stack");
    json_out_u64(&writer->out, "stack", chain);
    json_out_begin(&writer->out, "frames", '[');
    for (size_t i = 0; i < count; i++) {
        json_out_u64(&writer->out, NULL, frames[i]);
    }
    json_out_end(&writer->out, ']');
    end_row(writer);
}

/* A task that has exited, or is of another pid namespace, has no number. */
static void print_number(struct json_out *out, const char *name, uint64_t number)
{
    if (number == PROFILE_PID_EXITED || number == PROFILE_PID_OUTSIDE) {
        json_out_raw(out, name, NULL);
    } else {
        json_out_u64(out, name, number);
    }
}

static void print_owner(struct ndjson *writer, uint32_t number)
{
    const struct profile_owner *owner = profile_owner(writer->profile, number);
    struct json_out *out = &writer->out;
    json_out_string(out, "unit", text_or_null(writer, owner->unit));
    json_out_string(out, "user_unit", text_or_null(writer, owner->user_unit));
    json_out_string(out, "container", text_or_null(writer, owner->container));
    json_out_string(out, "pod", text_or_null(writer, owner->pod));
    if (owner->uid == PROFILE_UID_UNKNOWN) {
        json_out_raw(out, "uid", NULL);
    } else {
        json_out_u64(out, "uid", owner->uid);
    }
}

static void print_sample(struct ndjson *writer, const struct profile_sample *sample)
{
    static const char *const rooted[] = {
        [PROFILE_STACK_NONE] = "none",           [PROFILE_STACK_COMPLETE] = "complete",
        [PROFILE_STACK_TRUNCATED] = "truncated", [PROFILE_STACK_STITCHED] = "stitched",
        [PROFILE_STACK_UNPROVED] = "unproved",
    };
    const struct profile *profile = writer->profile;
    const struct profile_task *task = profile_task(profile, sample->task);
    struct json_out *out = &writer->out;
    if (!writer->is_stack_told[sample->chain]) {
        print_stack(writer, sample->chain);
    }
    begin_row(writer, "sample");
    print_wall(writer, "time_unix_ns", sample->time_ns);
    json_out_u64(out, "boot_ns", sample->time_ns);
    json_out_string(out, "host", profile_host(profile, task->segment));
    json_out_u64(out, "cpu", sample->cpu);
    print_number(out, "pid", task->pid);
    print_number(out, "tid", task->tid);
    json_out_string(out, "command", profile_text(profile, task->process_name));
    json_out_string(out, "thread", text_or_null(writer, task->thread_name));
    print_owner(writer, task->owner);
    json_out_u64(out, "stack", sample->chain);
    json_out_string(out, "rooted", rooted[profile_rooted(sample)]);
    json_out_string(out, "event", profile->event.name);
    json_out_u64(out, "weight", profile_value_of(profile, sample));
    if (profile->event.is_clock) {
        print_period(writer, "value",
                     writer->cost.is_time ? export_cost_of_one(&writer->cost, profile, sample) : 0);
    } else {
        json_out_u64(out, "value", 1);
    }
    end_row(writer);
}

int ndjson_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    (void)options;
    cleanup_(ndjson_done) struct ndjson writer = {
        .profile = profile, .out = {.file = file}, .cost = export_cost_of(profile)};
    writer.has_wall = profile_wall_offset_ns(profile, &writer.wall_offset_ns);
    writer.is_frame_told = calloc(profile->frames.item_count + 1, sizeof *writer.is_frame_told);
    writer.is_stack_told = calloc(profile->chains.item_count + 1, sizeof *writer.is_stack_told);
    if (writer.is_frame_told == NULL || writer.is_stack_told == NULL) {
        return -ENOMEM;
    }
    print_recording(&writer);
    for (size_t i = 0; i < profile->sample_count; i++) {
        print_sample(&writer, &profile->samples[i]);
    }
    return 0;
}
