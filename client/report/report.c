/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counts samples into the rows of a report. A row has a key, which is interned, so the number of a
 * key is the number of its row. Functions and modules are counted once for each different chain of
 * frames, processes and threads once for each sample.
 */
#include "report.h"

#include "cleanup.h"
#include "grow.h"

#include <string.h>

static const char *const by_names[] = {
    [REPORT_BY_FUNCTION] = "function",
    [REPORT_BY_MODULE] = "module",
    [REPORT_BY_PROCESS] = "process",
    [REPORT_BY_THREAD] = "thread",
};

struct row_key {
    uint64_t pid;
    uint64_t tid;
    uint32_t name;
    uint32_t module_or_process;
    uint32_t file;
    uint32_t line;
};

struct builder {
    const struct profile *profile;
    struct report *report;
    struct intern keys;
    size_t row_capacity;
    uint32_t *row_of_frame; /* owned; by frame; functions and modules only */
    uint64_t *chain_counts; /* owned; by chain */
    uint32_t *last_chain;   /* owned; by row: the chain that counted it last, + 1 */
};

static void builder_done(struct builder *builder)
{
    intern_done(&builder->keys);
    free(builder->row_of_frame);
    free(builder->chain_counts);
    free(builder->last_chain);
}

bool report_by_parse(const char *name, enum report_by *ret)
{
    for (size_t i = 0; i < sizeof by_names / sizeof by_names[0]; i++) {
        if (strcmp(name, by_names[i]) == 0) {
            *ret = (enum report_by)i;
            return true;
        }
    }
    return false;
}

const char *report_by_name(enum report_by by)
{
    return by_names[by];
}

void report_done(struct report *report)
{
    free(report->rows);
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
        report->rows[report->row_count++] = *initial;
    }
    return r;
}

static int find_frame_rows(struct builder *builder)
{
    const struct profile *profile = builder->profile;
    size_t frame_count = profile->frames.item_count;
    builder->row_of_frame = calloc(frame_count + 1, sizeof *builder->row_of_frame);
    int r = builder->row_of_frame == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < frame_count && r == 0; i++) {
        const struct profile_frame *frame = profile_frame(profile, (uint32_t)i);
        struct report_row row = {
            .name = frame->name,
            .module = INTERN_NONE,
            .process = INTERN_NONE,
            .file = INTERN_NONE,
        };
        if (builder->report->by == REPORT_BY_FUNCTION) {
            row.file = frame->file;
            row.line = frame->line;
        }
        if (frame->module != INTERN_NONE) {
            const struct profile_module *module = &profile->modules[frame->module];
            row.module = module->name;
            row.name = builder->report->by == REPORT_BY_MODULE ? module->basename : frame->name;
        }
        struct row_key key = {
            .name = row.name,
            .module_or_process = row.module,
            .file = row.file,
            .line = row.line,
        };
        r = find_row(builder, &key, &row, &builder->row_of_frame[i]);
    }
    return r;
}

/* Counts a chain of frames that `count` samples have. */
static void count_chain(struct builder *builder, uint32_t chain, uint64_t count)
{
    size_t frame_count = 0;
    const uint32_t *frames = profile_chain(builder->profile, chain, &frame_count);
    struct report_row *leaf = &builder->report->rows[builder->row_of_frame[frames[0]]];
    leaf->self += count;
    leaf->self_inlined += profile_frame(builder->profile, frames[0])->is_inlined != 0 ? count : 0;
    for (size_t i = 0; i < frame_count; i++) {
        uint32_t row = builder->row_of_frame[frames[i]];
        if (builder->last_chain[row] != chain + 1) {
            builder->last_chain[row] = chain + 1;
            builder->report->rows[row].total += count;
        }
    }
}

static int build_from_frames(struct builder *builder)
{
    const struct profile *profile = builder->profile;
    size_t chain_count = profile->chains.item_count;
    int r = find_frame_rows(builder);
    if (r < 0) {
        return r;
    }
    builder->chain_counts = calloc(chain_count + 1, sizeof *builder->chain_counts);
    builder->last_chain = calloc(builder->report->row_count + 1, sizeof *builder->last_chain);
    if (builder->chain_counts == NULL || builder->last_chain == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < profile->sample_count; i++) {
        builder->chain_counts[profile->samples[i].chain]++;
    }
    for (size_t i = 0; i < chain_count; i++) {
        if (builder->chain_counts[i] > 0) {
            count_chain(builder, (uint32_t)i, builder->chain_counts[i]);
        }
    }
    return 0;
}

static int build_from_samples(struct builder *builder)
{
    const struct profile *profile = builder->profile;
    bool by_thread = builder->report->by == REPORT_BY_THREAD;
    int r = 0;
    for (size_t i = 0; i < profile->sample_count && r == 0; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        struct report_row row = {
            .name = sample->process_name,
            .module = INTERN_NONE,
            .process = sample->process_name,
            .file = INTERN_NONE,
            .has_pid = true,
            .has_tid = by_thread,
            .pid = sample->pid,
            .tid = by_thread ? sample->tid : 0,
        };
        if (by_thread) {
            uint32_t name = profile_thread_name(profile, sample);
            /* A leader may be told as the process only. */
            row.name = name == INTERN_NONE ? sample->process_name : name;
        }
        struct row_key key = {
            .pid = row.pid,
            .tid = row.tid,
            .name = row.name,
            .module_or_process = row.process,
        };
        uint32_t index = 0;
        r = find_row(builder, &key, &row, &index);
        if (r == 0) {
            builder->report->rows[index].self++;
            builder->report->rows[index].total++;
        }
    }
    return r;
}

static void count_stacks(const struct profile *profile, struct report *report)
{
    report->sample_count = profile->sample_count;
    for (size_t i = 0; i < profile->sample_count; i++) {
        switch (profile_rooted(&profile->samples[i])) {
        case PROFILE_STACK_NONE:
            report->none_count++;
            break;
        case PROFILE_STACK_COMPLETE:
            report->complete_count++;
            break;
        case PROFILE_STACK_UNPROVED:
            report->unproved_count++;
            break;
        case PROFILE_STACK_TRUNCATED:
            report->truncated_count++;
            break;
        case PROFILE_STACK_STITCHED:
            report->truncated_count++;
            report->stitched_count++;
            break;
        }
    }
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_rows(const void *left, const void *right, void *userdata)
{
    const struct report_row *a = left;
    const struct report_row *b = right;
    const struct profile *profile = *(const struct profile *const *)userdata;
    int r = compare_u64(b->self, a->self);
    r = r == 0 ? compare_u64(b->total, a->total) : r;
    r = r == 0 ? strcmp(profile_text(profile, a->name), profile_text(profile, b->name)) : r;
    r = r == 0 ? compare_u64(a->pid, b->pid) : r;
    r = r == 0 ? compare_u64(a->tid, b->tid) : r;
    r = r == 0 ? compare_u64(a->module, b->module) : r;
    r = r == 0 ? compare_u64(a->file, b->file) : r;
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

int report_build(const struct profile *profile, enum report_by by, struct report *ret)
{
    *ret = (struct report){.by = by};
    cleanup_(builder_done) struct builder builder = {.profile = profile, .report = ret};
    int r = 0;
    switch (by) {
    case REPORT_BY_FUNCTION:
    case REPORT_BY_MODULE:
        r = build_from_frames(&builder);
        break;
    case REPORT_BY_PROCESS:
    case REPORT_BY_THREAD:
        r = build_from_samples(&builder);
        break;
    }
    if (r < 0) {
        return r;
    }
    count_stacks(profile, ret);
    drop_empty_rows(ret);
    if (ret->row_count > 0) {
        qsort_r(ret->rows, ret->row_count, sizeof *ret->rows, compare_rows, &profile);
    }
    return 0;
}
