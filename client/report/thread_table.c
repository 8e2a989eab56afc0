/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints the books of threads (docs/books.md#threads) as a table. Columns are as wide as what is in
 * them. Where the page is too narrow for all of them, those of the last ranks are left out, and
 * names of threads lose their middle; JSON has all.
 */
#include "thread_table.h"

#include "books_print.h"
#include "cleanup.h"
#include "compare.h"
#include "doubts_threads.h"
#include "json_out.h"
#include "report.h"
#include "text_out.h"
#include "thread_sentence.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_WIDTH     ((size_t)16)
#define NAME_WIDTH_MIN ((size_t)8) /* of a thread's name, before a column is left out */
#define CELL_BYTES     ((size_t)64)

static int compare_activity(const void *left, const void *right)
{
    const struct profile_thread *a = *(const struct profile_thread *const *)left;
    const struct profile_thread *b = *(const struct profile_thread *const *)right;
    const int64_t a_ns = a->times.running_ns + a->times.ready_ns;
    const int64_t b_ns = b->times.running_ns + b->times.ready_ns;
    int r = (a_ns < b_ns) - (a_ns > b_ns);
    r = r == 0 ? (a->times.blocked_ns < b->times.blocked_ns) -
                     (a->times.blocked_ns > b->times.blocked_ns)
               : r;
    r = r == 0 ? compare_u64(a->task.segment, b->task.segment) : r;
    r = r == 0 ? compare_u64(a->task.pid, b->task.pid) : r;
    r = r == 0 ? compare_u64(a->task.tid, b->task.tid) : r;
    return r == 0 ? compare_u64(a->begin_ns, b->begin_ns) : r;
}

/* The threads in their order. Returned: free(). NULL when there is no memory. */
static const struct profile_thread **order(const struct profile *profile)
{
    const struct profile_thread **threads =
        malloc((profile->thread_count + 1) * sizeof(struct profile_thread *));
    if (threads == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < profile->thread_count; i++) {
        threads[i] = &profile->threads[i];
    }
    qsort(threads, profile->thread_count, sizeof(struct profile_thread *), compare_activity);
    return threads;
}

static size_t count_shown(const struct profile *profile, size_t limit)
{
    return limit == 0 || limit > profile->thread_count ? profile->thread_count : limit;
}

/* The texts of a row; names are borrowed from the profile. */
static const char *text_of(const struct profile *profile, uint32_t text)
{
    return text == INTERN_NONE ? "[unknown]" : profile_text(profile, text);
}

static const char *ms(int64_t time_ns, char *into)
{
    (void)snprintf(into, CELL_BYTES, "%.1f", (double)time_ns / 1e6);
    return into;
}

static const char *count_of(uint64_t count, char *into)
{
    (void)snprintf(into, CELL_BYTES, "%" PRIu64, count);
    return into;
}

enum column {
    COLUMN_TID,
    COLUMN_PID,
    COLUMN_THREAD,
    COLUMN_PROCESS,
    COLUMN_WALL,
    COLUMN_RUNNING,
    COLUMN_READY,
    COLUMN_BLOCKED,
    COLUMN_UNEXPLAINED,
    COLUMN_PREEMPTED,
    COLUMN_VOLUNTARY,
    COLUMN_INVOLUNTARY,
    COLUMN_HOST,
    COLUMNS,
};

/* Which are left out first: those of the highest rank. */
static const struct {
    const char *title;
    int rank;
} columns[COLUMNS] = {
    [COLUMN_TID] = {"tid", 0},
    [COLUMN_PID] = {"pid", 3},
    [COLUMN_THREAD] = {"thread", 0},
    [COLUMN_PROCESS] = {"process", 7},
    [COLUMN_WALL] = {"wall_ms", 2},
    [COLUMN_RUNNING] = {"running_ms", 0},
    [COLUMN_READY] = {"ready_ms", 1},
    [COLUMN_BLOCKED] = {"blocked_ms", 0},
    [COLUMN_UNEXPLAINED] = {"unexplained", 4},
    [COLUMN_PREEMPTED] = {"preempted_ms", 5},
    [COLUMN_VOLUNTARY] = {"voluntary", 6},
    [COLUMN_INVOLUNTARY] = {"involuntary", 6},
    [COLUMN_HOST] = {"host", 8},
};

/* Which columns a page has, and how wide they are. */
struct layout {
    int rank; /* the first that is left out */
    size_t widths[COLUMNS];
};

static bool is_text(enum column column)
{
    return column == COLUMN_THREAD || column == COLUMN_PROCESS || column == COLUMN_HOST;
}

static const char *cell(const struct profile *profile, const struct profile_thread *thread,
                        enum column column, char *into)
{
    const char *host = NULL;
    switch (column) {
    case COLUMN_TID:
        return count_of(thread->task.tid, into);
    case COLUMN_PID:
        return count_of(thread->task.pid, into);
    case COLUMN_THREAD:
        return text_of(profile, thread->task.thread_name);
    case COLUMN_PROCESS:
        return text_of(profile, thread->task.process_name);
    case COLUMN_WALL:
        return ms(thread->times.wall_ns, into);
    case COLUMN_RUNNING:
        return ms(thread->times.running_ns, into);
    case COLUMN_READY:
        return ms(thread->times.ready_ns, into);
    case COLUMN_BLOCKED:
        return ms(thread->times.blocked_ns, into);
    case COLUMN_UNEXPLAINED:
        return ms(thread->times.unexplained_ns, into);
    case COLUMN_PREEMPTED:
        return ms(thread->times.preempted_ns, into);
    case COLUMN_VOLUNTARY:
        return count_of(thread->voluntary_count, into);
    case COLUMN_INVOLUNTARY:
        return count_of(thread->involuntary_count, into);
    case COLUMN_HOST:
        host = profile_host(profile, thread->task.segment);
        return host == NULL ? "-" : host;
    case COLUMNS:
        break;
    }
    return "";
}

/* How wide a row is, with so much for the name of a thread. */
static size_t row_width(const struct layout *layout, int rank, size_t name_width)
{
    size_t width = 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        const size_t needed = i == COLUMN_THREAD ? name_width : layout->widths[i];
        width += columns[i].rank < rank ? needed + 1 : 0;
    }
    return width - 1;
}

/* What the columns need, names up to a limit, and which of them the page has room for. */
static void lay_out(const struct page *page, const struct profile *profile,
                    const struct profile_thread *const *threads, size_t shown,
                    struct layout *layout)
{
    *layout = (struct layout){.rank = columns[COLUMN_HOST].rank + profile_has_hosts(profile)};
    for (size_t i = 0; i < COLUMNS; i++) {
        layout->widths[i] = strlen(columns[i].title);
        for (size_t at = 0; at < shown; at++) {
            char into[CELL_BYTES];
            size_t width = text_width(cell(profile, threads[at], (enum column)i, into));
            width = is_text((enum column)i) && width > NAME_WIDTH ? NAME_WIDTH : width;
            layout->widths[i] = width > layout->widths[i] ? width : layout->widths[i];
        }
    }
    size_t *name = &layout->widths[COLUMN_THREAD];
    const size_t least = *name < NAME_WIDTH_MIN ? *name : NAME_WIDTH_MIN;
    while (layout->rank > 1 && row_width(layout, layout->rank, least) > page->columns) {
        layout->rank--;
    }
    while (*name > least && row_width(layout, layout->rank, *name) > page->columns) {
        (*name)--;
    }
}

/* Prints the columns of a row, or the titles. */
static void print_row(FILE *file, const struct profile *profile,
                      const struct profile_thread *thread, const struct layout *layout)
{
    const char *separator = "";
    for (size_t i = 0; i < COLUMNS; i++) {
        char into[CELL_BYTES];
        if (columns[i].rank >= layout->rank) {
            continue;
        }
        const char *text =
            thread == NULL ? columns[i].title : cell(profile, thread, (enum column)i, into);
        (void)fputs(separator, file);
        separator = " ";
        if (is_text((enum column)i)) {
            text_print_fitted(file, text, layout->widths[i], i != COLUMN_HOST);
        } else {
            (void)fprintf(file, "%*s", (int)layout->widths[i], text);
        }
    }
    (void)fputc('\n', file);
}

static void print_head(const struct page *page, const struct profile *profile,
                       const struct summary *summary)
{
    const uint64_t forgotten = books_print_counter(profile->books_json, "threads_forgotten");
    struct page_text text;
    summary_print_session(page, profile, summary);
    if (page_text_begin(&text)) {
        thread_sentence_write(text.file, profile);
        (void)doubts_threads_write_lacks(text.file, profile, " Mind: ");
        (void)fputc('\n', text.file);
        if (forgotten > 0) {
            (void)fprintf(text.file,
                          "%" PRIu64 " more have no line, since they had ended and others took "
                          "their places.\n",
                          forgotten);
        }
        page_text_end(&text, page, PAGE_PLAIN);
    }
    (void)fputc('\n', page->file);
}

int thread_table_print_text(const struct page *page, const struct profile *profile,
                            const struct summary *summary, size_t limit)
{
    cleanup_(freep) const struct profile_thread **threads = order(profile);
    const size_t shown = count_shown(profile, limit);
    struct layout layout;
    if (threads == NULL) {
        return -ENOMEM;
    }
    lay_out(page, profile, threads, shown, &layout);
    print_head(page, profile, summary);
    (void)fputs(page_style(page, PAGE_TITLE), page->file);
    print_row(page->file, profile, NULL, &layout);
    (void)fputs(page_style(page, PAGE_PLAIN), page->file);
    for (size_t i = 0; i < shown; i++) {
        print_row(page->file, profile, threads[i], &layout);
    }
    if (shown < profile->thread_count) {
        (void)fprintf(page->file, "... and %zu more; -n 0 shows all\n",
                      profile->thread_count - shown);
    }
    if (layout.rank > columns[COLUMN_VOLUNTARY].rank && !doubts_threads_have_switches(profile)) {
        char line[] = "voluntary and involuntary are as far as records tell: there may have been "
                      "more switches, which were not recorded";
        page_print_lines(page, PAGE_PLAIN, line);
    }
    (void)fputc('\n', page->file);
    return 0;
}

static void print_json_thread(struct json_out *out, const struct profile *profile,
                              const struct profile_thread *thread)
{
    const struct profile_task *task = &thread->task;
    const char *host = profile_host(profile, task->segment);
    const bool has_name = task->thread_name != INTERN_NONE;
    const bool has_process = task->process_name != INTERN_NONE;
    json_out_begin(out, NULL, '{');
    json_out_string(out, "name", has_name ? profile_text(profile, task->thread_name) : NULL);
    json_out_string(out, "process", has_process ? profile_text(profile, task->process_name) : NULL);
    json_out_u64(out, "pid", task->pid);
    json_out_u64(out, "tid", task->tid);
    if (profile_has_hosts(profile)) {
        json_out_string(out, "host", host);
    }
    thread_sentence_print_json_times(out, &thread->times);
    json_out_u64(out, "voluntary", thread->voluntary_count);
    json_out_u64(out, "involuntary", thread->involuntary_count);
    json_out_string(out, "source", thread->is_unread ? "switches" : "schedstat");
    json_out_end(out, '}');
}

int thread_table_print_json(FILE *file, const struct profile *profile,
                            const struct summary *summary, size_t limit)
{
    struct json_out out = {.file = file};
    cleanup_(freep) const struct profile_thread **threads = order(profile);
    const size_t shown = count_shown(profile, limit);
    if (threads == NULL) {
        return -ENOMEM;
    }
    summary_json_head(&out, profile, summary);
    json_out_string(&out, "by", report_by_name(REPORT_BY_THREAD));
    json_out_u64(&out, "thread_count", profile->thread_count);
    json_out_begin(&out, "threads", '[');
    for (size_t i = 0; i < shown; i++) {
        print_json_thread(&out, profile, threads[i]);
    }
    json_out_end(&out, ']');
    summary_json_foot(&out, profile, summary);
    return 0;
}
