/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints speedscope's file format: frames that all profiles share, then a sampled profile for each
 * process, its samples in the order of time. A sample weighs what export_cost.h says. The hottest
 * process is the one that is shown first. Readers pass over the member "cpu-profilerd", which has
 * the books.
 */
#include "writers.h"

#include "cleanup.h"
#include "export_books.h"
#include "export_cost.h"
#include "json_out.h"
#include "number_list.h"
#include "sample_order.h"

#include <inttypes.h>
#include <string.h>

#define AHEAD_SAMPLE ((size_t)32) /* so many samples ahead they are fetched, and their stacks */
#define AHEAD_CHAIN  ((size_t)16)

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct speedscope {
    const struct profile *profile;
    const uint32_t *order; /* borrowed; of the samples */
    struct json_out out;
    struct number_list numbers;
    struct export_cost cost;
};

static void print_frame(struct speedscope *writer, uint32_t number)
{
    const struct profile *profile = writer->profile;
    const struct profile_frame *frame = profile_frame(profile, number);
    struct json_out *out = &writer->out;
    json_out_begin(out, NULL, '{');
    json_out_string(out, "name", profile_text(profile, frame->name));
    if (frame->file != INTERN_NONE) {
        json_out_string(out, "file", profile_text(profile, frame->file));
    } else if (frame->module != INTERN_NONE) {
        json_out_string(out, "file", profile_text(profile, profile->modules[frame->module].name));
    }
    if (frame->line > 0) {
        json_out_u64(out, "line", frame->line);
    }
    json_out_end(out, '}');
}

/* Behind those of the profile. */
static uint32_t truncated_frame(const struct speedscope *writer)
{
    return (uint32_t)writer->profile->frames.item_count;
}

static uint32_t lost_frame(const struct speedscope *writer)
{
    return truncated_frame(writer) + 1;
}

static void print_frames(struct speedscope *writer)
{
    static const char *const markers[] = {"[truncated]", "[lost]"};
    struct json_out *out = &writer->out;
    json_out_begin(out, "shared", '{');
    json_out_begin(out, "frames", '[');
    for (size_t i = 0; i < writer->profile->frames.item_count; i++) {
        print_frame(writer, (uint32_t)i);
    }
    for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++) {
        json_out_begin(out, NULL, '{');
        json_out_string(out, "name", markers[i]);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
    json_out_end(out, '}');
}

static void put_stack(struct speedscope *writer, const struct profile_sample *sample)
{
    struct number_list *numbers = &writer->numbers;
    size_t count = 0;
    const uint32_t *frames = profile_chain(writer->profile, sample->chain, &count);
    number_list_open(numbers);
    if (profile_rooted(sample) == PROFILE_STACK_TRUNCATED) {
        number_list_add(numbers, truncated_frame(writer));
    }
    for (; count > 0; count--) {
        number_list_add(numbers, frames[count - 1]);
    }
    number_list_close(numbers);
}

/* Fetches into the CPU's cache what will be needed for the sample so far behind the one `at`. */
static void fetch_ahead(const struct speedscope *writer, size_t at, size_t end)
{
    const struct profile *profile = writer->profile;
    if (end - at > AHEAD_SAMPLE) {
        __builtin_prefetch(&profile->samples[writer->order[at + AHEAD_SAMPLE]]);
    }
    if (end - at > AHEAD_CHAIN) {
        intern_fetch_bytes(&profile->chains,
                           profile->samples[writer->order[at + AHEAD_CHAIN]].chain);
    }
}

static void begin_profile(struct speedscope *writer, const char *name, uint64_t weight)
{
    struct json_out *out = &writer->out;
    json_out_begin(out, NULL, '{');
    json_out_string(out, "type", "sampled");
    json_out_string(out, "name", name);
    json_out_string(out, "unit", writer->cost.is_time ? "nanoseconds" : "none");
    json_out_u64(out, "startValue", 0);
    json_out_u64(out, "endValue", weight);
    number_list_begin(&writer->numbers, out, "samples");
}

/* Ends the list of stacks; a weight for each of them follows, and then end_profile(). */
static void begin_weights(struct speedscope *writer)
{
    number_list_end(&writer->numbers, &writer->out);
    number_list_begin(&writer->numbers, &writer->out, "weights");
}

static void end_profile(struct speedscope *writer)
{
    number_list_end(&writer->numbers, &writer->out);
    json_out_end(&writer->out, '}');
}

/* What so many samples of the order cost. */
static uint64_t sum_costs(const struct speedscope *writer, size_t first, size_t end)
{
    uint64_t sum = 0;
    if (writer->profile->values == NULL && writer->cost.scale > 0) {
        return (end - first) * writer->cost.scale;
    }
    for (size_t i = first; i < end; i++) {
        sum += export_cost_at(&writer->cost, writer->profile, writer->order[i]);
    }
    return sum;
}

static int print_process(struct speedscope *writer, size_t first, size_t end)
{
    const struct profile *profile = writer->profile;
    const struct profile_sample *sample = &profile->samples[writer->order[first]];
    const struct profile_task *task = profile_task(profile, sample->task);
    const char *name = profile_text(profile, task->process_name);
    bool has_pid = task->pid != PROFILE_PID_OUTSIDE && task->pid != PROFILE_PID_EXITED;
    cleanup_(freep) char *title = NULL;
    int r = has_pid ? asprintf(&title, "%s (pid %" PRIu64 ")", name, task->pid)
                    : asprintf(&title, "%s", name);
    if (r < 0) {
        title = NULL;
        return -ENOMEM;
    }
    begin_profile(writer, title, sum_costs(writer, first, end));
    for (size_t i = first; i < end; i++) {
        fetch_ahead(writer, i, end);
        put_stack(writer, &profile->samples[writer->order[i]]);
    }
    begin_weights(writer);
    for (size_t i = first; i < end; i++) {
        number_list_add(&writer->numbers, export_cost_at(&writer->cost, profile, writer->order[i]));
    }
    end_profile(writer);
    return 0;
}

/* Prints the profiles. A viewer refuses a file without any, so an empty recording has an empty one.
 */
static int print_processes(struct speedscope *writer, size_t *ret_hottest)
{
    size_t count = writer->profile->sample_count;
    uint64_t most = 0;
    size_t number = 0;
    int r = 0;
    for (size_t first = 0, end = 0; first < count && r == 0; first = end, number++) {
        end = sample_order_end(writer->profile, writer->order, SAMPLE_ORDER_PROCESS, first);
        r = print_process(writer, first, end);
        uint64_t cost = r < 0 ? 0 : sum_costs(writer, first, end);
        if (cost > most) {
            most = cost;
            *ret_hottest = number;
        }
    }
    if (count == 0) {
        begin_profile(writer, "[no samples]", 0);
        begin_weights(writer);
        end_profile(writer);
    }
    return r;
}

static void print_lost(struct speedscope *writer)
{
    uint64_t weight = export_books_lost_cost(writer->profile, &writer->cost);
    if (weight > 0) {
        begin_profile(writer, "[lost]", weight);
        number_list_open(&writer->numbers);
        number_list_add(&writer->numbers, lost_frame(writer));
        number_list_close(&writer->numbers);
        begin_weights(writer);
        number_list_add(&writer->numbers, weight);
        end_profile(writer);
    }
}

static void print_about(struct speedscope *writer, size_t hottest)
{
    struct json_out *out = &writer->out;
    json_out_u64(out, "activeProfileIndex", hottest);
    json_out_string(out, "exporter", "cpu-profilerd@" CPU_PROFILERD_VERSION);
    json_out_begin(out, "cpu-profilerd", '{');
    if (!writer->profile->event.is_clock) {
        json_out_string(out, "event", writer->profile->event.name);
        json_out_string(out, "unit", writer->profile->event.unit);
    }
    json_out_raw(out, "session", writer->profile->session_json);
    json_out_raw(out, "books", writer->profile->books_json);
    json_out_end(out, '}');
}

int speedscope_print(FILE *file, const struct profile *profile,
                     const struct export_options *options)
{
    cleanup_(freep) uint32_t *order = sample_order(profile, SAMPLE_ORDER_PROCESS);
    struct speedscope writer = {
        .profile = profile,
        .order = order,
        .out = {.file = file},
        .cost = export_cost_of(profile),
    };
    size_t hottest = 0;
    if (order == NULL) {
        return -ENOMEM;
    }
    json_out_begin(&writer.out, NULL, '{');
    json_out_string(&writer.out, "$schema", SCHEMA);
    print_frames(&writer);
    json_out_begin(&writer.out, "profiles", '[');
    int r = print_processes(&writer, &hottest);
    if (options->has_lost_frame) {
        print_lost(&writer);
    }
    json_out_end(&writer.out, ']');
    print_about(&writer, hottest);
    json_out_end(&writer.out, '}');
    (void)fputc('\n', file);
    return r;
}
