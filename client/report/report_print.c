/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A report for a person, as columns, and for a program, as one JSON object. In columns, a text that
 * is too long for the page loses its middle, and the path of a module its folders before that. JSON
 * has all of it.
 */
#include "cleanup.h"
#include "json_out.h"
#include "measure.h"
#include "percent.h"
#include "report.h"
#include "report_waits.h"
#include "text_out.h"

#include <inttypes.h>
#include <string.h>

#define MODULES_NAMED       3 /* without debugging information, in the table's last line */
#define HOT_PERCENT         5
#define COLUMNS_MAX         ((size_t)9)
#define CELL_BYTES          ((size_t)512)
#define FILE_BYTES          480
#define PERCENT_WIDTH       ((size_t)7)
#define SERIES_TITLE_BYTES  ((size_t)40)
#define GAP_WIDTH           ((size_t)2)
#define TEXT_WIDTH_MIN      ((size_t)8)  /* of a column, or those behind it are left out, */
#define MODULE_WIDTH        ((size_t)16) /* of a module that is kept whole, */
#define NAME_WIDTH_MIN      ((size_t)10) /* where so much is left for a function */
#define TEXT_WIDTH_NARROW   ((size_t)16) /* and on a page that has no amounts */
#define TEXTS_WIDTH_MIN     ((size_t)22)
#define CONTAINER_ID_DIGITS 64
#define CONTAINER_ID_SHOWN  12

/* A text of a row, which may be made in `into`, of CELL_BYTES. */
typedef const char *cell_fn(const struct profile *profile, const struct report_row *row,
                            char *into);

/* A column behind the numbers. */
struct text_column {
    const char *title; /* NULL: there is no such column */
    cell_fn *cell;
    size_t weight; /* of its share, where there is too little room */
    bool is_number;
    bool is_path; /* loses its folders first */
};

static const char *text_or(const struct profile *profile, uint32_t text, const char *otherwise)
{
    return text == INTERN_NONE ? otherwise : profile_text(profile, text);
}

static const char *basename_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

static const char *name_cell(const struct profile *profile, const struct report_row *row,
                             char *into)
{
    if (row->name == INTERN_NONE) {
        (void)snprintf(into, CELL_BYTES, "cpu %" PRIu32, row->cpu);
        return into;
    }
    return profile_text(profile, row->name);
}

/* Ids of containers as people write them, by their first digits: JSON has all of them. */
static const char *owner_cell(const struct profile *profile, const struct report_row *row,
                              char *into)
{
    const char *text = profile_text(profile, row->name);
    size_t used = 0;
    while (*text != '\0' && used + 1 < CELL_BYTES) {
        size_t digits = strspn(text, "0123456789abcdef");
        size_t shown = digits == CONTAINER_ID_DIGITS ? CONTAINER_ID_SHOWN : digits;
        shown += digits == 0;
        shown = shown < CELL_BYTES - 1 - used ? shown : CELL_BYTES - 1 - used;
        memcpy(into + used, text, shown);
        used += shown;
        text += digits == 0 ? 1 : digits;
    }
    into[used] = '\0';
    return into;
}

static const char *module_cell(const struct profile *profile, const struct report_row *row,
                               char *into)
{
    (void)into;
    return text_or(profile, row->module, "-");
}

static const char *process_cell(const struct profile *profile, const struct report_row *row,
                                char *into)
{
    (void)into;
    return text_or(profile, row->process, "-");
}

static const char *host_cell(const struct profile *profile, const struct report_row *row,
                             char *into)
{
    (void)into;
    return text_or(profile, row->host, "-");
}

/* A task that had exited as it was sampled has no number. */
static const char *number_cell(uint64_t number, char *into)
{
    if (number == PROFILE_PID_EXITED) {
        return "-";
    }
    (void)snprintf(into, CELL_BYTES, "%" PRIu64, number);
    return into;
}

static const char *pid_cell(const struct profile *profile, const struct report_row *row, char *into)
{
    (void)profile;
    return number_cell(row->pid, into);
}

static const char *tid_cell(const struct profile *profile, const struct report_row *row, char *into)
{
    (void)profile;
    return number_cell(row->tid, into);
}

static const char *processes_cell(const struct profile *profile, const struct report_row *row,
                                  char *into)
{
    (void)profile;
    (void)snprintf(into, CELL_BYTES, "%" PRIu64, row->process_count);
    return into;
}

/* The file without its folders, for which a table has no room; JSON has them. */
static const char *line_cell(const struct profile *profile, const struct report_row *row,
                             char *into)
{
    const char *name = basename_of(text_or(profile, row->file, "-"));
    if (row->line == 0) {
        return name;
    }
    (void)snprintf(into, CELL_BYTES, "%.*s:%" PRIu32, FILE_BYTES, name, row->line);
    return into;
}

/* A character a part of the time, as high as its samples are many. */
static void write_series(const struct page *page, const struct report *report,
                         const struct report_row *row, char *into)
{
    static const char *const blocks[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const letters[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
    const size_t levels = sizeof blocks / sizeof blocks[0] - 1;
    size_t length = row->series == NULL ? 0 : report->series_length;
    uint64_t most = 1;
    size_t used = 0;
    into[0] = '\0';
    for (size_t i = 0; i < length; i++) {
        most = row->series[i] > most ? row->series[i] : most;
    }
    for (size_t i = 0; i < length && used + 4 < CELL_BYTES; i++) {
        double part = (double)row->series[i] / (double)most * (double)levels;
        size_t level = (size_t)part + (part > (double)(size_t)part);
        used += (size_t)snprintf(into + used, CELL_BYTES - used, "%s",
                                 page->is_utf8 ? blocks[level] : letters[level]);
    }
}

/* How many of the other event there were for each of the row's own. */
static const char *ratio_cell(const struct profile *profile, const struct report_row *row,
                              char *into)
{
    (void)profile;
    if (row->self == 0) {
        return "-";
    }
    (void)snprintf(into, CELL_BYTES, "%.4g", row->ratio);
    return into;
}

/* Of the waits in a row itself: how many, in ms how long on average, and the longest. */
static const char *waits_cell(const struct profile *profile, const struct report_row *row,
                              char *into)
{
    (void)profile;
    (void)snprintf(into, CELL_BYTES, "%" PRIu64, row->wait_count);
    return row->has_waits ? into : "-";
}

static const char *mean_cell(const struct profile *profile, const struct report_row *row,
                             char *into)
{
    (void)profile;
    if (!row->has_waits || row->wait_count == 0) {
        return "-";
    }
    (void)snprintf(into, CELL_BYTES, "%.3f", (double)row->self / (double)row->wait_count / 1e6);
    return into;
}

static const char *longest_cell(const struct profile *profile, const struct report_row *row,
                                char *into)
{
    (void)profile;
    if (!row->has_waits || row->wait_count == 0) {
        return "-";
    }
    (void)snprintf(into, CELL_BYTES, "%.3f", (double)row->longest_ns / 1e6);
    return into;
}

#define NAME(title)                                                                                \
    {                                                                                              \
        title, name_cell, 3, false, false                                                          \
    }
#define OWNER(title)                                                                               \
    {                                                                                              \
        title, owner_cell, 3, false, false                                                         \
    }
#define LINE                                                                                       \
    {                                                                                              \
        "line", line_cell, 2, false, false                                                         \
    }
#define HOST                                                                                       \
    {                                                                                              \
        "host", host_cell, 2, false, false                                                         \
    }
#define PATH(title)                                                                                \
    {                                                                                              \
        title, module_cell, 2, false, true                                                         \
    }

/* The columns of a kind of report; how many. */
static size_t find_columns(const struct profile *profile, const struct report *report,
                           struct text_column *ret)
{
    static const struct text_column of_kinds[][COLUMNS_MAX] = {
        [REPORT_BY_FUNCTION] = {NAME("function"), PATH("module")},
        [REPORT_BY_MODULE] = {NAME("module"), PATH("path")},
        [REPORT_BY_PROCESS] = {NAME("process"), {"pid", pid_cell, 1, true, false}, HOST},
        [REPORT_BY_COMMAND] = {NAME("command"), {"processes", processes_cell, 1, true, false}},
        [REPORT_BY_UNIT] = {OWNER("unit"), {"processes", processes_cell, 1, true, false}},
        [REPORT_BY_CONTAINER] = {OWNER("container"), {"processes", processes_cell, 1, true, false}},
        [REPORT_BY_USER] = {OWNER("user"), {"processes", processes_cell, 1, true, false}},
        [REPORT_BY_CPU] = {NAME("cpu"), HOST},
        [REPORT_BY_LINE] = {NAME("function"), LINE, PATH("module")},
        [REPORT_BY_THREAD] = {NAME("thread"),
                              {"tid", tid_cell, 1, true, false},
                              {"pid", pid_cell, 1, true, false},
                              {"process", process_cell, 2, false, false},
                              HOST},
    };
    bool has_lines = profile->inlines.has_lines && report->by == REPORT_BY_FUNCTION;
    const struct text_column *columns = of_kinds[has_lines ? REPORT_BY_LINE : report->by];
    size_t count = 0;
    for (size_t i = 0; i < COLUMNS_MAX && columns[i].title != NULL; i++) {
        if (columns[i].cell != host_cell || profile_has_hosts(profile)) {
            ret[count++] = columns[i];
        }
        if (i == 0 && report->ratio_event != NULL) {
            ret[count++] = (struct text_column){"ratio", ratio_cell, 1, true, false};
        }
        if (i == 0 && report->has_waits) {
            ret[count++] = (struct text_column){"waits", waits_cell, 1, true, false};
            ret[count++] = (struct text_column){"mean ms", mean_cell, 1, true, false};
            ret[count++] = (struct text_column){"longest ms", longest_cell, 1, true, false};
        }
    }
    return count;
}

/* Prints a cell and the gap before it. Spaces behind the last one are left out. */
static void print_cell(FILE *file, const char *text, const struct text_column *column, size_t width,
                       bool is_last)
{
    (void)fputs("  ", file);
    if (column->is_path && text_width(text) > width) {
        text = basename_of(text);
    }
    for (size_t i = text_width(text); column->is_number && i < width; i++) {
        (void)fputc(' ', file);
    }
    text_print_fitted(file, text, width, !is_last && !column->is_number);
}

/* "each s", "each 5 s": what a character of a series stands for. Returns it. */
static const char *series_title(const struct report *report, char *into)
{
    if (report->series_seconds == 1) {
        return "each s";
    }
    (void)snprintf(into, SERIES_TITLE_BYTES, "each %" PRIu64 " s", report->series_seconds);
    return into;
}

static size_t series_width(const struct report *report)
{
    char title[SERIES_TITLE_BYTES];
    size_t width = strlen(series_title(report, title));
    return report->series_length > width ? report->series_length : width;
}

static void print_percent(const struct page *page, uint64_t part, uint64_t whole)
{
    bool is_hot = percent_of(part, whole) >= HOT_PERCENT;
    (void)fprintf(page->file, "%s%7.2f%s", is_hot ? page_style(page, PAGE_HOT) : "",
                  percent_of(part, whole), is_hot ? page_style(page, PAGE_PLAIN) : "");
}

/* How wide a percentage and the amount behind it are, with their gaps. */
static size_t pair_width(const struct measure *measure)
{
    return PERCENT_WIDTH + GAP_WIDTH + (size_t)measure->width + GAP_WIDTH;
}

/* Whether amounts are shown beside percentages: they leave too little of a narrow page. */
static bool has_amounts(const struct page *page, const struct measure *measure)
{
    return page->columns == PAGE_UNLIMITED ||
           2 * pair_width(measure) + TEXTS_WIDTH_MIN <= page->columns;
}

static void print_amount(const struct page *page, const struct measure *measure, uint64_t value)
{
    char cell[MEASURE_CELL_BYTES];
    if (has_amounts(page, measure)) {
        (void)fprintf(page->file, "  %*s", measure->width, measure_cell(measure, value, cell));
    }
}

/* The columns before the texts. */
static void print_numbers(const struct page *page, const struct measure *measure,
                          const struct report *report, const struct report_row *row)
{
    char series[CELL_BYTES];
    print_percent(page, row->self, report->total);
    print_amount(page, measure, row->self);
    if (report->has_waits) {
        return;
    }
    (void)fputs("  ", page->file);
    if (report->series_length > 0) {
        write_series(page, report, row, series);
        text_print_padded(page->file, series, series_width(report));
    } else {
        print_percent(page, row->total, report->total);
        print_amount(page, measure, row->total);
    }
}

static void print_pair_title(const struct page *page, const struct measure *measure,
                             const char *percent, const char *amount)
{
    int unit_width = (int)strlen(measure->unit);
    (void)fputs(percent, page->file);
    if (has_amounts(page, measure)) {
        (void)fprintf(page->file, "  %*s%s", measure->width - unit_width, amount, measure->unit);
    }
}

/* Prints their titles; returns how wide they are, with the gap behind them. */
static size_t print_number_titles(const struct page *page, const struct measure *measure,
                                  const struct report *report)
{
    char title[SERIES_TITLE_BYTES];
    size_t self_width =
        has_amounts(page, measure) ? pair_width(measure) : PERCENT_WIDTH + GAP_WIDTH;
    print_pair_title(page, measure, " self %", "self");
    if (report->has_waits) {
        return self_width;
    }
    (void)fputs("  ", page->file);
    if (report->series_length == 0) {
        print_pair_title(page, measure, "total %", "total");
        return 2 * self_width;
    }
    text_print_padded(page->file, series_title(report, title), series_width(report));
    return self_width + series_width(report) + GAP_WIDTH;
}

/* Leaves out the last columns if there is no room for `text_min` of each text, and gives each of
 * the others its share of it; numbers are shown whole. Returns how many columns there are. */
static size_t share_room(const struct text_column *columns, struct page_column *shares,
                         size_t count, size_t room, size_t text_min)
{
    struct page_column texts[COLUMNS_MAX];
    size_t text_count = 0;
    size_t least = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_fixed = columns[i].is_number || shares[i].needed < text_min;
        least += (i > 0 ? GAP_WIDTH : 0) + (is_fixed ? shares[i].needed : text_min);
    }
    if (room != PAGE_UNLIMITED && least > room && count > 1) {
        return share_room(columns, shares, count - 1, room, text_min);
    }
    size_t left = room == PAGE_UNLIMITED ? room : room - GAP_WIDTH * (count - 1);
    for (size_t i = 0; i < count; i++) {
        shares[i].width = shares[i].needed;
        left -= columns[i].is_number && left != PAGE_UNLIMITED ? shares[i].needed : 0;
        if (!columns[i].is_number) {
            texts[text_count++] = shares[i];
        }
    }
    page_share(texts, text_count, left);
    for (size_t i = count; i > 0; i--) {
        if (!columns[i - 1].is_number) {
            shares[i - 1].width = texts[--text_count].width;
        }
    }
    return count;
}

/* Keeps the last column whole where it has modules, which without their folders are short and mean
 * nothing without their middle, and the first column can give what that takes. */
static void keep_modules_whole(const struct profile *profile, const struct report *report,
                               size_t shown, const struct text_column *columns,
                               struct page_column *shares, size_t count)
{
    struct page_column *last = &shares[count - 1];
    char into[CELL_BYTES];
    size_t needed = 0;
    if (count < 2 || !columns[count - 1].is_path) {
        return;
    }
    for (size_t at = 0; at < shown; at++) {
        size_t width =
            text_width(basename_of(columns[count - 1].cell(profile, &report->rows[at], into)));
        needed = width > needed && width <= MODULE_WIDTH ? width : needed;
    }
    if (needed > last->width && shares[0].width >= NAME_WIDTH_MIN + needed - last->width) {
        shares[0].width -= needed - last->width;
        last->width = needed;
    }
}

static void print_rows(const struct page *page, const struct profile *profile,
                       const struct report *report, size_t shown)
{
    struct text_column columns[COLUMNS_MAX];
    struct page_column shares[COLUMNS_MAX];
    const struct measure measure = measure_of(profile);
    char into[CELL_BYTES];
    size_t count = find_columns(profile, report, columns);
    for (size_t i = 0; i < count; i++) {
        shares[i] = (struct page_column){strlen(columns[i].title), columns[i].weight, 0};
        for (size_t at = 0; at < shown; at++) {
            size_t width = text_width(columns[i].cell(profile, &report->rows[at], into));
            shares[i].needed = width > shares[i].needed ? width : shares[i].needed;
        }
    }
    (void)fputs(page_style(page, PAGE_TITLE), page->file);
    size_t used = print_number_titles(page, &measure, report);
    count = share_room(columns, shares, count,
                       page->columns == PAGE_UNLIMITED ? PAGE_UNLIMITED : page->columns - used,
                       has_amounts(page, &measure) ? TEXT_WIDTH_MIN : TEXT_WIDTH_NARROW);
    keep_modules_whole(profile, report, shown, columns, shares, count);
    for (size_t i = 0; i < count; i++) {
        print_cell(page->file, columns[i].title, &columns[i], shares[i].width, i + 1 == count);
    }
    (void)fprintf(page->file, "%s\n", page_style(page, PAGE_PLAIN));
    for (size_t at = 0; at < shown; at++) {
        const struct report_row *row = &report->rows[at];
        print_numbers(page, &measure, report, row);
        for (size_t i = 0; i < count; i++) {
            print_cell(page->file, columns[i].cell(profile, row, into), &columns[i],
                       shares[i].width, i + 1 == count);
        }
        (void)fputc('\n', page->file);
    }
}

/* Which modules' inlined functions are known; modules that were not looked for are left out. */
static void write_sources(FILE *file, const struct profile *profile)
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
    (void)fputs("\n", file);
}

static void print_sources(const struct page *page, const struct profile *profile)
{
    struct page_text text;
    if (page_text_begin(&text)) {
        write_sources(text.file, profile);
        page_text_end(&text, page, PAGE_PLAIN);
    }
    (void)fputc('\n', page->file);
}

/* Prints "EVENT (UNIT)", which are the recording's, but for a unit that is given. */
static void print_event(FILE *file, const struct profile_event *event, const char *unit)
{
    text_print(file, event->name);
    (void)fputs(" (", file);
    text_print(file, unit == NULL ? event->unit : unit);
    (void)fputc(')', file);
}

/* "ratio: self of page-faults (faults) by self of task-clock (ms); ...". */
static void print_ratio(const struct page *page, const struct profile *profile,
                        const struct report *report)
{
    struct page_text text;
    if (page_text_begin(&text)) {
        (void)fputs("ratio: self of ", text.file);
        print_event(text.file, report->ratio_event, report->ratio_tick > 0 ? NULL : "samples");
        (void)fputs(" by self of ", text.file);
        print_event(text.file, &profile->event,
                    report->row_tick == 0                    ? "samples"
                    : report_ratio_is_by_ms(report, profile) ? "ms"
                                                             : NULL);
        if (report->total > 0) {
            (void)fprintf(text.file, "; %.4g of all rows together",
                          report_shown_ratio(report, profile, report->ratio_total, report->total));
        }
        (void)fputc('\n', text.file);
        page_text_end(&text, page, PAGE_PLAIN);
    }
}

void report_print_table(const struct page *page, const struct profile *profile,
                        const struct summary *summary, const struct report *report, size_t limit)
{
    size_t shown = report_count_shown(report, limit);
    summary_print_head(page, profile, summary);
    print_rows(page, profile, report, shown);
    if (shown < report->row_count) {
        (void)fprintf(page->file, "... and %zu more; -n 0 shows all\n", report->row_count - shown);
    }
    if (report->series_length > 0) {
        char title[SERIES_TITLE_BYTES];
        char line[128];
        (void)snprintf(line, sizeof line,
                       "%s: the highest mark of a row is its own largest part, so heights of rows "
                       "do not compare",
                       series_title(report, title));
        page_print_lines(page, PAGE_PLAIN, line);
    }
    if (report->has_waits) {
        report_waits_print(page, profile, report, shown);
    }
    if (report->ratio_event != NULL) {
        print_ratio(page, profile, report);
    }
    (void)fputc('\n', page->file);
    if (profile->inlines.is_wanted) {
        print_sources(page, profile);
    }
}

/* What rows have besides, of a profile with inlined functions. */
static void print_json_inlined(struct json_out *out, const struct profile *profile,
                               const struct report *report, const struct report_row *row)
{
    if (report->by == REPORT_BY_FUNCTION || report->by == REPORT_BY_MODULE ||
        report->by == REPORT_BY_LINE) {
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

/* null where there is nothing to divide by. */
static void print_json_ratio(struct json_out *out, const struct report *report,
                             const struct report_row *row)
{
    char text[64] = "";
    (void)snprintf(text, sizeof text, "%.12g", report_ratio(report, row->ratio_self, row->self));
    json_out_raw(out, "ratio", row->self == 0 ? NULL : text);
}

static void print_json_row(struct json_out *out, const struct profile *profile,
                           const struct report *report, const struct report_row *row)
{
    char into[CELL_BYTES];
    json_out_begin(out, NULL, '{');
    json_out_string(out, "name", name_cell(profile, row, into));
    json_out_string(out, "module", text_or(profile, row->module, NULL));
    if (row->build_id != INTERN_NONE) {
        json_out_string(out, "build_id", profile_text(profile, row->build_id));
    }
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
    if (row->host != INTERN_NONE) {
        json_out_string(out, "host", profile_text(profile, row->host));
    }
    json_out_u64(out, "self", row->self);
    json_out_u64(out, "total", row->total);
    json_out_percent(out, "self_percent", row->self, report->total);
    json_out_percent(out, "total_percent", row->total, report->total);
    if (report->ratio_event != NULL) {
        json_out_u64(out, "ratio_self", row->ratio_self);
        print_json_ratio(out, report, row);
    }
    if (report->has_waits && row->has_waits) {
        json_out_u64(out, "waits", row->wait_count);
        json_out_u64(out, "longest", row->longest_ns);
    } else if (report->has_waits) {
        json_out_raw(out, "waits", NULL);
        json_out_raw(out, "longest", NULL);
    }
    if (row->series != NULL) {
        json_out_begin(out, "series", '[');
        for (size_t i = 0; i < report->series_length; i++) {
            json_out_u64(out, NULL, row->series[i]);
        }
        json_out_end(out, ']');
    }
    if (report_counts_processes(report->by)) {
        json_out_u64(out, "processes", row->process_count);
    }
    if (report->by == REPORT_BY_CPU) {
        json_out_u64(out, "cpu", row->cpu);
    }
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

void report_print_json(FILE *file, const struct profile *profile, const struct summary *summary,
                       const struct report *report, size_t limit)
{
    struct json_out out = {.file = file};
    size_t shown = report_count_shown(report, limit);
    summary_json_head(&out, profile, summary);
    json_out_string(&out, "by", report_by_name(report->by));
    if (report->series_length > 0) {
        json_out_u64(&out, "series_seconds", report->series_seconds);
    }
    if (report->ratio_event != NULL) {
        json_out_string(&out, "ratio_event", report->ratio_event->name);
        json_out_u64(&out, "ratio_total", report->ratio_total);
    }
    json_out_u64(&out, "row_count", report->row_count);
    json_out_begin(&out, "rows", '[');
    for (size_t i = 0; i < shown; i++) {
        print_json_row(&out, profile, report, &report->rows[i]);
    }
    json_out_end(&out, ']');
    if (profile->inlines.is_wanted) {
        print_json_sources(&out, profile);
    }
    summary_json_foot(&out, profile, summary);
}
