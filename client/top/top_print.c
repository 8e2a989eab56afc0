/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Text is for a person who reads it later: a look ends with an empty line. JSON is for a program
 * that reads lines: each is flushed, and has what every view shows.
 */
#include "top_print.h"

#include "clock.h"
#include "json_out.h"
#include "percent.h"
#include "text_out.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#define NUMBERS_WIDTH ((size_t)28) /* of the columns before the texts, with the gap behind them */
#define NARROW_WIDTH                                                                               \
    ((size_t)20) /* the same on a narrow page, which has no amounts and modules                    \
                  */
#define TITLE_BYTES   ((size_t)64)
#define SAMPLES_WIDTH 7 /* of one of these; of another event the column is wider */
/* As in sentences of report: a share of so many is within 5 points, in 19 of 20 looks. */
#define FEW_SAMPLES       385
#define POINTS_OF_SAMPLES (1.96 * 50)
#define GAP_WIDTH         ((size_t)2)

/* Of the clock the number of samples alone. */
static void print_event(FILE *file, const struct top_print *print, const struct top_sums *sums)
{
    char amount[TOP_AMOUNT_BYTES];
    if (!print->event->is_clock) {
        text_print(file, print->event->name);
        (void)fprintf(file, " %s ", top_events_amount(print->event, sums->value, amount));
        text_print(file, top_events_unit(print->event));
        (void)fputs(", ", file);
    }
}

static void write_head(FILE *file, const struct top_print *print, const struct top_sums *sums)
{
    const struct top_books *books = print->books;
    char clock[16];
    char count[TEXT_COUNT_BYTES];
    time_t now = time(NULL);
    struct tm local = {0};
    struct top_cpu all = {0};
    (void)localtime_r(&now, &local);
    (void)strftime(clock, sizeof clock, "%H:%M:%S", &local);
    (void)fprintf(file, "%s: ", clock);
    print_event(file, print, sums);
    (void)fprintf(file, "%s in %.1f s", text_samples(sums->sample_count, count),
                  (double)sums->span_ns / (double)NS_PER_S);
    if (books->period_ns > 0 && print->event->is_clock) {
        (void)fprintf(file, " at %.0f Hz", (double)NS_PER_S / (double)books->period_ns);
    }
    for (size_t i = 0; i < books->cpu_count; i++) {
        all.busy += books->cpus[i].busy;
        all.expected += books->cpus[i].expected;
    }
    (void)fprintf(file, "; %zu CPU%s %.0f %% busy\n", books->cpu_count,
                  books->cpu_count == 1 ? "" : "s", percent_of(all.busy, all.expected));
    (void)fprintf(file,
                  "ticks: %" PRIu64 " lost, %" PRIu64 " missed, %" PRIu64
                  " dropped; stacks: %" PRIu64 " truncated\n",
                  books->lost, books->missed, books->dropped, sums->truncated_count);
    if (print->pending_count > 0) {
        (void)fprintf(file, "%s not handed out yet\n", text_samples(print->pending_count, count));
    }
    if (sums->sample_count == 0) {
        text_print(file, print->nothing);
        (void)fputc('\n', file);
    }
    if (sums->sample_count > 0 && sums->sample_count < FEW_SAMPLES && !print->event->is_wait) {
        (void)fprintf(file, "few samples: shares are within about %.0f points of the true ones\n",
                      POINTS_OF_SAMPLES / sqrt((double)sums->sample_count));
    }
}

static int print_head(const struct page *page, const struct top_print *print,
                      const struct top_sums *sums)
{
    struct page_text text;
    if (!page_text_begin(&text)) {
        return -ENOMEM;
    }
    write_head(text.file, print, sums);
    page_text_end(&text, page, PAGE_PLAIN);
    (void)fputc('\n', page->file);
    return 0;
}

static const char *basename_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

/* A column with the texts and, of functions, one with their modules. */
struct widths {
    size_t name;
    size_t module;
};

static int amount_width(const struct top_print *print)
{
    return print->event->is_clock ? SAMPLES_WIDTH : TOP_AMOUNT_WIDTH;
}

static struct widths find_widths(const struct page *page, const struct top_print *print,
                                 const struct top_rows *rows, size_t shown)
{
    bool is_narrow = page_is_narrow(page);
    size_t numbers =
        is_narrow ? NARROW_WIDTH : NUMBERS_WIDTH + (size_t)(amount_width(print) - SAMPLES_WIDTH);
    struct page_column columns[2] = {{.needed = 8, .weight = 3}, {.needed = 6, .weight = 2}};
    for (size_t i = 0; i < shown; i++) {
        const struct top_row *row = &rows->rows[i];
        size_t name = text_width(row->name);
        size_t module = row->module == NULL ? 0 : text_width(basename_of(row->module));
        columns[0].needed = name > columns[0].needed ? name : columns[0].needed;
        columns[1].needed = module > columns[1].needed ? module : columns[1].needed;
    }
    page_share(columns, is_narrow ? 1 : 2,
               page->columns == PAGE_UNLIMITED ? PAGE_UNLIMITED
               : is_narrow                     ? page->columns - numbers
                                               : page->columns - numbers - GAP_WIDTH);
    return (struct widths){columns[0].width, columns[1].width};
}

/* What stands before a text so that it ends at the right of its column. */
static size_t padding_of(const char *text, int width)
{
    size_t used = text_width(text);
    return used < (size_t)width ? (size_t)width - used : 0;
}

/* Whether amounts are totals: of another event than the clock they are what rows are sorted by. */
static bool by_total(const struct top_print *print)
{
    return print->query.sort == TOP_BY_TOTAL && !print->event->is_clock;
}

static void print_titles(const struct page *page, const struct top_print *print,
                         const struct widths *widths)
{
    static const char *const titles[TOP_VIEWS] = {
        [TOP_FUNCTIONS] = "  self %   total %",
        [TOP_PROCESSES] = "       %",
        [TOP_UNITS] = "       %",
    };
    static const char *const texts[TOP_VIEWS] = {
        [TOP_FUNCTIONS] = "  function",
        [TOP_PROCESSES] = "       pid  process",
        [TOP_UNITS] = " processes  unit",
    };
    bool of_functions = print->query.view == TOP_FUNCTIONS;
    char title[TITLE_BYTES];
    if (page_is_narrow(page)) {
        (void)fprintf(page->file, "%s%s\n", titles[print->query.view], texts[print->query.view]);
        return;
    }
    const char *unit = top_events_unit(print->event);
    (void)snprintf(title, sizeof title, "%s%s",
                   !of_functions || print->event->is_clock ? ""
                   : by_total(print)                       ? "total "
                                                           : "self ",
                   unit);
    if (text_width(title) > (size_t)amount_width(print)) {
        (void)snprintf(title, sizeof title, "%s", unit);
    }
    (void)fprintf(page->file, "%s  %*s", titles[print->query.view],
                  (int)padding_of(title, amount_width(print)), "");
    text_print_fitted(page->file, title, (size_t)amount_width(print), false);
    (void)fprintf(page->file, "%s%*s%s\n", texts[print->query.view],
                  of_functions ? (int)(widths->name - strlen("function") + GAP_WIDTH) : 0, "",
                  of_functions ? "module" : "");
}

static void print_numbers(const struct page *page, const struct top_print *print,
                          const struct top_row *row, uint64_t all)
{
    char amount[TOP_AMOUNT_BYTES];
    bool of_functions = print->query.view == TOP_FUNCTIONS;
    (void)fprintf(page->file, "%8.2f  ", percent_of(row->self, all));
    if (of_functions) {
        (void)fprintf(page->file, "%8.2f  ", percent_of(row->total, all));
    }
    if (!page_is_narrow(page)) {
        (void)top_events_amount(print->event, by_total(print) ? row->total : row->self, amount);
        (void)fprintf(page->file, "%*s  ", amount_width(print), amount);
    }
    if (!of_functions) {
        (void)fprintf(page->file, "%8" PRId64 "  ",
                      print->query.view == TOP_PROCESSES ? (int64_t)row->pid
                                                         : (int64_t)row->process_count);
    }
}

static void print_rows(const struct page *page, const struct top_print *print,
                       const struct top_rows *rows, uint64_t all)
{
    size_t shown = print->limit == 0 || rows->count < print->limit ? rows->count : print->limit;
    struct widths widths = find_widths(page, print, rows, shown);
    bool has_modules = print->query.view == TOP_FUNCTIONS && !page_is_narrow(page);
    print_titles(page, print, &widths);
    for (size_t i = 0; i < shown; i++) {
        const struct top_row *row = &rows->rows[i];
        print_numbers(page, print, row, all);
        text_print_fitted(page->file, row->name, widths.name, has_modules);
        if (has_modules) {
            (void)fprintf(page->file, "%*s", (int)GAP_WIDTH, "");
            text_print_fitted(page->file, basename_of(row->module), widths.module, false);
        }
        (void)fputc('\n', page->file);
    }
    (void)fputc('\n', page->file);
}

int top_print_text(const struct page *page, const struct top_print *print)
{
    struct top_sums sums;
    struct top_rows rows = {0};
    top_model_sum(print->model, print->query.event, &sums);
    int r = top_model_rows(print->model, &print->query, &rows);
    if (r == 0) {
        r = print_head(page, print, &sums);
    }
    if (r == 0) {
        print_rows(page, print, &rows, sums.value);
    }
    top_rows_done(&rows);
    return r;
}

static void json_row(struct json_out *out, const struct top_print *print, enum top_view view,
                     const struct top_row *row, uint64_t all)
{
    json_out_begin(out, NULL, '{');
    json_out_string(out, "name", row->name);
    if (view == TOP_FUNCTIONS) {
        json_out_string(out, "module", row->module[0] == '\0' ? NULL : row->module);
        json_out_u64(out, "self", row->self);
        json_out_u64(out, "total", row->total);
        json_out_percent(out, "self_percent", row->self, all);
        json_out_percent(out, "total_percent", row->total, all);
    } else {
        if (view == TOP_PROCESSES) {
            json_out_i64(out, "pid", (int64_t)row->pid);
        } else {
            json_out_u64(out, "processes", row->process_count);
        }
        json_out_u64(out, print->event->is_clock ? "samples" : "value", row->self);
        json_out_percent(out, "percent", row->self, all);
    }
    json_out_end(out, '}');
}

static int json_view(struct json_out *out, const struct top_print *print, enum top_view view,
                     uint64_t all)
{
    static const char *const names[TOP_VIEWS] = {
        [TOP_FUNCTIONS] = "functions", [TOP_PROCESSES] = "processes", [TOP_UNITS] = "units"};
    struct top_query query = print->query;
    struct top_rows rows = {0};
    query.view = view;
    int r = top_model_rows(print->model, &query, &rows);
    size_t shown = print->limit == 0 || rows.count < print->limit ? rows.count : print->limit;
    json_out_begin(out, names[view], '[');
    for (size_t i = 0; i < shown && r == 0; i++) {
        json_row(out, print, view, &rows.rows[i], all);
    }
    json_out_end(out, ']');
    top_rows_done(&rows);
    return r;
}

static void json_books(struct json_out *out, const struct top_books *books)
{
    json_out_begin(out, "books", '{');
    json_out_u64(out, "period_ns", books->period_ns);
    json_out_u64(out, "expected", books->expected);
    json_out_u64(out, "lost", books->lost);
    json_out_u64(out, "missed", books->missed);
    json_out_u64(out, "dropped", books->dropped);
    json_out_end(out, '}');
    json_out_begin(out, "cpus", '[');
    for (size_t i = 0; i < books->cpu_count; i++) {
        json_out_begin(out, NULL, '{');
        json_out_u64(out, "cpu", books->cpus[i].cpu);
        json_out_percent(out, "busy_percent", books->cpus[i].busy, books->cpus[i].expected);
        json_out_end(out, '}');
    }
    json_out_end(out, ']');
}

int top_print_json(FILE *file, const struct top_print *print)
{
    struct json_out out = {.file = file};
    struct top_sums sums;
    int r = 0;
    top_model_sum(print->model, print->query.event, &sums);
    json_out_begin(&out, NULL, '{');
    json_out_u64(&out, "time_ms", clock_ns(CLOCK_REALTIME) / NS_PER_MS);
    json_out_u64(&out, "window_ns", print->window_ns);
    json_out_u64(&out, "span_ns", sums.span_ns);
    json_out_u64(&out, "samples", sums.sample_count);
    if (!print->event->is_clock) {
        json_out_string(&out, "event", print->event->name);
        json_out_string(&out, "unit", print->event->unit);
        json_out_u64(&out, "value", sums.value);
    }
    json_out_u64(&out, "pending", print->pending_count);
    json_out_begin(&out, "stacks", '{');
    json_out_u64(&out, "truncated", sums.truncated_count);
    json_out_u64(&out, "none", sums.stackless_count);
    json_out_end(&out, '}');
    json_books(&out, print->books);
    for (unsigned view = 0; view < TOP_VIEWS && r == 0; view++) {
        r = json_view(&out, print, (enum top_view)view, sums.value);
    }
    json_out_end(&out, '}');
    (void)fputc('\n', file);
    return r;
}
