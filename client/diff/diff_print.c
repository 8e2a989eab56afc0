/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A comparison for a person: what was compared and how surely, and below it the rows. What is not
 * sure is grey; where nothing can be sure, what is no more than the noise within the runs. Names
 * come from recordings: they reach the page through text_out.h alone.
 */
#include "cleanup.h"
#include "compare.h"
#include "diff_parts.h"
#include "measure.h"
#include "text_out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Of the columns before the texts, with the gap behind them. */
#define NUMBERS_WIDTH ((size_t)46)
#define NARROW_WIDTH  ((size_t)20) /* and of those of a narrow page */
#define TEXTS_WIDTH   ((size_t)24) /* that numbers leave to both texts */
#define GAP_WIDTH     ((size_t)2)
#define NAME_WEIGHT   3
#define STACK_WEIGHT  6
#define MODULE_WEIGHT 2
#define COLUMNS       2
#define PATH_BETWEEN  " > "
#define PATH_CUT      "... > "
#define CLASSES       2

bool diff_is_of_parts(const struct diff *diff)
{
    return diff->options.per == DIFF_PER_CPU ||
           (diff->options.per != DIFF_PER_WORK && diff->event.is_clock);
}

/* "faults", "thousand faults", so that the whole has at most five digits. */
static struct diff_unit unit_of_counts(const struct diff *diff)
{
    static const struct {
        double scale;
        const char *before;
    } sizes[] = {{1, ""}, {1e-3, "thousand "}, {1e-6, "million "}, {1e-9, "billion "}};
    struct diff_unit unit = {.scale = 1};
    char name[DIFF_UNIT_BYTES];
    size_t at = 0;
    while (at + 1 < sizeof sizes / sizeof sizes[0] &&
           fmax(diff->wholes[DIFF_BEFORE], diff->wholes[DIFF_AFTER]) * sizes[at].scale >= 1e4) {
        at++;
    }
    unit.scale = sizes[at].scale;
    (void)snprintf(unit.name, sizeof unit.name, "%s%s", sizes[at].before,
                   diff_whole_name(diff, name));
    return unit;
}

struct diff_unit diff_unit_of(const struct diff *diff)
{
    static const struct diff_unit units[] = {{1, "s"}, {1e3, "ms"}, {1e6, "us"}, {1e9, "ns"}};
    size_t at = 0;
    if (diff_is_of_parts(diff)) {
        return (struct diff_unit){100, "%"};
    }
    if (!diff->event.is_clock && !diff->event.is_time) {
        return unit_of_counts(diff);
    }
    while (at + 1 < sizeof units / sizeof units[0] &&
           fmax(diff->wholes[DIFF_BEFORE], diff->wholes[DIFF_AFTER]) * units[at].scale < 1) {
        at++;
    }
    return units[at];
}

/* What rows are, in words. */
static const char *row_words(enum diff_by by)
{
    static const char *const words[] = {
        [DIFF_BY_FUNCTION] = "functions",   [DIFF_BY_STACK] = "stacks",
        [DIFF_BY_MODULE] = "modules",       [DIFF_BY_COMMAND] = "commands",
        [DIFF_BY_THREAD] = "threads",       [DIFF_BY_UNIT] = "units",
        [DIFF_BY_CONTAINER] = "containers", [DIFF_BY_USER] = "users",
    };
    return words[by];
}

static void write_side(FILE *file, const struct diff *diff, enum diff_side side)
{
    char name[DIFF_NAME_BYTES];
    char count[TEXT_COUNT_BYTES];
    char amount[MEASURE_WORDS_BYTES];
    uint64_t samples = 0;
    uint64_t value = 0;
    double length_s = 0;
    for (size_t i = 0; i < diff->part_count; i++) {
        value += diff->parts[i].side == side ? diff->parts[i].fold.value : 0;
        samples += diff->parts[i].side == side ? diff->parts[i].fold.sample_count : 0;
        length_s += diff->parts[i].side == side ? diff->parts[i].length_s : 0;
    }
    (void)fprintf(file, "%s: ", side == DIFF_BEFORE ? "before" : "after");
    text_print(file, diff_side_name(diff, side, name));
    (void)fprintf(file, ", %s", text_samples(samples, count));
    if (!diff->event.is_clock) {
        (void)fputs(" of ", file);
        text_print(file, diff->event.name);
        (void)fputs(", ", file);
        text_print(file, measure_words(&diff->event, value, amount));
        (void)fputs(",", file);
    }
    (void)fprintf(file, " in %.3f s\n", length_s);
}

/* The part of the CPUs' time that all samples of a side had; below 0: it is not known. */
static double part_of_time(const struct diff *diff, enum diff_side side)
{
    double samples = 0;
    double seen = 0;
    for (size_t i = 0; i < diff->part_count; i++) {
        const struct part *part = &diff->parts[i];
        if (part->side == side) {
            samples += fold_whole(&part->fold);
            seen = part->seen > 0 && seen >= 0 ? seen + part->seen : -1;
        }
    }
    return seen > 0 && !diff->options.is_part_of_time ? samples / seen : -1;
}

/* Of another event than the clock. */
static void write_event_numbers(FILE *file, const struct diff *diff)
{
    const double *wholes = diff->wholes;
    struct diff_unit unit = diff_unit_of(diff);
    char whole[DIFF_UNIT_BYTES];
    (void)diff_whole_name(diff, whole);
    if (diff_is_of_parts(diff)) {
        (void)fprintf(file, "Numbers are percent of the %s of all that is compared.\n", whole);
        return;
    }
    (void)fprintf(file,
                  "Numbers are %s%s%s for %s. All that is compared: %.2f before, %.2f after "
                  "(%+.1f %%).\n",
                  unit.name, diff->event.is_time ? " of " : "", diff->event.is_time ? whole : "",
                  diff->options.per == DIFF_PER_WORK ? "a unit of work"
                                                     : "each second of the recording",
                  unit.scale * wholes[DIFF_BEFORE], unit.scale * wholes[DIFF_AFTER],
                  100 * (wholes[DIFF_AFTER] / wholes[DIFF_BEFORE] - 1));
}

/* How many digits a number above 0 has behind the point, so that it has three in all. */
static int digits_behind_point(double number)
{
    return (int)fmin(fmax(2 - floor(log10(number)), 0), 9);
}

/* "1.60 -> 2.05 CPU-seconds a recording (+28 %)". Shares of what each side had hide that. */
static void write_wholes(FILE *file, const struct diff *diff)
{
    double before_s = diff_cpu_seconds(diff, DIFF_BEFORE);
    double after_s = diff_cpu_seconds(diff, DIFF_AFTER);
    if (!(before_s > 0) || !(after_s > 0) || diff->options.per == DIFF_PER_WORK) {
        return;
    }
    double change = after_s / before_s - 1;
    (void)fprintf(file, "%.*f -> %.*f CPU-seconds%s (%+.0f %%)", digits_behind_point(before_s),
                  before_s, digits_behind_point(after_s), after_s,
                  diff->part_count > DIFF_SIDES ? " a recording" : "", 100 * change);
    (void)fputs(fabs(change) > DIFF_MUCH ? "; if both did the same work, --per 1 compares these\n"
                                         : "\n",
                file);
}

static void write_numbers(FILE *file, const struct diff *diff)
{
    const double *wholes = diff->wholes;
    struct diff_unit unit = diff_unit_of(diff);
    if (!diff->event.is_clock) {
        write_event_numbers(file, diff);
        return;
    }
    double before = part_of_time(diff, DIFF_BEFORE);
    double after = part_of_time(diff, DIFF_AFTER);
    switch (diff->options.per) {
    case DIFF_PER_TIME:
        (void)fprintf(file,
                      "Numbers are percent of the CPUs' time. All that is compared: %.2f before, "
                      "%.2f after.\n",
                      100 * wholes[DIFF_BEFORE], 100 * wholes[DIFF_AFTER]);
        return;
    case DIFF_PER_WORK:
        (void)fprintf(file,
                      "Numbers are %s of CPU time for a unit of work. All that is compared: %.2f "
                      "before, %.2f after (%+.1f %%).\n",
                      unit.name, unit.scale * wholes[DIFF_BEFORE], unit.scale * wholes[DIFF_AFTER],
                      100 * (wholes[DIFF_AFTER] / wholes[DIFF_BEFORE] - 1));
        return;
    case DIFF_PER_ANY:
    case DIFF_PER_CPU:
        break;
    }
    (void)fputs("Numbers are percent of the CPU time of all that is compared", file);
    if (before >= 0 && after >= 0) {
        (void)fprintf(file, ", which was %.2f %% of the CPUs' time before and %.2f %% after",
                      100 * before, 100 * after);
    }
    (void)fputs(".\n", file);
}

/* An option that names the event, if it is not the clock. A name stands there only if a shell takes
 * it as it is. */
static void print_event_option(FILE *file, const struct profile_event *event, const char *option)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:";
    bool is_plain = event->name[0] != '-' && event->name[strspn(event->name, plain)] == '\0';
    if (!event->is_clock) {
        (void)fprintf(file, "%s %s", option, is_plain ? event->name : "EVENT");
    }
}

static void print_record(FILE *file, const struct diff *diff, const char *side, const char *command)
{
    (void)fputs("  profctl record", file);
    if (diff->event.is_wait) {
        (void)fputs(" --wall", file);
    } else {
        print_event_option(file, &diff->event, " -e");
    }
    (void)fprintf(file, " -o %s-$i.fxt -- %s\n", side, command);
}

/* What few recordings of a side cannot tell, and how to learn it. */
static void write_unjudged(FILE *file, const struct diff *diff)
{
    size_t needed = diff_recordings_needed(diff->options.discovery_rate);
    (void)fprintf(file,
                  "Fewer than %zu recordings of a side cannot tell a change from the difference "
                  "between runs of the same program: nothing is called sure.\n"
                  "within: the change is known to so much, to both sides, by the noise of sampling "
                  "within these runs alone (95 %%); runs differ by more. Grey is what is inside.\n"
                  "To learn what changed, record each side %zu times, in turn:\n"
                  "  for i in $(seq %zu); do\n",
                  needed, needed, needed);
    print_record(file, diff, "before", "COMMAND_BEFORE");
    print_record(file, diff, "after", "COMMAND_AFTER");
    (void)fputs("  done\n  profctl diff", file);
    print_event_option(file, &diff->event, " --event");
    (void)fputs(" before-?.fxt --with after-?.fxt\n", file);
}

static void write_verdict(FILE *file, const struct diff *diff)
{
    const struct verdict *verdict = &diff->verdict;
    if (!diff_is_judged(diff)) {
        write_unjudged(file, diff);
        return;
    }
    (void)fprintf(
        file,
        "%zu of %zu %s with enough samples changed for sure (*); of all that are called so, "
        "%.3g %% may be false.\n",
        verdict->sure_rows, verdict->row_count, row_words(diff->options.by),
        100 * diff->options.discovery_rate);
    if (diff->options.per != DIFF_PER_CPU) {
        (void)fprintf(file, "Runs of the same side differ by %.3g %% in all together.\n",
                      100 * verdict->whole_spread);
    }
    (void)fprintf(file, "Runs of the same %s by %.3g %% of a function%s.\n",
                  verdict->is_assumed ? "are taken to differ" : "side differ",
                  100 * verdict->spread.part,
                  verdict->is_assumed ? ", as there is too little to learn it from"
                                      : ", beside the noise of sampling");
}

/* Says from which change on rows of some size show it. */
static int write_visible(FILE *file, const struct diff *diff)
{
    static const struct {
        double least;
        double most;
        const char *words;
    } classes[CLASSES] = {{0.1, INFINITY, "10 % or more"}, {0.01, 0.1, "1 to 10 %"}};
    cleanup_(freep) double *parts = calloc(diff->row_count + 1, sizeof *parts);
    const char *before = "A change would mostly be seen from";
    if (parts == NULL) {
        return -ENOMEM;
    }
    for (size_t at = 0; at < CLASSES; at++) {
        size_t count = 0;
        for (size_t i = 0; i < diff->row_count; i++) {
            const struct diff_change *self = &diff->rows[i].self;
            double value = self->values[DIFF_BEFORE];
            double part = value / diff->wholes[DIFF_BEFORE];
            if (self->is_tested && part >= classes[at].least && part < classes[at].most) {
                parts[count++] = self->visible / value;
            }
        }
        if (count > 0) {
            qsort(parts, count, sizeof *parts, compare_doubles);
            (void)fprintf(file, "%s %.*f %% on in one that has %s", before,
                          parts[count / 2] < 0.1 ? 1 : 0, 100 * parts[count / 2],
                          classes[at].words);
            before = ", from";
        }
    }
    (void)fputs(before[0] == ',' ? ".\n" : "", file);
    return 0;
}

void diff_write_warnings(FILE *file, const struct diff *diff)
{
    (void)fputs(diff->warning_count > 0 || diff->unmatched_count > 0 ? "But mind:\n" : "", file);
    for (size_t i = 0; i < diff->warning_count; i++) {
        (void)fputs("- ", file);
        text_print(file, diff->warnings[i]); /* it may quote a recording */
        (void)fputc('\n', file);
    }
    if (diff->unmatched_count > 0) {
        (void)fprintf(file,
                      "- %zu without a name are of a build that the other side does not have, so "
                      "they cannot be compared\n",
                      diff->unmatched_count);
    }
}

int diff_write_head(FILE *file, const struct diff *diff)
{
    write_numbers(file, diff);
    write_wholes(file, diff);
    write_verdict(file, diff);
    return write_visible(file, diff);
}

static int print_head(const struct page *page, const struct diff *diff)
{
    struct page_text text;
    if (!page_text_begin(&text)) {
        return -ENOMEM;
    }
    write_side(text.file, diff, DIFF_BEFORE);
    write_side(text.file, diff, DIFF_AFTER);
    int r = diff_write_head(text.file, diff);
    page_text_end(&text, page, PAGE_PLAIN);
    if (r == 0 && page_text_begin(&text)) {
        diff_write_warnings(text.file, diff);
        page_text_end(&text, page, PAGE_WARNING);
    }
    (void)fputc('\n', page->file);
    return r;
}

/* Joins the names of a stack's frames. Returned: free(). NULL when there is no memory. */
static char *join_names(const char *const *names, size_t count)
{
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *file = open_memstream(&text, &text_bytes);
    if (file == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(file, "%s%s", i == 0 ? "" : PATH_BETWEEN, names[i]);
    }
    bool is_bad = ferror(file) != 0;
    if (fclose(file) != 0 || is_bad) {
        free(text);
        return NULL;
    }
    return text;
}

/* What a row is called. Returned: free(). NULL when there is no memory. */
static char *row_name(const struct diff *diff, const struct diff_row *row)
{
    cleanup_(freep) const char **names = NULL;
    size_t count = 0;
    if (diff->options.by != DIFF_BY_STACK) {
        return strdup(row->name);
    }
    return diff_find_path(diff, row->item, &names, &count) < 0 ? NULL : join_names(names, count);
}

/* Prints a stack, whose frames joined are `whole`, in `columns`: as many frames from the leaf
 * outward as fit whole, and of a leaf that does not fit what is left of it without its middle.
 * Returns 0, or -ENOMEM. */
static int print_path(FILE *file, const struct diff *diff, const struct diff_row *row,
                      const char *whole, size_t columns)
{
    const size_t between_width = strlen(PATH_BETWEEN);
    cleanup_(freep) const char **names = NULL;
    size_t count = 0;
    if (text_width(whole) <= columns) {
        text_print_padded(file, whole, columns);
        return 0;
    }
    if (diff_find_path(diff, row->item, &names, &count) < 0) {
        return -ENOMEM;
    }
    size_t first = count - 1;
    size_t width = strlen(PATH_CUT) + text_width(names[first]);
    if (width > columns) {
        text_print_fitted(file, names[first], columns, true);
        return 0;
    }
    for (; first > 0; first--) {
        width += between_width + text_width(names[first - 1]);
        if (width > columns) {
            break;
        }
    }
    cleanup_(freep) char *shown = join_names(names + first, count - first);
    if (shown == NULL) {
        return -ENOMEM;
    }
    (void)fputs(PATH_CUT, file);
    text_print_padded(file, shown, columns - strlen(PATH_CUT));
    return 0;
}

static const char *row_module(const struct diff_row *row)
{
    const char *slash = row->module == NULL ? NULL : strrchr(row->module, '/');
    return row->module == NULL ? "-" : slash == NULL || slash[1] == '\0' ? row->module : slash + 1;
}

static void print_value(FILE *file, const struct diff_unit *unit, const struct diff_change *change,
                        enum diff_side side)
{
    if (change->samples[side] == 0) {
        (void)fputs("      - ", file);
    } else {
        (void)fprintf(file, "%7.2f ", unit->scale * change->values[side]);
    }
}

/* A change that is sure has its colour, and a mark where there are none. */
static void print_change(const struct page *page, const struct diff_unit *unit,
                         const struct diff_change *change)
{
    const char *style = page_style(page, change->change > 0 ? PAGE_GREW : PAGE_SHRANK);
    (void)fprintf(page->file, "%s%+8.2f%s%s ", change->is_sure ? style : "",
                  unit->scale * change->change, change->is_sure ? "*" : " ",
                  change->is_sure ? page_style(page, PAGE_PLAIN) : "");
}

/* What a change would mostly be seen from, or what it is known to. */
static void print_margin(FILE *file, const struct diff_unit *unit, const struct diff_change *change)
{
    if (change->has_margin) {
        (void)fprintf(file, "%7.2f ",
                      unit->scale * (change->is_tested ? change->visible : change->margin));
    } else {
        (void)fputs("      - ", file);
    }
}

/* Whether a change is no more than what noise is known to make. */
static bool is_noise(const struct diff *diff, const struct diff_change *change)
{
    return diff_is_judged(diff) ? !change->is_sure
                                : !change->has_margin || fabs(change->change) <= change->margin;
}

/* A page on which all numbers would leave too little for names has the most important. */
static bool has_few_numbers(const struct page *page)
{
    return page->columns < NUMBERS_WIDTH + GAP_WIDTH + TEXTS_WIDTH;
}

/* Returns 0, or -ENOMEM. */
static int print_row(const struct page *page, const struct diff *diff, const struct diff_row *row,
                     const char *name, const struct page_column *columns)
{
    int r = 0;
    struct diff_unit unit = diff_unit_of(diff);
    bool is_by_total = diff->options.sorts_total;
    const struct diff_change *first = is_by_total ? &row->total : &row->self;
    const struct diff_change *second = is_by_total ? &row->self : &row->total;
    bool is_faint = is_noise(diff, first) && is_noise(diff, second);
    (void)fputs(is_faint ? page_style(page, PAGE_FAINT) : "", page->file);
    print_value(page->file, &unit, first, DIFF_BEFORE);
    if (!has_few_numbers(page)) {
        print_value(page->file, &unit, first, DIFF_AFTER);
    }
    print_change(page, &unit, first);
    if (!has_few_numbers(page)) {
        print_margin(page->file, &unit, first);
        print_change(page, &unit, second);
    }
    (void)fputs("  ", page->file);
    if (diff->options.by == DIFF_BY_STACK) {
        r = print_path(page->file, diff, row, name, columns[0].width);
    } else {
        text_print_fitted(page->file, name, columns[0].width, !page_is_narrow(page));
    }
    if (!page_is_narrow(page)) {
        (void)fputs("  ", page->file);
        text_print_fitted(page->file, row_module(row), columns[1].width, false);
    }
    (void)fprintf(page->file, "%s\n", is_faint ? page_style(page, PAGE_PLAIN) : "");
    return r;
}

static void print_titles(const struct page *page, const struct diff *diff,
                         const struct page_column *columns)
{
    static const char *const titles[] = {
        [DIFF_BY_FUNCTION] = "function",   [DIFF_BY_STACK] = "stack",   [DIFF_BY_MODULE] = "module",
        [DIFF_BY_COMMAND] = "command",     [DIFF_BY_THREAD] = "thread", [DIFF_BY_UNIT] = "unit",
        [DIFF_BY_CONTAINER] = "container", [DIFF_BY_USER] = "user",
    };
    bool is_by_total = diff->options.sorts_total;
    if (has_few_numbers(page)) {
        (void)fprintf(page->file, "%s before   change    ", page_style(page, PAGE_TITLE));
    } else {
        (void)fprintf(page->file, "%s before   after   change  %s %s  ",
                      page_style(page, PAGE_TITLE), diff_is_judged(diff) ? "seen at" : " within",
                      is_by_total ? "    self " : "   total ");
    }
    text_print_fitted(page->file, titles[diff->options.by], columns[0].width,
                      !page_is_narrow(page));
    if (!page_is_narrow(page)) {
        (void)fputs("  ", page->file);
        text_print_fitted(page->file, "module", columns[1].width, false);
    }
    (void)fprintf(page->file, "%s\n", page_style(page, PAGE_PLAIN));
}

static int print_rows(const struct page *page, const struct diff *diff, size_t shown)
{
    size_t name_weight = diff->options.by == DIFF_BY_STACK ? STACK_WEIGHT : NAME_WEIGHT;
    struct page_column columns[COLUMNS] = {{strlen("container"), name_weight, 0},
                                           {strlen("module"), MODULE_WEIGHT, 0}};
    for (size_t i = 0; i < shown; i++) {
        cleanup_(freep) char *name = row_name(diff, &diff->rows[i]);
        if (name == NULL) {
            return -ENOMEM;
        }
        size_t widths[] = {text_width(name), text_width(row_module(&diff->rows[i]))};
        for (size_t at = 0; at < COLUMNS; at++) {
            columns[at].needed = widths[at] > columns[at].needed ? widths[at] : columns[at].needed;
        }
    }
    size_t used = has_few_numbers(page) ? NARROW_WIDTH : NUMBERS_WIDTH;
    if (page_is_narrow(page)) { /* the module is left out */
        page_share(columns, 1, page->columns - used);
    } else {
        page_share(columns, COLUMNS,
                   page->columns == PAGE_UNLIMITED ? PAGE_UNLIMITED
                                                   : page->columns - used - GAP_WIDTH);
    }
    print_titles(page, diff, columns);
    for (size_t i = 0; i < shown; i++) {
        cleanup_(freep) char *name = row_name(diff, &diff->rows[i]);
        if (name == NULL || print_row(page, diff, &diff->rows[i], name, columns) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int print_identical(const struct page *page, const struct diff *diff)
{
    char before[DIFF_NAME_BYTES];
    char after[DIFF_NAME_BYTES];
    char count[TEXT_COUNT_BYTES];
    struct page_text text;
    if (!page_text_begin(&text)) {
        return -ENOMEM;
    }
    text_print(text.file, diff_side_name(diff, DIFF_BEFORE, before));
    (void)fputs(" and ", text.file);
    text_print(text.file, diff_side_name(diff, DIFF_AFTER, after));
    (void)fprintf(text.file, " are the same recording: %s in %.3f s, as many in each of %zu %s.\n",
                  text_samples(diff->parts[0].fold.sample_count, count), diff->parts[0].length_s,
                  diff->row_count, row_words(diff->options.by));
    page_text_end(&text, page, PAGE_PLAIN);
    return 0;
}

int diff_print_table(const struct page *page, const struct diff *diff, size_t limit)
{
    size_t shown = limit == 0 || limit > diff->row_count ? diff->row_count : limit;
    if (diff_is_identical(diff)) {
        return print_identical(page, diff);
    }
    int r = print_head(page, diff);
    r = r < 0 ? r : print_rows(page, diff, shown);
    if (r == 0 && shown < diff->row_count) {
        (void)fprintf(page->file, "... and %zu more; -n 0 shows all\n", diff->row_count - shown);
    }
    return r;
}
