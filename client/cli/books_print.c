/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints the books as a table. The object may come from any user's file: members that are missing,
 * or not numbers, are printed as "-". A column without any number is left out.
 */
#include "books_print.h"

#include "books_events.h"
#include "cleanup.h"
#include "extremes.h"
#include "json.h"
#include "text_out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define CELL_BYTES       24
#define COLUMN_COUNT     (sizeof columns / sizeof columns[0])
#define DEPTH_MAX        16
#define LABEL_WIDTH      5
#define UNREAD_SHOWN_MAX 3

static const char *const columns[] = {
    "expected", "received",    "lost", "throttled", "missed",
    "idle",     "unexplained", "kept", "filtered",  "dropped",
};

/* Sums that concern all CPUs, said only when they are not 0. */
static const struct {
    const char *member;
    const char *of_one;
    const char *of_many;
    bool is_grave; /* said without the table too */
} remarks[] = {
    {"truncated_stacks", "stack incomplete", "stacks incomplete", false},
    {"stitched_stacks", "of them repaired from earlier samples of its thread",
     "of them repaired from earlier samples of their threads", false},
    {"unproved_stacks", "stack reaches its root over a frame pointer that may be something else",
     "stacks reach their roots over frame pointers that may be something else", false},
    {"cold_stacks", "stack may be short, since a file in it had not been read when it was taken",
     "stacks may be short, since files in them had not been read when they were taken", false},
    {"mapping_uncertain", "sample was taken while it was not certain which files were mapped",
     "samples were taken while it was not certain which files were mapped", false},
    {"modules_unread", "module could not be read, so its functions have no names",
     "modules could not be read, so their functions have no names", true},
    {"proc_unread", "time /proc could not be read, or not whole, for some process",
     "times /proc could not be read, or not whole, for some process", false},
    {"sideband_lost", "record of what processes do was lost; all were read again",
     "records of what processes do were lost; all were read again", false},
    {"bad_records", "record of the kernel made no sense", "records of the kernel made no sense",
     false},
    {"table_refused", "process, thread, mapping or name found no place in the daemon's table",
     "processes, threads, mappings and names found no place in the daemon's table", true},
    {"names_refused", "function has no name, since its user had used up a share of the recording's",
     "functions have no names, since their user had used up a share of the recording's", true},
    {"mappings_refused",
     "mapping is unknown, since its user had used up a share of the recording's",
     "mappings are unknown, since their user had used up a share of the recording's", true},
    {"addresses_refused", "address has no name, since its user had too many that waited for one",
     "addresses have no names, since their user had too many that waited for one", true},
    {"tasks_refused",
     "process, thread or address found no room in its user's share; its samples are dropped",
     "processes, threads or addresses found no room in their user's share; their samples are "
     "dropped",
     true},
    {"threads_refused",
     "time a thread found no place among those whose waits are followed, so its waits are missing",
     "times threads found no place among those whose waits are followed, so their waits are missing",
     true},
    {"threads_forgotten", "thread has no line, since it had ended and others took its place",
     "threads have no line, since they had ended and others took their places", false},
    {"wait_stacks_refused", "wait has no stack, since its user's share of them was full",
     "waits have no stack, since their users' shares of them were full", false},
    {"orphan_partials", "sample has no stack, since it never came",
     "samples have no stack, since it never came", false},
    {"orphan_completions", "stack belongs to no sample", "stacks belong to no sample", false},
};

/* More than this of a CPU's ticks in one of these, and the profile is not what it seems. */
#define WARNING_PERCENT 1
#define WARNINGS_MAX    8 /* lines; machines have many CPUs */

static const struct {
    const char *member;
    const char *text;
    int64_t at_ends; /* of every run, however short: the fractions of a period (docs/books.md) */
} warnings[] = {
    {"lost", "the daemon did not empty the ring in time; lower the rate or stack_copy_bytes", 0},
    {"throttled",
     "the kernel held the timer back; raise kernel.perf_event_max_sample_rate, and set "
     "kernel.perf_cpu_time_max_percent to 0, or it falls again",
     0},
    {"missed", NULL, 0}, /* write_missed() */
    {"unexplained",
     "nothing that is measured says where they went; THE BOOKS in profctl(1) says what can be "
     "in it",
     2},
    {"dropped", "the trace buffer of a CPU was full; read sooner, or raise buffer_kib_per_cpu", 0},
};

/* Returns whether there is a number. */
static bool print_cell(const cJSON *row, const char *member, char *into)
{
    int64_t number = 0;
    if (json_read_integer(cJSON_GetObjectItemCaseSensitive(row, member), -JSON_INTEGER_MAX,
                          JSON_INTEGER_MAX, &number)) {
        (void)snprintf(into, CELL_BYTES, "%" PRId64, number);
        return true;
    }
    (void)snprintf(into, CELL_BYTES, "-");
    return false;
}

/* A column without a number keeps the width 0. */
static void widen(const cJSON *row, size_t *widths)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        char cell[CELL_BYTES];
        if (print_cell(row, columns[i], cell)) {
            widths[i] = max_u64(widths[i], max_u64(strlen(columns[i]), strlen(cell)));
        }
    }
}

static void print_row(FILE *file, const char *label, const cJSON *row, const size_t *widths)
{
    (void)fprintf(file, "%*s", LABEL_WIDTH, label);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        char cell[CELL_BYTES];
        (void)print_cell(row, columns[i], cell);
        if (widths[i] > 0) {
            (void)fprintf(file, "  %*s", (int)widths[i], cell);
        }
    }
    (void)fputc('\n', file);
}

/* The names of docs/books.md in words; others as they are. */
static void print_idle_source(FILE *file, const char *source)
{
    static const struct {
        const char *source;
        const char *words;
    } names[] = {
        {"switches", "context switches"},
        {"switches,cpuidle", "context switches, and the kernel's sums for cpuidle"},
        {"switches,proc_stat", "context switches, and the kernel's sums in /proc/stat"},
    };
    const char *words = source;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        words = strcmp(source, names[i].source) == 0 ? names[i].words : words;
    }
    (void)fputs("idle time source: ", file);
    text_print(file, words);
    (void)fputc('\n', file);
}

/* Names the modules that could not be read. False: it is not known which of so many. */
static bool print_unread(FILE *file, const struct books_unread *unread, int64_t count)
{
    if (unread == NULL || (int64_t)unread->count + unread->has_kernel != count) {
        return false;
    }
    if (unread->has_kernel) {
        (void)fputs("functions of the kernel have no names; profctl doctor says how to have them\n",
                    file);
    }
    for (size_t i = 0; i < unread->count && i < UNREAD_SHOWN_MAX; i++) {
        (void)fputs(i == 0 ? "" : ", ", file);
        text_print(file, unread->paths[i]);
    }
    if (unread->count > UNREAD_SHOWN_MAX) {
        (void)fprintf(file, " and %zu more", unread->count - UNREAD_SHOWN_MAX);
    }
    if (unread->count > 0) {
        (void)fputs(" could not be read, so functions there have no names\n", file);
    }
    return true;
}

static void print_remarks(FILE *file, const cJSON *books, bool is_brief,
                          const struct books_unread *unread)
{
    for (size_t i = 0; i < sizeof remarks / sizeof remarks[0]; i++) {
        int64_t count = 0;
        if ((remarks[i].is_grave || !is_brief) &&
            json_read_integer(cJSON_GetObjectItemCaseSensitive(books, remarks[i].member), 1,
                              JSON_INTEGER_MAX, &count) &&
            (strcmp(remarks[i].member, "modules_unread") != 0 ||
             !print_unread(file, unread, count))) {
            (void)fprintf(file, "%" PRId64 " %s\n", count,
                          count == 1 ? remarks[i].of_one : remarks[i].of_many);
        }
    }
}

static bool read_count(const cJSON *row, const char *member, int64_t *ret)
{
    return json_read_integer(cJSON_GetObjectItemCaseSensitive(row, member), -JSON_INTEGER_MAX,
                             JSON_INTEGER_MAX, ret);
}

/* A member of the row, 0 where it has none or less. */
static double amount(const cJSON *row, const char *member)
{
    int64_t count = 0;
    return read_count(row, member, &count) && count > 0 ? (double)count : 0;
}

/*
 * Why ticks were missed, by the numbers: what was stolen, in ticks, answers for at least half of
 * them; or samples came so close upon each other that each was still at work when the next was due;
 * or neither, and interrupts were off.
 */
static void write_missed(FILE *file, const cJSON *row, double period_ns)
{
    double missed = amount(row, "missed");
    double steal_ns = amount(row, "steal_ns");
    double busy_ns = (amount(row, "expected") - amount(row, "idle")) * period_ns;
    double taken = amount(row, "received") + amount(row, "lost");
    if (period_ns > 0 && 2 * steal_ns >= missed * period_ns) {
        (void)fprintf(file,
                      "the hypervisor ran something else for %.0f ms; what ran then is not in the "
                      "profile",
                      steal_ns / 1e6);
    } else if (2 * amount(row, "crowded") >= missed && taken > 0 && busy_ns > 0) {
        (void)fprintf(file,
                      "a sample takes longer than the %.1f us from a tick to the next: they came "
                      "%.1f us apart; lower the rate to %.0f Hz",
                      period_ns / 1e3, busy_ns / taken / 1e3, 1e9 * taken / busy_ns);
    } else {
        (void)fprintf(file,
                      "the timer's interrupt came too late for them: interrupts were off%s; what "
                      "ran then is not in the profile",
                      steal_ns == 0    ? ", or a hypervisor that does not tell ran something else"
                      : period_ns == 0 ? ", or the hypervisor ran something else"
                                       : "");
        if (steal_ns > 0) {
            (void)fprintf(file, " (the hypervisor took %.0f ms of it)", steal_ns / 1e6);
        }
    }
}

/*
 * Why ticks are unexplained: what was stolen, in ticks, answers for at least half of them. Where
 * more ticks are explained than there were, it cannot be the cause.
 */
static void write_unexplained(FILE *file, const cJSON *row, double period_ns, const char *otherwise)
{
    double steal_ns = amount(row, "steal_ns");
    int64_t ticks = 0;
    bool is_negative = read_count(row, "unexplained", &ticks) && ticks < 0;
    if (is_negative) {
        (void)fputs("the other terms together are more than the measured time of the CPU has "
                    "periods; THE BOOKS in profctl(1) says how that may be",
                    file);
    } else if (period_ns > 0 && steal_ns > 0 && 2 * steal_ns >= (double)ticks * period_ns) {
        (void)fprintf(file,
                      "the hypervisor ran something else for %.0f ms, and is the likely cause",
                      steal_ns / 1e6);
    } else {
        (void)fputs(otherwise, file);
    }
}

static void write_reason(FILE *file, const cJSON *row, double period_ns, size_t which)
{
    if (warnings[which].text == NULL) {
        write_missed(file, row, period_ns);
    } else if (strcmp(warnings[which].member, "unexplained") == 0) {
        write_unexplained(file, row, period_ns, warnings[which].text);
    } else {
        (void)fputs(warnings[which].text, file);
    }
}

/* Says what is wrong with one term. */
static void write_warning(FILE *file, const char *label, const cJSON *row, double period_ns,
                          size_t which, double percent)
{
    (void)fprintf(file, "warning: %s: %.1f %% of the ticks are %s: ", label, percent,
                  warnings[which].member);
    write_reason(file, row, period_ns, which);
    (void)fputc('\n', file);
}

/* Whether a row has more of a term than a recording of a busy machine has; `*ret_percent` is how
 * much. */
static bool is_doubtful(const cJSON *row, int64_t expected, size_t which, double *ret_percent)
{
    int64_t ticks = 0;
    if (!read_count(row, warnings[which].member, &ticks)) {
        return false;
    }
    *ret_percent = 100 * (double)ticks / (double)expected;
    return fabs(*ret_percent) > WARNING_PERCENT && imaxabs(ticks) > warnings[which].at_ends;
}

/* Warns of one CPU, or of all; returns how many warnings there were, with those beyond the limit.
 */
static size_t warn(FILE *file, const char *label, const cJSON *row, double period_ns,
                   size_t count_before)
{
    size_t count = count_before;
    int64_t expected = 0;
    if (!read_count(row, "expected", &expected) || expected <= 0) {
        return count;
    }
    for (size_t i = 0; i < sizeof warnings / sizeof warnings[0]; i++) {
        double percent = 0;
        if (is_doubtful(row, expected, i, &percent)) {
            if (count < WARNINGS_MAX) {
                write_warning(file, label, row, period_ns, i, percent);
            }
            count++;
        }
    }
    return count;
}

/* The same by term, each in a sentence: of the CPU that has most, and of how many more. */
static void print_brief_warnings(FILE *file, const cJSON *cpus, double period_ns)
{
    for (size_t i = 0; i < sizeof warnings / sizeof warnings[0]; i++) {
        char number[CELL_BYTES];
        char label[2 * CELL_BYTES];
        double worst = 0;
        size_t count = 0;
        const cJSON *cpu = NULL;
        const cJSON *worst_cpu = NULL;
        cJSON_ArrayForEach(cpu, cpus)
        {
            double percent = 0;
            int64_t expected = 0;
            if (read_count(cpu, "expected", &expected) && expected > 0 &&
                is_doubtful(cpu, expected, i, &percent)) {
                count++;
                worst_cpu = fabs(percent) > fabs(worst) ? cpu : worst_cpu;
                worst = fabs(percent) > fabs(worst) ? percent : worst;
            }
        }
        if (worst_cpu != NULL) {
            (void)print_cell(worst_cpu, "cpu", number);
            (void)snprintf(label, sizeof label, count > 1 ? "cpu %s and %zu more" : "cpu %s",
                           number, count - 1);
            write_warning(file, label, worst_cpu, period_ns, i, worst);
        }
    }
}

static void print_warnings(FILE *file, const cJSON *cpus, const cJSON *total, double period_ns)
{
    size_t count = 0;
    const cJSON *cpu = NULL;
    cJSON_ArrayForEach(cpu, cpus)
    {
        char number[CELL_BYTES];
        char label[CELL_BYTES + 4];
        (void)print_cell(cpu, "cpu", number);
        (void)snprintf(label, sizeof label, "cpu %s", number);
        count = warn(file, label, cpu, period_ns, count);
    }
    if (cJSON_GetArraySize(cpus) == 0) {
        count = warn(file, "all CPUs", total, period_ns, count);
    }
    if (count > WARNINGS_MAX) {
        (void)fprintf(file, "warning: and %zu more of the same\n", count - WARNINGS_MAX);
    }
}

/* Returned: json_freep(). NULL where the text is no such object. */
static cJSON *parse_books(const char *books_json)
{
    cJSON *books = NULL;
    if (books_json == NULL ||
        json_parse(books_json, strlen(books_json), DEPTH_MAX, &books, NULL) < 0) {
        return NULL;
    }
    return books;
}

bool books_print_reason(const char *books_json, const char *member, char *into)
{
    cleanup_(json_freep) cJSON *books = parse_books(books_json);
    const cJSON *row = cJSON_GetObjectItemCaseSensitive(books, "total");
    double period_ns = amount(books, "period_ns");
    double percent = 0;
    int64_t expected = 0;
    size_t which = 0;
    while (which < sizeof warnings / sizeof warnings[0] &&
           strcmp(warnings[which].member, member) != 0) {
        which++;
    }
    if (which == sizeof warnings / sizeof warnings[0] || !read_count(row, "expected", &expected) ||
        expected <= 0 || !is_doubtful(row, expected, which, &percent)) {
        return false;
    }
    FILE *file = fmemopen(into, BOOKS_PRINT_REASON_BYTES, "w");
    if (file == NULL) {
        return false;
    }
    write_reason(file, row, period_ns, which);
    return fclose(file) == 0;
}

bool books_print_worst(const char *books_json, char *into)
{
    cleanup_(json_freep) cJSON *books = parse_books(books_json);
    double worst = 0;
    const cJSON *cpu = NULL;
    cJSON_ArrayForEach(cpu, cJSON_GetObjectItemCaseSensitive(books, "cpus"))
    {
        char number[CELL_BYTES];
        double percent = 0;
        int64_t expected = 0;
        bool has_ticks = read_count(cpu, "expected", &expected) && expected > 0;
        (void)print_cell(cpu, "cpu", number);
        for (size_t i = 0; i < sizeof warnings / sizeof warnings[0] && has_ticks; i++) {
            if (is_doubtful(cpu, expected, i, &percent) && fabs(percent) > worst) {
                worst = fabs(percent);
                (void)snprintf(into, BOOKS_PRINT_WORST_BYTES,
                               "%.1f %% of the ticks of cpu %s are %s", percent, number,
                               warnings[i].member);
            }
        }
    }
    return worst > 0;
}

uint64_t books_print_counter(const char *books_json, const char *member)
{
    cleanup_(json_freep) cJSON *books = parse_books(books_json);
    int64_t count = 0;
    (void)json_read_integer(cJSON_GetObjectItemCaseSensitive(books, member), 1, JSON_INTEGER_MAX,
                            &count);
    return (uint64_t)count;
}

uint64_t books_print_period_ns(const char *books_json)
{
    return books_print_counter(books_json, "period_ns");
}

/* What the object's "total" says was kept, 0 where it does not say. */
static uint64_t kept_of(const cJSON *object)
{
    int64_t kept = 0;
    (void)json_read_integer(
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, "total"), "kept"),
        1, JSON_INTEGER_MAX, &kept);
    return (uint64_t)kept;
}

uint64_t books_print_kept(const char *books_json)
{
    cleanup_(json_freep) cJSON *books = parse_books(books_json);
    return kept_of(books);
}

uint64_t books_print_kept_of_all(const char *books_json)
{
    cleanup_(json_freep) cJSON *books = parse_books(books_json);
    uint64_t kept = kept_of(books);
    const cJSON *event = NULL;
    cJSON_ArrayForEach(event, cJSON_GetObjectItemCaseSensitive(books, "events"))
    {
        kept += kept_of(event);
    }
    return kept;
}

/* Whether a column has nothing but zeros. */
static bool is_all_zero(const cJSON *cpus, const cJSON *total, const char *member)
{
    int64_t count = 0;
    const cJSON *cpu = NULL;
    cJSON_ArrayForEach(cpu, cpus)
    {
        if (read_count(cpu, member, &count) && count != 0) {
            return false;
        }
    }
    return !read_count(total, member, &count) || count == 0;
}

static size_t table_width(const size_t *widths)
{
    size_t width = LABEL_WIDTH;
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        width += widths[i] > 0 ? widths[i] + 2 : 0;
    }
    return width;
}

/* Leaves out the columns of zeros of a table that is too wide for `room`. */
static void narrow(size_t room, const cJSON *cpus, const cJSON *total, size_t *widths)
{
    bool is_too_wide = table_width(widths) > room;
    for (size_t i = 0; i < COLUMN_COUNT && is_too_wide; i++) {
        widths[i] = is_all_zero(cpus, total, columns[i]) ? 0 : widths[i];
    }
}

/* "- cpu 0: 7762 expected, 7752 received, 9 missed": all terms of a row but zeros. */
static void write_stacked(FILE *file, const char *label, const cJSON *row)
{
    const char *separator = ": ";
    (void)fprintf(file, "- %s", label);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        int64_t count = 0;
        if (read_count(row, columns[i], &count) && count != 0) {
            (void)fprintf(file, "%s%" PRId64 " %s", separator, count, columns[i]);
            separator = ", ";
        }
    }
    (void)fputs(separator[0] == ':' ? ": nothing\n" : "\n", file);
}

/* The table for a page that is narrower: a paragraph for each row. */
static void print_stacked(const struct page *page, const cJSON *cpus, const cJSON *total)
{
    struct page_text text;
    const cJSON *cpu = NULL;
    if (!page_text_begin(&text)) {
        return;
    }
    cJSON_ArrayForEach(cpu, cpus)
    {
        char number[CELL_BYTES];
        char label[CELL_BYTES + 4];
        (void)print_cell(cpu, "cpu", number);
        (void)snprintf(label, sizeof label, "cpu %s", number);
        write_stacked(text.file, label, cpu);
    }
    write_stacked(text.file, "total", total);
    page_text_end(&text, page, PAGE_PLAIN);
}

/* Names the columns that `widths` lacks of those that have numbers. */
static void print_left_out(const struct page *page, const size_t *all_widths, const size_t *widths)
{
    struct page_text text;
    const char *separator = "0 on each CPU: ";
    if (!page_text_begin(&text)) {
        return;
    }
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (all_widths[i] > 0 && widths[i] == 0) {
            (void)fprintf(text.file, "%s%s", separator, columns[i]);
            separator = ", ";
        }
    }
    page_text_end(&text, page, PAGE_PLAIN);
}

static void print_columns(const struct page *page, const cJSON *cpus, const cJSON *total,
                          const size_t *widths)
{
    FILE *file = page->file;
    const cJSON *cpu = NULL;
    (void)fprintf(file, "%s%*s", page_style(page, PAGE_TITLE), LABEL_WIDTH, "cpu");
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (widths[i] > 0) {
            (void)fprintf(file, "  %*s", (int)widths[i], columns[i]);
        }
    }
    (void)fprintf(file, "%s\n", page_style(page, PAGE_PLAIN));
    cJSON_ArrayForEach(cpu, cpus)
    {
        char label[CELL_BYTES];
        (void)print_cell(cpu, "cpu", label);
        print_row(file, label, cpu, widths);
    }
    print_row(file, "total", total, widths);
}

static void print_rows(const struct page *page, const cJSON *cpus, const cJSON *total)
{
    size_t all_widths[COLUMN_COUNT] = {0};
    size_t widths[COLUMN_COUNT];
    /* The table has no minimum of its own, unlike those with names. */
    size_t room = page->columns == PAGE_UNLIMITED ? PAGE_UNLIMITED : page_prose_columns(page);
    const cJSON *cpu = NULL;
    cJSON_ArrayForEach(cpu, cpus)
    {
        widen(cpu, all_widths);
    }
    widen(total, all_widths);
    memcpy(widths, all_widths, sizeof widths);
    narrow(room, cpus, total, widths);
    if (table_width(widths) > room) {
        print_stacked(page, cpus, total);
        return;
    }
    print_left_out(page, all_widths, widths);
    if (table_width(widths) > LABEL_WIDTH) {
        print_columns(page, cpus, total, widths);
    }
}

void books_print_table(const struct page *page, const char *books_json)
{
    cleanup_(json_freep) cJSON *books = parse_books(books_json);
    struct page_text text;
    if (!cJSON_IsObject(books)) {
        page_print_lines(page, PAGE_PLAIN,
                         (char[]){"books: not in this recording; the account of ticks comes with "
                                  "the last part of a session"});
        return;
    }
    const cJSON *cpus = cJSON_GetObjectItemCaseSensitive(books, "cpus");
    const cJSON *total = cJSON_GetObjectItemCaseSensitive(books, "total");
    const cJSON *source = cJSON_GetObjectItemCaseSensitive(books, "idle_source");
    print_rows(page, cpus, total);
    if (page_text_begin(&text)) {
        if (cJSON_IsString(source)) {
            print_idle_source(text.file, source->valuestring);
        }
        print_remarks(text.file, books, false, NULL);
        print_warnings(text.file, cpus, total, amount(books, "period_ns"));
        books_events_write(text.file, books);
        page_text_end(&text, page, PAGE_PLAIN);
    }
}

void books_print_print(FILE *file, const char *books_json)
{
    struct page page;
    page_describe_summary(file, &page);
    books_print_table(&page, books_json);
}

bool books_print_total(const char *books_json, const char *member, int64_t *ret)
{
    cleanup_(json_freep) cJSON *books = parse_books(books_json);
    return read_count(cJSON_GetObjectItemCaseSensitive(books, "total"), member, ret);
}

void books_print_event_brief(const struct page *page, const char *books_json, const char *event)
{
    cleanup_(json_freep) cJSON *books = parse_books(books_json);
    struct page_text text;
    if (page_text_begin(&text)) {
        books_events_write_one(text.file, books, event);
        page_text_end(&text, page, PAGE_PLAIN);
    }
}

bool books_print_event(const char *books_json, const char *event, const char *member, int64_t *ret)
{
    cleanup_(json_freep) cJSON *books = parse_books(books_json);
    bool is_period = strcmp(member, "period") == 0;
    bool is_found = false;
    const cJSON *line = NULL;
    cJSON_ArrayForEach(line, cJSON_GetObjectItemCaseSensitive(books, "events"))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "event"));
        const cJSON *holder = is_period ? line : cJSON_GetObjectItemCaseSensitive(line, "total");
        int64_t value = 0;
        if (name == NULL || strcmp(name, event) != 0 || !read_count(holder, member, &value)) {
            continue;
        }
        bool differs = is_period && is_found && *ret != value;
        *ret = differs ? 0 : is_period ? value : value + (is_found ? *ret : 0);
        is_found = true;
    }
    return is_found;
}

char *books_print_leader(const char *books_json, const char *event)
{
    cleanup_(json_freep) cJSON *books = parse_books(books_json);
    const cJSON *line = NULL;
    cJSON_ArrayForEach(line, cJSON_GetObjectItemCaseSensitive(books, "events"))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "event"));
        const char *leader = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "leader"));
        if (name != NULL && leader != NULL && strcmp(name, event) == 0) {
            return strdup(leader);
        }
    }
    return NULL;
}

/* "16 received, 2 missed": the terms of a list that are not 0, the first behind `separator`.
 * Returns what the next list is separated by. */
static const char *print_terms(FILE *file, const cJSON *total, const char *const *terms,
                               size_t count, const char *separator)
{
    const char *next = separator;
    for (size_t i = 0; i < count; i++) {
        int64_t ticks = 0;
        if (read_count(total, terms[i], &ticks) && ticks != 0) {
            (void)fprintf(file, "%s%" PRId64 " %s%s", separator, ticks, terms[i],
                          ticks < 0 ? " (more samples came than the measured time has periods)"
                                    : "");
            separator = ", ";
            next = "; ";
        }
    }
    return next;
}

/* The line of the books and their warnings. `table`: what shows them of each CPU. `unread`: as
 * books_print_short() has it. */
static void print_brief(const struct page *page, const char *books_json, const char *table,
                        bool has_remarks, const struct books_unread *unread)
{
    static const char *const received[] = {"kept", "filtered", "dropped"};
    static const char *const others[] = {"lost", "throttled", "missed", "idle", "unexplained"};
    cleanup_(json_freep) cJSON *books = parse_books(books_json);
    const cJSON *cpus = cJSON_GetObjectItemCaseSensitive(books, "cpus");
    const cJSON *total = cJSON_GetObjectItemCaseSensitive(books, "total");
    int64_t expected = 0;
    struct page_text text;
    if (!read_count(total, "expected", &expected)) {
        books_print_table(page, books_json);
        return;
    }
    if (page_text_begin(&text)) {
        (void)fprintf(text.file, "books: of %" PRId64 " ticks", expected);
        const char *separator =
            print_terms(text.file, total, received, sizeof received / sizeof received[0], " ");
        (void)print_terms(text.file, total, others, sizeof others / sizeof others[0], separator);
        (void)fprintf(text.file, " (%s: of each CPU)\n", table);
        books_events_write(text.file, books);
        page_text_end(&text, page, PAGE_PLAIN);
    }
    if (page_text_begin(&text)) {
        double period_ns = amount(books, "period_ns");
        if (cJSON_GetArraySize(cpus) == 0) {
            print_warnings(text.file, cpus, total, period_ns);
        } else {
            print_brief_warnings(text.file, cpus, period_ns);
        }
        if (has_remarks) {
            print_remarks(text.file, books, true, unread);
            books_events_warn(text.file, books);
        }
        page_text_end(&text, page, PAGE_WARNING);
    }
}

void books_print_brief(const struct page *page, const char *books_json)
{
    print_brief(page, books_json, "--books", false, NULL);
}

void books_print_short(FILE *file, const char *books_json, const char *table,
                       const struct books_unread *unread)
{
    struct page page;
    page_describe_summary(file, &page);
    print_brief(&page, books_json, table, true, unread);
}
