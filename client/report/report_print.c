/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A report for a person, as columns, and for a program, as one JSON object. Names are never cut:
 * one that is too long for its column pushes the rest of its line to the right.
 */
#include "books_print.h"
#include "cleanup.h"
#include "json_out.h"
#include "report.h"
#include "text_out.h"

#include <inttypes.h>
#include <string.h>

#define NAME_WIDTH_MAX ((size_t)60)
#define LINE_WIDTH     28
#define MODULES_NAMED  3 /* without debugging information, in the table's last line */

static double percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}

static const char *text_or(const struct profile *profile, uint32_t text, const char *otherwise)
{
    return text == INTERN_NONE ? otherwise : profile_text(profile, text);
}

static size_t count_shown(const struct report *report, size_t limit)
{
    return limit == 0 || limit > report->row_count ? report->row_count : limit;
}

/* What stands to the right of a row's name: its module, or which process and thread it is. */
static void print_place(FILE *file, const struct profile *profile, const struct report *report,
                        const struct report_row *row)
{
    switch (report->by) {
    case REPORT_BY_FUNCTION:
    case REPORT_BY_MODULE:
        text_print(file, text_or(profile, row->module, "-"));
        break;
    case REPORT_BY_PROCESS:
        (void)fprintf(file, "%" PRId64, (int64_t)row->pid);
        break;
    case REPORT_BY_THREAD:
        (void)fprintf(file, "%-8" PRId64 "  %-8" PRId64 "  ", (int64_t)row->tid, (int64_t)row->pid);
        text_print(file, text_or(profile, row->process, "-"));
        break;
    }
}

static bool shows_lines(const struct profile *profile, const struct report *report)
{
    return profile->inlines.has_lines && report->by == REPORT_BY_FUNCTION;
}

/* The file without its folders, for which a table has no room; JSON has them. */
static void print_line(FILE *file, const struct profile *profile, const struct report_row *row)
{
    cleanup_(freep) char *text = NULL;
    const char *path = text_or(profile, row->file, "-");
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    int r = row->line == 0 ? asprintf(&text, "%s", name)
                           : asprintf(&text, "%s:%" PRIu32, name, row->line);
    if (r < 0) {
        text = NULL;
    }
    text_print_padded(file, text == NULL ? name : text, LINE_WIDTH);
    (void)fputs("  ", file);
}

static void print_rows(FILE *file, const struct profile *profile, const struct report *report,
                       size_t shown)
{
    static const char *const places[] = {
        [REPORT_BY_FUNCTION] = "module",
        [REPORT_BY_MODULE] = "path",
        [REPORT_BY_PROCESS] = "pid",
        [REPORT_BY_THREAD] = "tid       pid       process",
    };
    size_t width = strlen(report_by_name(report->by));
    for (size_t i = 0; i < shown; i++) {
        size_t needed = text_width(profile_text(profile, report->rows[i].name));
        width = needed > width ? needed : width;
    }
    width = width > NAME_WIDTH_MAX ? NAME_WIDTH_MAX : width;
    (void)fprintf(file, " self %%      self  total %%     total  ");
    text_print_padded(file, report_by_name(report->by), width);
    (void)fputs("  ", file);
    if (shows_lines(profile, report)) {
        text_print_padded(file, "line", LINE_WIDTH + 2);
    }
    (void)fprintf(file, "%s\n", places[report->by]);
    for (size_t i = 0; i < shown; i++) {
        const struct report_row *row = &report->rows[i];
        (void)fprintf(file, "%7.2f  %8" PRIu64 "  %7.2f  %8" PRIu64 "  ",
                      percent(row->self, report->sample_count), row->self,
                      percent(row->total, report->sample_count), row->total);
        text_print_padded(file, profile_text(profile, row->name), width);
        (void)fputs("  ", file);
        if (shows_lines(profile, report)) {
            print_line(file, profile, row);
        }
        print_place(file, profile, report, row);
        (void)fputc('\n', file);
    }
}

/* Which modules' inlined functions are known; modules that were not looked for are left out. */
static void print_sources(FILE *file, const struct profile *profile)
{
    size_t asked = 0;
    size_t missing = 0;
    for (size_t i = 0; i < profile->module_count; i++) {
        enum inlines_source source = profile->modules[i].source;
        asked += source != INLINES_NOT_ASKED;
        missing += source != INLINES_NOT_ASKED && source != INLINES_FOUND;
    }
    (void)fprintf(file, "debugging information was found of %zu of %zu modules", asked - missing,
                  asked);
    const char *separator = "; not of ";
    size_t named = 0;
    for (size_t i = 0; i < profile->module_count && named < MODULES_NAMED; i++) {
        enum inlines_source source = profile->modules[i].source;
        if (source != INLINES_NOT_ASKED && source != INLINES_FOUND) {
            (void)fputs(separator, file);
            text_print(file, profile_text(profile, profile->modules[i].name));
            (void)fputs(source == INLINES_NO_BUILD_ID ? " (no build-id)"
                        : source == INLINES_BROKEN    ? " (cannot be read)"
                                                      : "",
                        file);
            separator = ", ";
            named++;
        }
    }
    if (missing > named) {
        (void)fprintf(file, " and %zu more", missing - named);
    }
    (void)fputs("\n\n", file);
}

void report_print_table(FILE *file, const struct profile *profile, const struct report *report,
                        size_t limit)
{
    uint64_t period_ns = profile_period_ns(profile);
    size_t shown = count_shown(report, limit);
    char count[TEXT_COUNT_BYTES];
    double between_s = (double)(profile->last_ns - profile->first_ns) / 1e9;
    (void)fprintf(file, "%s in %.3f s", text_samples(report->sample_count, count),
                  books_print_length_s(profile->books_json, between_s));
    char rate[TEXT_RATE_BYTES];
    (void)fputs(text_rate(period_ns, rate), file);
    (void)fprintf(file, "\nstacks: %" PRIu64 " complete (%.2f %%), ", report->complete_count,
                  percent(report->complete_count, report->sample_count));
    if (report->unproved_count > 0) {
        (void)fprintf(file, "%" PRIu64 " not proved, ", report->unproved_count);
    }
    (void)fprintf(file, "%" PRIu64 " truncated", report->truncated_count);
    if (report->stitched_count > 0) {
        (void)fprintf(file, " (%" PRIu64 " stitched)", report->stitched_count);
    }
    (void)fprintf(file, ", %" PRIu64 " without a user stack\n\n", report->none_count);
    print_rows(file, profile, report, shown);
    if (shown < report->row_count) {
        (void)fprintf(file, "... and %zu more; -n 0 shows all\n", report->row_count - shown);
    }
    (void)fputc('\n', file);
    if (profile->inlines.is_wanted) {
        print_sources(file, profile);
    }
    books_print_print(file, profile->books_json);
    if (profile->dropped_record_count > 0) {
        (void)fprintf(file, "%" PRIu64 " records were dropped, since the buffers were full\n",
                      profile->dropped_record_count);
    }
}

/* What rows have besides, of a profile with inlined functions. */
static void print_json_inlined(struct json_out *out, const struct profile *profile,
                               const struct report *report, const struct report_row *row)
{
    if (report->by == REPORT_BY_FUNCTION || report->by == REPORT_BY_MODULE) {
        json_out_u64(out, "self_inlined", row->self_inlined);
    } else {
        json_out_raw(out, "self_inlined", NULL);
    }
    json_out_string(out, "file", text_or(profile, row->file, NULL));
    if (row->line > 0) {
        json_out_u64(out, "line", row->line);
    } else {
        json_out_raw(out, "line", NULL);
    }
}

static void print_json_row(struct json_out *out, const struct profile *profile,
                           const struct report *report, const struct report_row *row)
{
    json_out_begin(out, NULL, '{');
    json_out_string(out, "name", profile_text(profile, row->name));
    json_out_string(out, "module", text_or(profile, row->module, NULL));
    json_out_string(out, "process", text_or(profile, row->process, NULL));
    if (row->has_pid) {
        json_out_i64(out, "pid", (int64_t)row->pid);
    } else {
        json_out_raw(out, "pid", NULL);
    }
    if (row->has_tid) {
        json_out_i64(out, "tid", (int64_t)row->tid);
    } else {
        json_out_raw(out, "tid", NULL);
    }
    json_out_u64(out, "self", row->self);
    json_out_u64(out, "total", row->total);
    json_out_percent(out, "self_percent", row->self, report->sample_count);
    json_out_percent(out, "total_percent", row->total, report->sample_count);
    if (profile->inlines.is_wanted) {
        print_json_inlined(out, profile, report, row);
    }
    json_out_end(out, '}');
}

static void print_json_sources(struct json_out *out, const struct profile *profile)
{
    static const char *const sources[] = {
        [INLINES_FOUND] = "found",
        [INLINES_NO_BUILD_ID] = "no build-id",
        [INLINES_NO_FILE] = "no file",
        [INLINES_BROKEN] = "broken",
    };
    json_out_begin(out, "debug_files", '[');
    for (size_t i = 0; i < profile->module_count; i++) {
        const struct profile_module *module = &profile->modules[i];
        if (module->source != INLINES_NOT_ASKED) {
            json_out_begin(out, NULL, '{');
            json_out_string(out, "module", profile_text(profile, module->name));
            json_out_string(out, "build_id", profile_text(profile, module->build_id));
            json_out_string(out, "state", sources[module->source]);
            json_out_string(out, "file", text_or(profile, module->debug_file, NULL));
            json_out_end(out, '}');
        }
    }
    json_out_end(out, ']');
}

void report_print_json(FILE *file, const struct profile *profile, const struct report *report,
                       size_t limit)
{
    struct json_out out = {.file = file};
    uint64_t period_ns = profile_period_ns(profile);
    size_t shown = count_shown(report, limit);
    json_out_begin(&out, NULL, '{');
    json_out_u64(&out, "samples", report->sample_count);
    if (period_ns > 0) {
        json_out_u64(&out, "period_ns", period_ns);
    } else {
        json_out_raw(&out, "period_ns", NULL);
    }
    json_out_u64(&out, "duration_ns", profile->last_ns - profile->first_ns);
    json_out_string(&out, "by", report_by_name(report->by));
    json_out_begin(&out, "rows", '[');
    for (size_t i = 0; i < shown; i++) {
        print_json_row(&out, profile, report, &report->rows[i]);
    }
    json_out_end(&out, ']');
    if (profile->inlines.is_wanted) {
        print_json_sources(&out, profile);
    }
    json_out_begin(&out, "stacks", '{');
    json_out_u64(&out, "complete", report->complete_count);
    json_out_u64(&out, "unproved", report->unproved_count);
    json_out_u64(&out, "truncated", report->truncated_count);
    json_out_u64(&out, "stitched", report->stitched_count);
    json_out_u64(&out, "none", report->none_count);
    json_out_end(&out, '}');
    json_out_raw(&out, "books", profile->books_json);
    json_out_end(&out, '}');
    (void)fputc('\n', file);
}
