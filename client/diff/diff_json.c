/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A comparison as one JSON object, docs/diff.schema.json.
 */
#include "cleanup.h"
#include "diff_parts.h"
#include "json_out.h"

static void print_known(struct json_out *out, const char *name, double value, bool is_known)
{
    if (is_known) {
        json_out_double(out, name, value);
    } else {
        json_out_raw(out, name, NULL);
    }
}

static void print_side(struct json_out *out, const struct diff *diff, enum diff_side side,
                       double scale)
{
    json_out_begin(out, side == DIFF_BEFORE ? "before" : "after", '{');
    json_out_double(out, "whole", scale * diff->wholes[side]);
    json_out_begin(out, "recordings", '[');
    for (size_t i = 0; i < diff->part_count; i++) {
        const struct part *part = &diff->parts[i];
        if (part->side != side) {
            continue;
        }
        json_out_begin(out, NULL, '{');
        json_out_string(out, "name", part->name);
        json_out_u64(out, "samples", part->fold.sample_count);
        if (!diff->event.is_clock) {
            json_out_u64(out, "value", part->fold.value);
        }
        json_out_u64(out, "period_ns", part->period_ns);
        json_out_double(out, "length_s", part->length_s);
        json_out_u64(out, "expected", (uint64_t)part->expected);
        json_out_u64(out, "seen", part->seen > 0 ? (uint64_t)part->seen : 0);
        print_known(out, "work", part->work, diff->options.per == DIFF_PER_WORK);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
    json_out_end(out, '}');
}

static void print_verdict(struct json_out *out, const struct diff *diff)
{
    const struct verdict *verdict = &diff->verdict;
    json_out_raw(out, "judged", diff_is_judged(diff) ? "true" : "false");
    json_out_double(out, "false_discovery_rate", diff->options.discovery_rate);
    json_out_u64(out, "tested_rows", verdict->row_count);
    json_out_u64(out, "tests", verdict->test_count);
    json_out_u64(out, "sure_rows", verdict->sure_rows);
    json_out_u64(out, "sure", verdict->sure_count);
    print_known(out, "runs_differ", verdict->spread.part, diff_is_judged(diff));
    print_known(out, "wholes_differ", verdict->whole_spread,
                diff_is_judged(diff) && diff->options.per != DIFF_PER_CPU);
    json_out_raw(out, "runs_differ_assumed", verdict->is_assumed ? "true" : "false");
    json_out_u64(out, "unmatched_rows", diff->unmatched_count);
    json_out_begin(out, "warnings", '[');
    for (size_t i = 0; i < diff->warning_count; i++) {
        json_out_string(out, NULL, diff->warnings[i]);
    }
    json_out_end(out, ']');
}

static void print_change(struct json_out *out, const char *name, const struct diff_change *change,
                         double scale)
{
    json_out_begin(out, name, '{');
    json_out_u64(out, "samples_before", change->samples[DIFF_BEFORE]);
    json_out_u64(out, "samples_after", change->samples[DIFF_AFTER]);
    json_out_double(out, "before", scale * change->values[DIFF_BEFORE]);
    json_out_double(out, "after", scale * change->values[DIFF_AFTER]);
    json_out_double(out, "change", scale * change->change);
    print_known(out, "margin", scale * change->margin, change->has_margin);
    print_known(out, "visible", scale * change->visible, change->is_tested);
    print_known(out, "probability", change->probability, change->is_tested);
    json_out_raw(out, "sure", change->is_sure ? "true" : "false");
    json_out_end(out, '}');
}

static int print_row(struct json_out *out, const struct diff *diff, const struct diff_row *row,
                     double scale)
{
    cleanup_(freep) const char **names = NULL;
    size_t count = 0;
    if (diff_find_path(diff, row->item, &names, &count) < 0) {
        return -ENOMEM;
    }
    json_out_begin(out, NULL, '{');
    json_out_string(out, "name", row->name);
    json_out_string(out, "module", row->module);
    if (row->build_id != NULL) {
        json_out_string(out, "build_id", row->build_id);
    }
    if (diff->options.by == DIFF_BY_STACK) {
        json_out_begin(out, "stack", '[');
        for (size_t i = 0; i < count; i++) {
            json_out_string(out, NULL, names[i]);
        }
        json_out_end(out, ']');
    }
    json_out_raw(out, "unmatched", row->is_unmatched ? "true" : "false");
    print_change(out, "self", &row->self, scale);
    print_change(out, "total", &row->total, scale);
    json_out_end(out, '}');
    return 0;
}

/* What values are in. */
static const char *unit_name(const struct diff *diff)
{
    return diff_is_of_parts(diff)                        ? "percent"
           : diff->event.is_clock || diff->event.is_time ? "seconds"
                                                         : diff->event.unit;
}

int diff_print_json(FILE *file, const struct diff *diff, size_t limit)
{
    static const char *const pers[] = {
        [DIFF_PER_TIME] = "time", [DIFF_PER_CPU] = "cpu", [DIFF_PER_WORK] = "work"};
    struct json_out out = {.file = file};
    size_t shown = limit == 0 || limit > diff->row_count ? diff->row_count : limit;
    double scale = diff_is_of_parts(diff) ? 100 : 1;
    int r = 0;
    json_out_begin(&out, NULL, '{');
    json_out_string(&out, "by", diff_by_name(diff->options.by));
    json_out_string(&out, "per", pers[diff->options.per]);
    json_out_string(&out, "sort", diff->options.sorts_total ? "total" : "self");
    json_out_string(&out, "unit", unit_name(diff));
    if (!diff->event.is_clock) {
        json_out_string(&out, "event", diff->event.name);
    }
    print_side(&out, diff, DIFF_BEFORE, scale);
    print_side(&out, diff, DIFF_AFTER, scale);
    print_verdict(&out, diff);
    json_out_u64(&out, "row_count", diff->row_count);
    json_out_begin(&out, "rows", '[');
    for (size_t i = 0; i < shown && r == 0; i++) {
        r = print_row(&out, diff, &diff->rows[i], scale);
    }
    json_out_end(&out, ']');
    json_out_end(&out, '}');
    (void)fputc('\n', file);
    return r;
}
