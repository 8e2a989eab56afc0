/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints the page. It is the same text for all recordings, with the data in the middle of it. Names
 * are only in the compressed data, which no parser of HTML reads, and the page shows them as text.
 * page/unpack.js reads what this writes.
 *
 * The sections: an object of JSON; parents of the nodes, as differences; their functions; and for
 * each recording the nodes in which several samples end, the most frequent one first, and for each
 * CPU columns of its samples in the order of time: the gap to the one before, less the period; the
 * gap from the task before; the node; and, where samples do not stand for 1 each, what they stand
 * for. The node is 1 more than its place in that list, or 0 and, in
 * a column of its own, the gap from the last such node. Numbers of new nodes grow with the samples,
 * so that a stack that is met only once takes two or three bytes.
 */
#include "flame_data.h"

#include "cleanup.h"
#include "compare.h"
#include "json_out.h"
#include "packed.h"

#include <errno.h>
#include <string.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS 1000000
#define DATA_MARK "<!--data-->"
#define RARE      UINT32_MAX
#define AHEAD     ((size_t)16) /* samples whose place among millions of nodes is fetched early */

extern const char flame_page[];

static void print_functions(struct json_out *out, const struct flame *flame)
{
    json_out_begin(out, "functions", '[');
    for (size_t i = 0; i < flame->functions.item_count; i++) {
        const struct flame_function *function = flame_function(flame, (uint32_t)i);
        const uint32_t members[] = {function->name, flame->modules[i], function->file,
                                    function->line, function->kind};
        for (size_t j = 0; j < sizeof members / sizeof *members; j++) {
            json_out_i64(out, NULL, members[j] == INTERN_NONE ? -1 : (int64_t)members[j]);
        }
    }
    json_out_end(out, ']');
}

static void print_tasks(struct json_out *out, const struct flame *flame)
{
    json_out_begin(out, "tasks", '[');
    for (size_t i = 0; i < flame->tasks.item_count; i++) {
        const struct flame_task *task = flame_task(flame, (uint32_t)i);
        const uint64_t members[] = {task->segment, task->pid,    task->tid,
                                    task->process, task->thread, task->unit};
        for (size_t j = 0; j < sizeof members / sizeof *members; j++) {
            json_out_u64(out, NULL, members[j]);
        }
    }
    json_out_end(out, ']');
}

static uint64_t offset_us(const struct flame_recording *recording, uint64_t time_ns)
{
    return time_ns < recording->origin_ns ? 0 : (time_ns - recording->origin_ns) / NS_PER_US;
}

static void print_drops(struct json_out *out, const struct flame_recording *recording)
{
    json_out_begin(out, "drops", '[');
    for (size_t i = 0; i < recording->drop_count; i++) {
        const struct profile_drop *drop = &recording->drops[i];
        json_out_begin(out, NULL, '{');
        json_out_u64(out, "cpu", drop->cpu);
        json_out_u64(out, "first_us", offset_us(recording, drop->first_ns));
        json_out_u64(out, "last_us", offset_us(recording, drop->last_ns));
        json_out_u64(out, "count", drop->record_count);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

static void print_cpus(struct json_out *out, const struct flame_recording *recording)
{
    json_out_begin(out, "cpus", '[');
    for (size_t i = 0; i < recording->group_count; i++) {
        json_out_begin(out, NULL, '{');
        json_out_u64(out, "cpu", recording->groups[i].number);
        json_out_u64(out, "count", recording->groups[i].count);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

static void print_recording(struct json_out *out, const struct flame_recording *recording)
{
    const struct profile_span span = profile_span(recording->profile);
    json_out_begin(out, NULL, '{');
    json_out_string(out, "name", recording->name);
    if (recording->host != NULL && recording->what != NULL) {
        json_out_string(out, "host", recording->host);
        json_out_string(out, "what", recording->what);
    }
    json_out_u64(out, "side", recording->side);
    if (!recording->profile->event.is_clock) {
        json_out_string(out, "event", recording->profile->event.name);
        json_out_string(out, "unit", recording->profile->event.unit);
    }
    if (recording->profile->values != NULL) {
        json_out_raw(out, "has_values", "true");
    }
    json_out_u64(out, "period_ns", recording->period_ns);
    json_out_u64(out, "length_ns", span.length_ns);
    json_out_raw(out, "is_whole", recording->is_whole ? "true" : "false");
    json_out_u64(out, "unselected", recording->unselected_count);
    json_out_u64(out, "left_out", recording->left_out_count);
    json_out_begin(out, "damages", '[');
    if (recording->is_truncated) {
        json_out_string(out, NULL, "the recording is cut off");
    }
    if (recording->is_damaged) {
        json_out_string(out, NULL, "the recording is damaged");
    }
    json_out_end(out, ']');
    int64_t began_ns = 0;
    if (recording->has_wall_offset &&
        !__builtin_add_overflow(span.begin_ns, recording->wall_offset_ns, &began_ns)) {
        json_out_i64(out, "began_unix_ms", began_ns / NS_PER_MS);
    }
    json_out_raw(out, "books", recording->books_json);
    print_drops(out, recording);
    print_cpus(out, recording);
    json_out_end(out, '}');
}

static void print_verdict(struct json_out *out, const struct flame_verdict *verdict)
{
    json_out_begin(out, "diff", '{');
    json_out_string(out, "head", verdict->head);
    json_out_string(out, "warnings", verdict->warnings);
    json_out_raw(out, "result", verdict->json);
    json_out_end(out, '}');
}

/* The object. Returned: free(). */
static int print_head(const struct flame *flame, const struct flame_verdict *verdict,
                      enum flame_by by, char **ret, size_t *ret_bytes)
{
    FILE *file = open_memstream(ret, ret_bytes);
    struct json_out out = {.file = file};
    if (file == NULL) {
        return -ENOMEM;
    }
    json_out_begin(&out, NULL, '{');
    json_out_string(&out, "by", flame_by_name(by));
    if (flame->recording_count > 1 && !flame->is_comparison) {
        json_out_raw(&out, "is_switch", "true");
    }
    json_out_begin(&out, "texts", '[');
    for (size_t i = 0; i < flame->texts.item_count; i++) {
        json_out_string(&out, NULL, intern_text(&flame->texts, (uint32_t)i));
    }
    json_out_end(&out, ']');
    print_functions(&out, flame);
    print_tasks(&out, flame);
    json_out_begin(&out, "recordings", '[');
    for (size_t i = 0; i < flame->recording_count; i++) {
        print_recording(&out, &flame->recordings[i]);
    }
    json_out_end(&out, ']');
    if (verdict != NULL) {
        print_verdict(&out, verdict);
    }
    json_out_end(&out, '}');
    bool is_bad = ferror(file) != 0;
    return fclose(file) != 0 || is_bad ? -ENOMEM : 0;
}

static void put_column(struct packed *packed, const struct column *column)
{
    packed_put(packed, column->bytes, column->size_bytes);
}

static int put_nodes(struct packed *packed, const struct flame *flame)
{
    cleanup_(column_done) struct column parents = {0};
    cleanup_(column_done) struct column functions = {0};
    int r = 0;
    for (uint32_t i = 1; i < flame->nodes.count && r == 0; i++) {
        const struct flame_node *node = &flame->nodes.nodes[i];
        r = column_put(&parents, i - node->parent);
        r = r < 0 ? r : column_put(&functions, node->function);
    }
    put_column(packed, &parents);
    put_column(packed, &functions);
    return r;
}

/* How often nodes are where samples end. */
struct endings {
    uint64_t *counts;   /* owned; by node */
    uint32_t *frequent; /* owned; nodes in which several do, the most frequent first */
    size_t frequent_count;
    uint32_t *place_of; /* owned; by node: in `frequent`, or RARE */
};

static void endings_done(struct endings *endings)
{
    free(endings->counts);
    free(endings->frequent);
    free(endings->place_of);
}

static int compare_endings(const void *left, const void *right, void *userdata)
{
    const uint64_t *counts = userdata;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    int r = compare_u64(counts[b], counts[a]);
    return r != 0 ? r : compare_u64(a, b);
}

static int find_endings(struct endings *endings, const struct flame *flame,
                        const struct flame_recording *recording)
{
    size_t count = flame->nodes.count;
    endings->counts = calloc(count, sizeof *endings->counts);
    endings->frequent = malloc(count * sizeof *endings->frequent);
    endings->place_of = malloc(count * sizeof *endings->place_of);
    if (endings->counts == NULL || endings->frequent == NULL || endings->place_of == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < recording->sample_count; i++) {
        endings->counts[recording->nodes[i]]++;
    }
    for (uint32_t i = 0; i < count; i++) {
        endings->place_of[i] = RARE;
        if (endings->counts[i] > 1) {
            endings->frequent[endings->frequent_count++] = i;
        }
    }
    qsort_r(endings->frequent, endings->frequent_count, sizeof *endings->frequent, compare_endings,
            endings->counts);
    for (uint32_t i = 0; i < endings->frequent_count; i++) {
        endings->place_of[endings->frequent[i]] = i;
    }
    return 0;
}

/* The columns of a CPU, and what stood in them last. */
struct sample_columns {
    struct column times;
    struct column tasks;
    struct column nodes;
    struct column rare;
    struct column values;
    uint64_t time_us;
    uint32_t task;
    uint32_t node;
};

static void sample_columns_done(struct sample_columns *columns)
{
    column_done(&columns->times);
    column_done(&columns->tasks);
    column_done(&columns->nodes);
    column_done(&columns->rare);
    column_done(&columns->values);
}

static int put_sample(struct sample_columns *columns, const struct endings *endings,
                      const struct flame_sample *sample, uint64_t period_us)
{
    int64_t gap_us = (int64_t)(sample->time_us - columns->time_us) - (int64_t)period_us;
    uint32_t place = endings->place_of[sample->node];
    int r = column_put_signed(&columns->times, gap_us);
    r = r < 0 ? r : column_put_signed(&columns->tasks, (int64_t)sample->task - columns->task);
    r = r < 0 ? r : column_put(&columns->nodes, place == RARE ? 0 : (uint64_t)place + 1);
    if (r == 0 && place == RARE) {
        r = column_put_signed(&columns->rare, (int64_t)sample->node - columns->node);
        columns->node = sample->node;
    }
    columns->time_us = sample->time_us;
    columns->task = sample->task;
    return r;
}

/* The samples of one CPU. */
static int put_cpu(struct packed *packed, const struct endings *endings,
                   const struct flame_recording *recording, const struct flame_group *cpu,
                   uint64_t period_us)
{
    cleanup_(sample_columns_done) struct sample_columns columns = {0};
    bool has_values = recording->profile->values != NULL;
    int r = 0;
    for (size_t i = 0; i < cpu->count && r == 0; i++) {
        if (i + AHEAD < cpu->count) {
            __builtin_prefetch(&endings->place_of[recording->nodes[cpu->first + i + AHEAD]]);
        }
        const struct flame_sample sample = flame_sample(recording, cpu->first + i);
        r = put_sample(&columns, endings, &sample, period_us);
        if (r == 0 && has_values) {
            r = column_put(&columns.values, flame_value(recording, cpu->first + i));
        }
    }
    put_column(packed, &columns.times);
    put_column(packed, &columns.tasks);
    put_column(packed, &columns.nodes);
    put_column(packed, &columns.rare);
    if (has_values) {
        put_column(packed, &columns.values);
    }
    return r;
}

static int put_recording(struct packed *packed, const struct flame *flame,
                         const struct flame_recording *recording)
{
    uint64_t period_us = recording->period_ns / NS_PER_US;
    cleanup_(endings_done) struct endings endings = {0};
    cleanup_(column_done) struct column frequent = {0};
    int r = find_endings(&endings, flame, recording);
    for (size_t i = 0; i < endings.frequent_count && r == 0; i++) {
        r = column_put(&frequent, endings.frequent[i]);
    }
    put_column(packed, &frequent);
    for (size_t i = 0; i < recording->group_count && r == 0; i++) {
        r = put_cpu(packed, &endings, recording, &recording->groups[i], period_us);
    }
    return r;
}

static int put_data(FILE *file, const struct flame *flame, const struct flame_verdict *verdict,
                    enum flame_by by)
{
    cleanup_(packed_freep) struct packed *packed = packed_new(file);
    cleanup_(freep) char *head = NULL;
    size_t head_bytes = 0;
    int r = packed == NULL ? -ENOMEM : print_head(flame, verdict, by, &head, &head_bytes);
    if (r < 0) {
        return r;
    }
    packed_put(packed, head, head_bytes);
    r = put_nodes(packed, flame);
    for (size_t i = 0; i < flame->recording_count && r == 0; i++) {
        r = put_recording(packed, flame, &flame->recordings[i]);
    }
    packed_end(packed);
    return r;
}

int flamegraph_print_difference(FILE *file, const struct flame *flame,
                                const struct flame_verdict *verdict, enum flame_by by)
{
    const char *data = strstr(flame_page, DATA_MARK);
    (void)fwrite(flame_page, 1, (size_t)(data - flame_page), file);
    int r = put_data(file, flame, verdict, by);
    (void)fputs(data + strlen(DATA_MARK), file);
    return r;
}

int flamegraph_print_page(FILE *file, const struct flame_source *sources, size_t count,
                          enum flame_pair pair, enum flame_by by)
{
    cleanup_(flame_done) struct flame flame = {.is_comparison =
                                                   count > 1 && pair == FLAME_COMPARED};
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        r = flame_add(&flame, &sources[i], i, FLAME_BY_NOTHING);
    }
    return r < 0 ? r : flamegraph_print_difference(file, &flame, NULL, by);
}

struct flame *flamegraph_new(void)
{
    struct flame *flame = calloc(1, sizeof *flame);
    if (flame != NULL) {
        flame->is_comparison = true;
    }
    return flame;
}

void flamegraph_freep(struct flame **flame)
{
    if (*flame != NULL) {
        flame_done(*flame);
        free(*flame);
        *flame = NULL;
    }
}

int flamegraph_add(struct flame *flame, const struct flame_source *source, size_t side)
{
    return flame_add(flame, source, side, FLAME_BY_NOTHING);
}
