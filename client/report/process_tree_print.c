/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tree for a person: numbers, and behind them the command lines, further to the right the
 * deeper they are. The program of a command line loses its folders, unless lines are as long as
 * they are; one without a command line has its name. The JSON is a flat list, and has all of each
 * text.
 */
#include "process_tree.h"

#include "json_out.h"
#include "measure.h"
#include "percent.h"
#include "text_out.h"

#include <inttypes.h>
#include <string.h>

#define NUMBERS_WIDTH ((size_t)18) /* of the percentages before the commands, with their gaps */
#define COUNT_WIDTH   ((size_t)11) /* of the number of processes, left out on a narrow page */
#define HOT_PERCENT   5
#define DEPTH_WIDTH   ((size_t)2)
#define COMMAND_WIDTH ((size_t)24) /* that the indentation leaves, */
#define NARROW_WIDTH  ((size_t)14) /* and on a narrow page */
#define SHARED_MARK   " ..."

struct printing {
    const struct page *page;
    const struct profile *profile;
    const struct summary *summary;
    double min_percent;
    struct json_out out;
    uint64_t cut_count;
    uint64_t cut_samples;
    bool has_ancestors; /* a row was shown of processes without a sample */
};

/* Whether a row is shown only for what its processes made. */
static bool is_ancestor(const struct process_row *row)
{
    return row->depth > 0 && row->self == 0;
}

static const char *name_of(const struct printing *printing, const struct process_row *row)
{
    return row->name == INTERN_NONE ? "[unknown]" : profile_text(printing->profile, row->name);
}

static void print_percent(const struct printing *printing, uint64_t samples, bool is_self)
{
    double percent = percent_of(samples, printing->summary->total);
    bool is_hot = percent >= HOT_PERCENT && is_self;
    if (samples == 0) {
        (void)fprintf(printing->page->file, "%7s  ", "");
        return;
    }
    (void)fprintf(printing->page->file, "%s%7.2f%s  ",
                  is_hot ? page_style(printing->page, PAGE_HOT) : "", percent,
                  is_hot ? page_style(printing->page, PAGE_PLAIN) : "");
}

/* A command line from its program's name on. */
static const char *without_folders(const char *command)
{
    const char *name = command;
    for (const char *at = command; *at != '\0' && *at != ' '; at++) {
        name = *at == '/' && at[1] != ' ' && at[1] != '\0' ? at + 1 : name;
    }
    return command[0] == '/' ? name : command;
}

/* In at most `room` columns. */
static void print_name(const struct printing *printing, const struct process_row *row, size_t room)
{
    FILE *file = printing->page->file;
    if (row->command == NULL) {
        text_print_fitted(file, name_of(printing, row), room, false);
        return;
    }
    size_t mark_width = row->is_shared ? strlen(SHARED_MARK) : 0;
    text_print_fitted(file, room == PAGE_UNLIMITED ? row->command : without_folders(row->command),
                      room == PAGE_UNLIMITED ? PAGE_UNLIMITED : room - mark_width, false);
    (void)fputs(row->is_shared ? SHARED_MARK : "", file);
}

static void print_command(const struct printing *printing, const struct process_row *row)
{
    const struct page *page = printing->page;
    size_t used = NUMBERS_WIDTH + (page_is_narrow(page) ? 0 : COUNT_WIDTH);
    size_t least = page_is_narrow(page) ? NARROW_WIDTH : COMMAND_WIDTH;
    size_t room = page->columns == PAGE_UNLIMITED ? PAGE_UNLIMITED : page->columns - used;
    size_t indent = DEPTH_WIDTH * (row->depth == 0 ? 0 : row->depth - 1);
    char deep[32] = "";
    if (room != PAGE_UNLIMITED && indent + least > room) {
        size_t shown = (room - least) / DEPTH_WIDTH;
        (void)snprintf(deep, sizeof deep, "+%zu ", indent / DEPTH_WIDTH - shown);
        indent = DEPTH_WIDTH * shown;
    }
    (void)fprintf(page->file, "%*s%s", (int)indent, "", deep);
    room = room == PAGE_UNLIMITED ? PAGE_UNLIMITED : room - indent - strlen(deep);
    if (row->depth == 0) {
        (void)fputs("(all of them)\n", page->file);
    } else if (is_ancestor(row)) {
        (void)fprintf(page->file, "%s(", page_style(page, PAGE_FAINT));
        print_name(printing, row, room == PAGE_UNLIMITED ? PAGE_UNLIMITED : room - strlen("()"));
        (void)fprintf(page->file, ")%s\n", page_style(page, PAGE_PLAIN));
    } else {
        print_name(printing, row, room);
        (void)fputc('\n', page->file);
    }
}

static void on_text_row(const struct process_row *row, void *userdata)
{
    struct printing *printing = userdata;
    FILE *file = printing->page->file;
    printing->cut_count += row->cut_count;
    printing->cut_samples += row->cut_samples;
    printing->has_ancestors = printing->has_ancestors || is_ancestor(row);
    if (row->number == 0) {
        summary_print_head(printing->page, printing->profile, printing->summary);
        (void)fprintf(file, "%stotal %%   self %%%s  command%s\n",
                      page_style(printing->page, PAGE_TITLE),
                      page_is_narrow(printing->page) ? "" : "  processes",
                      page_style(printing->page, PAGE_PLAIN));
    }
    print_percent(printing, row->total, false);
    print_percent(printing, row->self, true);
    if (!page_is_narrow(printing->page)) {
        (void)fprintf(file, "%9" PRIu64 "  ", row->process_count);
    }
    print_command(printing, row);
}

static void print_cut(const struct printing *printing, double min_percent)
{
    char amount[MEASURE_WORDS_BYTES];
    struct page_text text;
    if (page_text_begin(&text)) {
        (void)fprintf(text.file, "cut: %" PRIu64 " rows below %g %%, ", printing->cut_count,
                      min_percent);
        text_print(text.file,
                   measure_words(&printing->profile->event, printing->cut_samples, amount));
        (void)fputs("; --min 0 shows all\n", text.file);
        page_text_end(&text, printing->page, PAGE_PLAIN);
    }
}

int process_tree_print_text(const struct page *page, const struct profile *profile,
                            const struct summary *summary, double min_percent)
{
    struct printing printing = {.page = page, .profile = profile, .summary = summary};
    int r = process_tree_walk(profile, min_percent, on_text_row, &printing);
    if (r == 0 && printing.has_ancestors) {
        page_print_lines(page, PAGE_PLAIN,
                         (char[]){"in (): no sample of its own; shown for what it made"});
    }
    if (r == 0 && printing.cut_count > 0) {
        print_cut(&printing, min_percent);
    }
    (void)fputc('\n', page->file);
    return r;
}

static void on_json_row(const struct process_row *row, void *userdata)
{
    struct printing *printing = userdata;
    struct json_out *out = &printing->out;
    if (row->number == 0) {
        summary_json_head(out, printing->profile, printing->summary);
        json_out_string(out, "by", "process");
        json_out_double(out, "min_percent", printing->min_percent);
        json_out_begin(out, "processes", '[');
    }
    json_out_begin(out, NULL, '{');
    json_out_u64(out, "depth", row->depth);
    if (row->depth == 0) {
        json_out_raw(out, "parent", NULL);
    } else {
        json_out_u64(out, "parent", row->parent);
    }
    json_out_string(out, "name", row->depth == 0 ? NULL : name_of(printing, row));
    json_out_string(out, "command", row->command);
    json_out_raw(out, "is_shared", row->is_shared ? "true" : "false");
    json_out_u64(out, "processes", row->process_count);
    if (row->depth > 0 && row->process_count == 1) {
        json_out_i64(out, "pid", (int64_t)row->pid);
    } else {
        json_out_raw(out, "pid", NULL);
    }
    json_out_u64(out, "total", row->total);
    json_out_u64(out, "self", row->self);
    json_out_u64(out, "cut", row->cut_samples);
    json_out_u64(out, "cut_rows", row->cut_count);
    json_out_percent(out, "total_percent", row->total, printing->summary->total);
    json_out_percent(out, "self_percent", row->self, printing->summary->total);
    json_out_end(out, '}');
}

int process_tree_print_json(FILE *file, const struct profile *profile,
                            const struct summary *summary, double min_percent)
{
    struct printing printing = {
        .profile = profile,
        .summary = summary,
        .min_percent = min_percent,
        .out = {.file = file},
    };
    int r = process_tree_walk(profile, min_percent, on_json_row, &printing);
    if (r == 0) {
        json_out_end(&printing.out, ']');
        summary_json_foot(&printing.out, profile, summary);
    }
    return r;
}
