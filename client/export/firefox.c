/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints the processed profile of the Firefox Profiler, version 66, which later ones upgrade: what
 * it is, then the threads with their samples in the order of time, then the tables that these refer
 * to, which are made meanwhile. Between two samples of a thread it had one period of CPU time, so
 * the viewer shows how busy it was. Times are milliseconds since the first sample.
 */
#include "writers.h"

#include "cleanup.h"
#include "export_books.h"
#include "export_cost.h"
#include "firefox_tables.h"
#include "number_list.h"
#include "sample_order.h"

#include <inttypes.h>
#include <string.h>

#define VERSION       66
#define GECKO_VERSION 24
#define NS_PER_MS     UINT64_C(1000000)
#define VISIBLE_MAX   ((size_t)16)
#define ID_BYTES      ((size_t)48)
#define AHEAD_SAMPLE  ((size_t)32) /* so many samples ahead they are fetched */

/* The threads whose samples stand for most, the first of them the one with the most. */
struct hottest {
    size_t threads[VISIBLE_MAX];
    uint64_t values[VISIBLE_MAX];
    size_t count;
};

struct firefox {
    const struct profile *profile; /* borrowed */
    struct firefox_tables tables;
    struct json_out out;
    struct number_list numbers;
    const uint32_t *order; /* borrowed; of the samples */
    uint64_t period_ns;
    struct export_cost cost;
    int fault; /* the first -errno */
};

static void print_ms(struct json_out *out, const char *name, uint64_t time_ns)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%" PRIu64 ".%06" PRIu64, time_ns / NS_PER_MS,
                   time_ns % NS_PER_MS);
    json_out_raw(out, name, text);
}

static void take_thread(struct hottest *hottest, size_t thread, uint64_t value)
{
    size_t at = hottest->count < VISIBLE_MAX ? hottest->count++ : VISIBLE_MAX;
    for (; at > 0 && hottest->values[at - 1] < value; at--) {
        if (at < VISIBLE_MAX) {
            hottest->threads[at] = hottest->threads[at - 1];
            hottest->values[at] = hottest->values[at - 1];
        }
    }
    if (at < VISIBLE_MAX) {
        hottest->threads[at] = thread;
        hottest->values[at] = value;
    }
}

/* What so many samples of the order stand for. */
static uint64_t sum_values(const struct firefox *writer, size_t first, size_t end)
{
    uint64_t sum = 0;
    for (size_t i = first; i < end && writer->profile->values != NULL; i++) {
        sum += profile_value(writer->profile, writer->order[i]);
    }
    return writer->profile->values == NULL ? end - first : sum;
}

static void find_hottest(const struct firefox *writer, struct hottest *ret)
{
    *ret = (struct hottest){0};
    for (size_t first = 0, end = 0, thread = 0; first < writer->profile->sample_count;
         first = end, thread++) {
        end = sample_order_end(writer->profile, writer->order, SAMPLE_ORDER_THREAD, first);
        take_thread(ret, thread, sum_values(writer, first, end));
    }
}

static void print_categories(struct json_out *out)
{
    /* In the order of enum firefox_category. */
    static const struct {
        const char *name;
        const char *color;
    } categories[] = {{"Other", "grey"},
                      {"User", "yellow"},
                      {"Kernel", "orange"},
                      {"Code made at run time", "green"}};
    json_out_begin(out, "categories", '[');
    for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++) {
        json_out_begin(out, NULL, '{');
        json_out_string(out, "name", categories[i].name);
        json_out_string(out, "color", categories[i].color);
        json_out_begin(out, "subcategories", '[');
        json_out_string(out, NULL, "Other");
        json_out_end(out, ']');
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

static void print_entry(const char *line, void *userdata)
{
    struct json_out *out = userdata;
    const char *colon = strchr(line, ':');
    json_out_begin(out, NULL, '{');
    json_out_text(out, "label", line, colon == NULL ? strlen(line) : (size_t)(colon - line));
    json_out_string(out, "format", "string");
    json_out_string(out, "value", colon == NULL ? "" : colon + 2);
    json_out_end(out, '}');
}

static void print_books(struct firefox *writer)
{
    struct json_out *out = &writer->out;
    json_out_begin(out, "extra", '[');
    json_out_begin(out, NULL, '{');
    json_out_string(out, "label", "Books of the recording");
    json_out_begin(out, "entries", '[');
    export_books_lines(writer->profile, print_entry, out);
    json_out_end(out, ']');
    json_out_end(out, '}');
    json_out_end(out, ']');
}

static void print_visible(struct firefox *writer)
{
    struct json_out *out = &writer->out;
    struct hottest hottest;
    find_hottest(writer, &hottest);
    if (hottest.count == 0) {
        return;
    }
    json_out_begin(out, "initialVisibleThreads", '[');
    for (size_t i = 0; i < hottest.count; i++) {
        json_out_u64(out, NULL, hottest.threads[i]);
    }
    json_out_end(out, ']');
    json_out_begin(out, "initialSelectedThreads", '[');
    json_out_u64(out, NULL, hottest.threads[0]);
    json_out_end(out, ']');
}

static void print_times(struct firefox *writer)
{
    const struct profile *profile = writer->profile;
    struct json_out *out = &writer->out;
    int64_t offset_ns = 0;
    bool has_wall = profile_wall_offset_ns(profile, &offset_ns);
    uint64_t interval_ns = writer->period_ns > 0 ? writer->period_ns : NS_PER_MS;
    print_ms(out, "interval", interval_ns);
    print_ms(out, "startTime", has_wall ? profile->first_ns + (uint64_t)offset_ns : 0);
    print_ms(out, "profilingStartTime", 0);
    /* The viewer shows what is before the end, and so not a sample that is at it. */
    print_ms(out, "profilingEndTime", profile->last_ns - profile->first_ns + interval_ns);
    json_out_begin(out, "sampleUnits", '{');
    json_out_string(out, "time", "ms");
    json_out_string(out, "eventDelay", "ms");
    json_out_string(out, "threadCPUDelta", "ns");
    json_out_end(out, '}');
}

static void print_meta(struct firefox *writer)
{
    struct json_out *out = &writer->out;
    json_out_begin(out, "meta", '{');
    json_out_u64(out, "preprocessedProfileVersion", VERSION);
    json_out_u64(out, "version", GECKO_VERSION);
    json_out_string(out, "product", "cpu-profilerd");
    json_out_string(out, "importedFrom", "cpu-profilerd " CPU_PROFILERD_VERSION);
    json_out_u64(out, "processType", 0);
    json_out_u64(out, "stackwalk", 1);
    json_out_u64(out, "debug", 0);
    json_out_string(out, "platform", "Linux");
    json_out_string(out, "oscpu", "Linux x86_64");
    print_times(writer);
    json_out_raw(out, "symbolicated", "true");
    json_out_raw(out, "usesOnlyOneStackType", "true");
    json_out_raw(out, "sourceCodeIsNotOnSearchfox", "true");
    print_categories(out);
    json_out_begin(out, "markerSchema", '[');
    json_out_end(out, ']');
    print_visible(writer);
    print_books(writer);
    json_out_end(out, '}');
}

/* A process's or thread's number; tasks of another segment are others. */
static const char *print_id(uint64_t number, uint32_t segment, char *into)
{
    (void)snprintf(into, ID_BYTES, segment > 1 ? "%" PRId64 ".%" PRIu32 : "%" PRId64,
                   (int64_t)number, segment);
    return into;
}

static void begin_thread(struct firefox *writer, const char *process, const char *name,
                         const char *pid, const char *tid)
{
    struct json_out *out = &writer->out;
    json_out_begin(out, NULL, '{');
    json_out_string(out, "processType", "default");
    json_out_string(out, "processName", process);
    json_out_string(out, "name", name);
    json_out_string(out, "pid", pid);
    json_out_string(out, "tid", tid);
    json_out_raw(out, "isMainThread", strcmp(pid, tid) == 0 ? "true" : "false");
    json_out_u64(out, "processStartupTime", 0);
    json_out_raw(out, "processShutdownTime", NULL);
    json_out_u64(out, "registerTime", 0);
    json_out_raw(out, "unregisterTime", NULL);
    json_out_begin(out, "pausedRanges", '[');
    json_out_end(out, ']');
}

static void end_thread(struct firefox *writer)
{
    static const char *const columns[] = {"data",    "name",  "startTime",
                                          "endTime", "phase", "category"};
    struct json_out *out = &writer->out;
    json_out_begin(out, "markers", '{');
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        json_out_begin(out, columns[i], '[');
        json_out_end(out, ']');
    }
    json_out_u64(out, "length", 0);
    json_out_end(out, '}');
    json_out_end(out, '}');
}

static const struct profile_sample *sample_at(const struct firefox *writer, size_t at)
{
    return &writer->profile->samples[writer->order[at]];
}

static void print_stack_column(struct firefox *writer, size_t first, size_t end)
{
    number_list_begin(&writer->numbers, &writer->out, "stack");
    for (size_t i = first; i < end && writer->fault == 0; i++) {
        uint32_t node = 0;
        if (end - i > AHEAD_SAMPLE) {
            __builtin_prefetch(sample_at(writer, i + AHEAD_SAMPLE));
        }
        if (end - i > CHAIN_KEYS_AHEAD) {
            chain_keys_fetch(&writer->tables.stacks, sample_at(writer, i + CHAIN_KEYS_AHEAD));
        }
        writer->fault = firefox_tables_add(&writer->tables, sample_at(writer, i), &node);
        number_list_add(&writer->numbers, node);
    }
    number_list_end(&writer->numbers, &writer->out);
}

/* Whether weights are times: of an event that has these, and where the clock's samples do not all
 * stand for one period. */
static bool weighs_time(const struct firefox *writer)
{
    return writer->profile->event.is_clock ? writer->cost.is_time && writer->cost.scale == 0
                                           : writer->profile->event.is_time;
}

/* What samples stand for: the viewer knows times by their own type, and has no other units. */
static void print_weights(struct firefox *writer, size_t first, size_t end)
{
    const struct profile *profile = writer->profile;
    bool is_time = weighs_time(writer);
    if (profile->values == NULL && !is_time) {
        json_out_raw(&writer->out, "weight", NULL);
        json_out_string(&writer->out, "weightType", "samples");
        return;
    }
    number_list_begin(&writer->numbers, &writer->out, "weight");
    for (size_t i = first; i < end; i++) {
        if (is_time) {
            number_list_add_ms(&writer->numbers,
                               export_cost_at(&writer->cost, profile, writer->order[i]));
        } else {
            number_list_add(&writer->numbers, profile_value(profile, writer->order[i]));
        }
    }
    number_list_end(&writer->numbers, &writer->out);
    json_out_string(&writer->out, "weightType", is_time ? "tracing-ms" : "samples");
}

static void print_samples(struct firefox *writer, size_t first, size_t end)
{
    struct json_out *out = &writer->out;
    uint64_t before_ns = writer->profile->first_ns;
    json_out_begin(out, "samples", '{');
    print_stack_column(writer, first, end);
    number_list_begin(&writer->numbers, out, "timeDeltas");
    for (size_t i = first; i < end; i++) {
        uint64_t time_ns = sample_at(writer, i)->time_ns;
        number_list_add_ms(&writer->numbers, time_ns - before_ns);
        before_ns = time_ns;
    }
    number_list_end(&writer->numbers, out);
    if (writer->profile->event.is_clock && writer->cost.is_time) {
        number_list_begin(&writer->numbers, out, "threadCPUDelta");
        for (size_t i = first; i < end; i++) {
            number_list_add(&writer->numbers, export_cost_of_one(&writer->cost, writer->profile,
                                                                 sample_at(writer, i)));
        }
        number_list_end(&writer->numbers, out);
    }
    print_weights(writer, first, end);
    json_out_u64(out, "length", end - first);
    json_out_end(out, '}');
}

/* A process's name with its unit and container, "nginx (nginx.service)"; the caller frees it. NULL
 * where there is no memory. */
static char *print_process(const struct profile *profile, const struct profile_sample *sample)
{
    const struct profile_task *task = profile_task(profile, sample->task);
    const char *name = profile_text(profile, task->process_name);
    char *text = NULL;
    int bytes =
        profile_owner_is_named(profile, task->owner)
            ? asprintf(&text, "%s (%s)", name,
                       profile_text(profile, profile_label(profile, sample, PROFILE_LABEL_UNIT)))
            : asprintf(&text, "%s", name);
    return bytes < 0 ? NULL : text;
}

/* Names, and whose it is, are those that the thread had last. */
static void print_thread(struct firefox *writer, size_t first, size_t end)
{
    const struct profile *profile = writer->profile;
    const struct profile_sample *last = sample_at(writer, end - 1);
    const struct profile_task *task = profile_task(profile, last->task);
    cleanup_(freep) char *process = print_process(profile, last);
    if (process == NULL) {
        writer->fault = -ENOMEM;
        return;
    }
    uint32_t name = task->thread_name;
    char pid[ID_BYTES];
    char tid[ID_BYTES];
    begin_thread(writer, process,
                 profile_text(profile, name == INTERN_NONE ? task->process_name : name),
                 print_id(task->pid, task->segment, pid), print_id(task->tid, task->segment, tid));
    print_samples(writer, first, end);
    end_thread(writer);
}

static void print_lost(struct firefox *writer)
{
    struct json_out *out = &writer->out;
    uint64_t lost = export_books_lost(writer->profile);
    uint32_t node = 0;
    writer->fault = firefox_tables_add_lost(&writer->tables, &node);
    begin_thread(writer, "[lost]", "[lost]", "[lost]", "[lost]");
    json_out_begin(out, "samples", '{');
    json_out_begin(out, "stack", '[');
    json_out_u64(out, NULL, node);
    json_out_end(out, ']');
    json_out_begin(out, "timeDeltas", '[');
    print_ms(out, NULL, writer->profile->last_ns - writer->profile->first_ns);
    json_out_end(out, ']');
    json_out_begin(out, "weight", '[');
    if (weighs_time(writer)) {
        print_ms(out, NULL, export_books_lost_cost(writer->profile, &writer->cost));
    } else {
        json_out_u64(out, NULL, lost);
    }
    json_out_end(out, ']');
    json_out_string(out, "weightType", weighs_time(writer) ? "tracing-ms" : "samples");
    json_out_u64(out, "length", 1);
    json_out_end(out, '}');
    end_thread(writer);
}

/* The viewer opens no profile without a thread. */
static void print_no_samples(struct firefox *writer)
{
    begin_thread(writer, "[no samples]", "[no samples]", "[no samples]", "[no samples]");
    print_samples(writer, 0, 0);
    end_thread(writer);
}

static void firefox_done(struct firefox *writer)
{
    firefox_tables_done(&writer->tables);
}

int firefox_print(FILE *file, const struct profile *profile, const struct export_options *options)
{
    cleanup_(freep) uint32_t *order = sample_order(profile, SAMPLE_ORDER_THREAD);
    cleanup_(firefox_done) struct firefox writer = {
        .profile = profile,
        .tables = {.profile = profile},
        .out = {.file = file},
        .order = order,
        .period_ns = profile->event.is_clock ? profile_period_ns(profile) : 0,
        .cost = export_cost_of(profile),
    };
    if (order == NULL) {
        return -ENOMEM;
    }
    json_out_begin(&writer.out, NULL, '{');
    print_meta(&writer);
    json_out_begin(&writer.out, "threads", '[');
    for (size_t first = 0, end = 0; first < profile->sample_count && writer.fault == 0;
         first = end) {
        end = sample_order_end(profile, order, SAMPLE_ORDER_THREAD, first);
        print_thread(&writer, first, end);
    }
    if (options->has_lost_frame && export_books_lost(profile) > 0 && writer.fault == 0) {
        print_lost(&writer);
    } else if (profile->sample_count == 0) {
        print_no_samples(&writer);
    }
    json_out_end(&writer.out, ']');
    json_out_begin(&writer.out, "pages", '[');
    json_out_end(&writer.out, ']');
    firefox_tables_print(&writer.tables, &writer.out);
    json_out_end(&writer.out, '}');
    (void)fputc('\n', file);
    return writer.fault;
}
