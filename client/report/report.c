/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts samples into the rows of a report. A row has a key, which is interned, so the number of a
 * key is the number of its row. Functions and modules are counted once for each different chain of
 * frames, processes and threads once for each task, CPUs once for each sample.
 */
#include "report.h"

#include "cleanup.h"
#include "compare.h"
#include "functions.h"
#include "grow.h"

#include <string.h>

static const char *const by_names[] = {
    [REPORT_BY_FUNCTION] = "function",   [REPORT_BY_MODULE] = "module",
    [REPORT_BY_PROCESS] = "process",     [REPORT_BY_COMMAND] = "command",
    [REPORT_BY_THREAD] = "thread",       [REPORT_BY_CPU] = "cpu",
    [REPORT_BY_LINE] = "line",           [REPORT_BY_UNIT] = "unit",
    [REPORT_BY_CONTAINER] = "container", [REPORT_BY_USER] = "user",
};

/* Both are padded by hand, since their bytes are keys. */
struct row_key {
    uint64_t pid;
    uint64_t tid;
    uint32_t name;
    uint32_t process;
    uint32_t cpu;
    uint32_t host;
};

struct process_key {
    uint64_t pid;
    uint32_t segment;
    uint32_t name;
    uint32_t row;
    uint32_t zero;
};

struct builder {
    const struct profile *profile;
    bool has_hosts;
    struct report *report;
    struct intern keys;      /* struct row_key */
    struct intern processes; /* struct process_key; of commands */
    size_t row_capacity;
    struct functions functions; /* an item's number is its row's */
    uint64_t *chain_counts;     /* owned; by chain */
    uint32_t *last_chain;       /* owned; by row: the chain that counted it last, + 1 */
};

static void builder_done(struct builder *builder)
{
    intern_done(&builder->keys);
    intern_done(&builder->processes);
    functions_done(&builder->functions);
    free(builder->chain_counts);
    free(builder->last_chain);
}

const char *report_by_name(size_t by)
{
    return by < sizeof by_names / sizeof by_names[0] ? by_names[by] : NULL;
}

bool report_counts_processes(enum report_by by)
{
    return by == REPORT_BY_COMMAND || by == REPORT_BY_UNIT || by == REPORT_BY_CONTAINER ||
           by == REPORT_BY_USER;
}

void report_done(struct report *report)
{
    free(report->rows);
    free(report->keys);
    free(report->series_counts);
    *report = (struct report){0};
}

/* The row of a key, made when it is first met. */
static int find_row(struct builder *builder, const struct row_key *key,
                    const struct report_row *initial, uint32_t *ret_row)
{
    struct report *report = builder->report;
    int r = intern_add(&builder->keys, key, sizeof *key, ret_row);
    if (r < 0 || *ret_row < report->row_count) {
        return r;
    }
    r = grow(report->rows, builder->row_capacity, report->row_count + 1);
    if (r == 0) {
        report->rows[report->row_count] = *initial;
        report->rows[report->row_count++].key = *ret_row;
    }
    return r;
}

static int make_function_rows(struct builder *builder)
{
    struct report *report = builder->report;
    int r = functions_find(builder->profile,
                           report->by == REPORT_BY_MODULE ? FUNCTIONS_OF_MODULES : FUNCTIONS_EACH,
                           &builder->functions);
    if (r < 0) {
        return r;
    }
    report->row_count = builder->functions.items.item_count;
    report->rows = calloc(report->row_count + 1, sizeof *report->rows);
    if (report->rows == NULL) {
        report->row_count = 0;
        return -ENOMEM;
    }
    for (size_t i = 0; i < report->row_count; i++) {
        const struct function *function = functions_get(&builder->functions, (uint32_t)i);
        report->rows[i] = (struct report_row){
            .name = function->name,
            .module = function->module,
            .build_id = function->build_id,
            .process = INTERN_NONE,
            .host = INTERN_NONE,
            .file = function->file,
            .line = function->line,
            .key = (uint32_t)i,
        };
    }
    return 0;
}

uint32_t report_key(const struct report *report, const struct profile *profile, size_t sample)
{
    switch (report->keys_are_of) {
    case REPORT_KEYS_OF_CHAINS:
        return report->keys[profile->samples[sample].chain];
    case REPORT_KEYS_OF_TASKS:
        return report->keys[profile->samples[sample].task];
    case REPORT_KEYS_OF_SAMPLES:
        break;
    }
    return report->keys[sample];
}

/* Counts a chain of frames that `count` samples have. Returns the row that they are in. */
static uint32_t count_chain(struct builder *builder, uint32_t chain, uint64_t count)
{
    size_t frame_count = 0;
    const uint32_t *frames = profile_chain(builder->profile, chain, &frame_count);
    struct report_row *leaf = &builder->report->rows[builder->functions.of_frame[frames[0]]];
    leaf->self += count;
    leaf->self_inlined += profile_frame(builder->profile, frames[0])->is_inlined != 0 ? count : 0;
    for (size_t i = 0; i < frame_count; i++) {
        uint32_t row = builder->functions.of_frame[frames[i]];
        if (builder->last_chain[row] != chain + 1) {
            builder->last_chain[row] = chain + 1;
            builder->report->rows[row].total += count;
        }
    }
    return builder->functions.of_frame[frames[0]];
}

static int build_from_frames(struct builder *builder)
{
    const struct profile *profile = builder->profile;
    size_t chain_count = profile->chains.item_count;
    int r = make_function_rows(builder);
    if (r < 0) {
        return r;
    }
    builder->report->keys = calloc(chain_count + 1, sizeof *builder->report->keys);
    builder->chain_counts = calloc(chain_count + 1, sizeof *builder->chain_counts);
    builder->last_chain = calloc(builder->report->row_count + 1, sizeof *builder->last_chain);
    if (builder->report->keys == NULL || builder->chain_counts == NULL ||
        builder->last_chain == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        builder->chain_counts[profile->samples[i].chain] += profile_value(profile, i);
    }
    builder->report->keys_are_of = REPORT_KEYS_OF_CHAINS;
    for (size_t i = 0; i < chain_count; i++) {
        if (builder->chain_counts[i] > 0) {
            builder->report->keys[i] = count_chain(builder, (uint32_t)i, builder->chain_counts[i]);
        }
    }
    return 0;
}

/* The host of a row of one machine's: a pid or a CPU means nothing without it. */
static uint32_t host_of(const struct builder *builder, const struct profile_task *task)
{
    const enum report_by by = builder->report->by;
    const bool is_of_one = by == REPORT_BY_PROCESS || by == REPORT_BY_THREAD || by == REPORT_BY_CPU;
    return is_of_one && builder->has_hosts && task->segment < builder->profile->host_count
               ? builder->profile->hosts[task->segment]
               : INTERN_NONE;
}

/* The row that a sample is in, as it begins. */
static struct report_row describe(const struct builder *builder,
                                  const struct profile_sample *sample)
{
    const struct profile_task *task = profile_task(builder->profile, sample->task);
    struct report_row row = {
        .name = task->process_name,
        .module = INTERN_NONE,
        .build_id = INTERN_NONE,
        .process = task->process_name,
        .host = host_of(builder, task),
        .file = INTERN_NONE,
    };
    switch (builder->report->by) {
    case REPORT_BY_CPU:
        row.name = INTERN_NONE;
        row.process = INTERN_NONE;
        row.cpu = sample->cpu;
        break;
    case REPORT_BY_THREAD: {
        uint32_t name = task->thread_name;
        /* A leader may be told as the process only. */
        row.name = name == INTERN_NONE ? task->process_name : name;
        row.has_tid = true;
        row.tid = task->tid;
        row.has_pid = true;
        row.pid = task->pid;
        break;
    }
    case REPORT_BY_PROCESS:
        row.has_pid = true;
        row.pid = task->pid;
        break;
    case REPORT_BY_UNIT:
        row.name = profile_label(builder->profile, sample, PROFILE_LABEL_UNIT);
        row.process = INTERN_NONE;
        break;
    case REPORT_BY_CONTAINER:
        row.name = profile_label(builder->profile, sample, PROFILE_LABEL_CONTAINER);
        row.process = INTERN_NONE;
        break;
    case REPORT_BY_USER:
        row.name = profile_label(builder->profile, sample, PROFILE_LABEL_USER);
        row.process = INTERN_NONE;
        break;
    case REPORT_BY_COMMAND:
    case REPORT_BY_FUNCTION:
    case REPORT_BY_MODULE:
    case REPORT_BY_LINE:
        break;
    }
    return row;
}

/* Whether a sample's process is in a row for the first time. */
static int is_new_process(struct builder *builder, const struct profile_sample *sample,
                          uint32_t row, bool *ret_is_new)
{
    const struct profile_task *task = profile_task(builder->profile, sample->task);
    const struct process_key key = {
        .pid = task->pid, .segment = task->segment, .name = task->process_name, .row = row};
    uint32_t item = 0;
    size_t known_count = builder->processes.item_count;
    int r = intern_add(&builder->processes, &key, sizeof key, &item);
    *ret_is_new = item == known_count;
    return r;
}

/* Finds the row of a sample, and counts its process there. */
static int find_sample_row(struct builder *builder, const struct profile_sample *sample,
                           uint32_t *ret_row)
{
    struct report_row row = describe(builder, sample);
    struct row_key key = {
        .pid = row.pid,
        .tid = row.tid,
        .cpu = row.cpu,
        .name = row.name,
        .process = row.process,
        .host = row.host,
    };
    bool is_new = false;
    int r = find_row(builder, &key, &row, ret_row);
    if (r == 0 && report_counts_processes(builder->report->by)) {
        r = is_new_process(builder, sample, *ret_row, &is_new);
    }
    if (r == 0) {
        builder->report->rows[*ret_row].process_count += is_new;
    }
    return r;
}

static void count_in(struct report *report, uint32_t row, uint64_t value)
{
    report->rows[row].self += value;
    report->rows[row].total += value;
}

static int build_from_tasks(struct builder *builder)
{
    const struct profile *profile = builder->profile;
    size_t task_count = profile->tasks.item_count;
    uint32_t *keys = calloc(task_count + 1, sizeof *keys);
    builder->report->keys = keys;
    builder->report->keys_are_of = REPORT_KEYS_OF_TASKS;
    if (keys == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < task_count; i++) {
        keys[i] = INTERN_NONE;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        if (keys[sample->task] == INTERN_NONE &&
            find_sample_row(builder, sample, &keys[sample->task]) < 0) {
            return -ENOMEM;
        }
        count_in(builder->report, keys[sample->task], profile_value(profile, i));
    }
    return 0;
}

static int build_from_samples(struct builder *builder)
{
    const struct profile *profile = builder->profile;
    int r = 0;
    builder->report->keys = calloc(profile->sample_count + 1, sizeof *builder->report->keys);
    builder->report->keys_are_of = REPORT_KEYS_OF_SAMPLES;
    if (builder->report->keys == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        r = find_sample_row(builder, &profile->samples[i], &builder->report->keys[i]);
        if (r == 0) {
            count_in(builder->report, builder->report->keys[i], profile_value(profile, i));
        }
    }
    return r;
}

struct order {
    const struct profile *profile;
    enum report_sort sort;
};

static int compare_rows(const void *left, const void *right, void *userdata)
{
    const struct report_row *a = left;
    const struct report_row *b = right;
    const struct order *order = userdata;
    const struct profile *profile = order->profile;
    int by_self = compare_u64(b->self, a->self);
    int by_total = compare_u64(b->total, a->total);
    int r = order->sort == REPORT_SORT_SELF ? by_self : by_total;
    r = r == 0 ? by_self : r;
    r = r == 0 ? by_total : r;
    if (r == 0 && a->name != INTERN_NONE && b->name != INTERN_NONE) {
        r = strcmp(profile_text(profile, a->name), profile_text(profile, b->name));
    }
    r = r == 0 ? compare_u64(a->pid, b->pid) : r;
    r = r == 0 ? compare_u64(a->tid, b->tid) : r;
    r = r == 0 ? compare_u64(a->module, b->module) : r;
    r = r == 0 ? compare_u64(a->build_id, b->build_id) : r;
    r = r == 0 ? compare_u64(a->file, b->file) : r;
    r = r == 0 ? compare_u64(a->cpu, b->cpu) : r;
    r = r == 0 ? compare_u64(a->host, b->host) : r;
    return r == 0 ? compare_u64(a->line, b->line) : r;
}

/* Frames that are in no sample's stack have rows too; they go. */
static void drop_empty_rows(struct report *report)
{
    size_t kept = 0;
    for (size_t i = 0; i < report->row_count; i++) {
        if (report->rows[i].total > 0) {
            report->rows[kept++] = report->rows[i];
        }
    }
    report->row_count = kept;
}

int report_build(const struct profile *profile, enum report_by by, enum report_sort sort,
                 struct report *ret)
{
    *ret = (struct report){.by = by, .sort = sort, .total = profile_total(profile)};
    cleanup_(builder_done) struct builder builder = {
        .profile = profile, .has_hosts = profile_has_hosts(profile), .report = ret};
    int r = 0;
    switch (by) {
    case REPORT_BY_FUNCTION:
    case REPORT_BY_MODULE:
    case REPORT_BY_LINE:
        r = build_from_frames(&builder);
        break;
    case REPORT_BY_PROCESS:
    case REPORT_BY_COMMAND:
    case REPORT_BY_THREAD:
    case REPORT_BY_UNIT:
    case REPORT_BY_CONTAINER:
    case REPORT_BY_USER:
        r = build_from_tasks(&builder);
        break;
    case REPORT_BY_CPU:
        r = build_from_samples(&builder);
        break;
    }
    if (r < 0) {
        return r;
    }
    drop_empty_rows(ret);
    if (ret->row_count > 0) {
        struct order order = {.profile = profile, .sort = sort};
        qsort_r(ret->rows, ret->row_count, sizeof *ret->rows, compare_rows, &order);
    }
    return 0;
}
