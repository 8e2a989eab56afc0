/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A tree for a person: percentages, and behind them the functions. A function that is alone below
 * the one above it stands in line with it; one of several begins with "- " further to the right. So
 * a deep stack needs no more room than it has forks. The JSON is a flat list: nested to the depth
 * of a stack, it would be too deep for many readers.
 */
#include "tree_print.h"

#include "json_out.h"
#include "measure.h"
#include "percent.h"
#include "text_out.h"

#include <inttypes.h>
#include <string.h>

#define NUMBER_WIDTH ((size_t)9) /* of a column before the functions, with its gap */
#define HOT_PERCENT  5
#define FORK_WIDTH   ((size_t)2)
#define NAME_WIDTH   ((size_t)24) /* that the indentation leaves, */
#define NAME_NARROW  ((size_t)14) /* and on a narrow page */
#define FILE_BYTES   480
#define LINE_BYTES   ((size_t)512)

struct printing {
    const struct page *page;
    const struct profile *profile;
    const struct summary *summary;
    const struct tree_request *request;
    struct json_out out;
    uint64_t cut_count;
    uint64_t cut_samples;
};

/* `is_ending`: large ones stand out, as where the time is. */
static void print_percent(const struct printing *printing, uint64_t samples, bool is_ending)
{
    if (samples == 0) {
        (void)fputs("         ", printing->page->file);
    } else {
        double percent = percent_of(samples, printing->summary->total);
        bool is_hot = percent >= HOT_PERCENT && is_ending;
        (void)fprintf(printing->page->file, "%s%7.2f%s  ",
                      is_hot ? page_style(printing->page, PAGE_HOT) : "", percent,
                      is_hot ? page_style(printing->page, PAGE_PLAIN) : "");
    }
}

static const char *node_name(const struct printing *printing, const struct tree_node *node)
{
    return node->depth == 0     ? "(all of them)"
           : node->is_truncated ? "[truncated]"
                                : profile_text(printing->profile, node->name);
}

/* "  app.c:12" where the profile has it; `into` has LINE_BYTES. Returns it. */
static const char *node_line(const struct printing *printing, const struct tree_node *node,
                             char *into)
{
    into[0] = '\0';
    if (node->file != INTERN_NONE && node->line > 0) {
        const char *path = profile_text(printing->profile, node->file);
        const char *slash = strrchr(path, '/');
        (void)snprintf(into, LINE_BYTES, "  %.*s:%" PRIu32, FILE_BYTES,
                       slash == NULL ? path : slash + 1, node->line);
    }
    return into;
}

/* Prints the name at the end of the line. Indentation that would leave too little room for names
 * is replaced by the depth of forks. */
static void print_name(const struct printing *printing, const struct tree_node *node)
{
    const struct page *page = printing->page;
    char line[LINE_BYTES];
    size_t numbers_width = NUMBER_WIDTH * (page_is_narrow(page) ? 2 : 3);
    size_t least = page_is_narrow(page) ? NAME_NARROW : NAME_WIDTH;
    size_t room = page->columns == PAGE_UNLIMITED ? PAGE_UNLIMITED : page->columns - numbers_width;
    size_t indent = FORK_WIDTH * node->forks;
    char deep[32] = "";
    if (room != PAGE_UNLIMITED && indent + least > room) {
        size_t forks_shown = (room - least) / FORK_WIDTH;
        (void)snprintf(deep, sizeof deep, "+%zu ", node->forks - forks_shown);
        indent = FORK_WIDTH * forks_shown;
    }
    size_t text_indent = indent - (node->is_forked ? FORK_WIDTH : 0);
    (void)fprintf(page->file, "%*s%s%s", (int)text_indent, "", node->is_forked ? "- " : "", deep);
    size_t used = indent + strlen(deep);
    size_t line_width = text_width(node_line(printing, node, line));
    size_t name_width = room == PAGE_UNLIMITED ? PAGE_UNLIMITED : room - used;
    if (line_width < name_width / 2) {
        name_width -= line_width;
    } else {
        line[0] = '\0';
    }
    text_print_fitted(page->file, node_name(printing, node), name_width, false);
    text_print(page->file, line);
    (void)fputc('\n', page->file);
}

static void print_heading(const struct printing *printing)
{
    bool is_outward = tree_is_outward(printing->request->view);
    summary_print_head(printing->page, printing->profile, printing->summary);
    (void)fprintf(printing->page->file, "%stotal %%   %s%s  function%s\n",
                  page_style(printing->page, PAGE_TITLE), is_outward ? "root %" : "self %",
                  page_is_narrow(printing->page) ? "" : "    cut %",
                  page_style(printing->page, PAGE_PLAIN));
}

static void on_text_node(const struct tree_node *node, void *userdata)
{
    struct printing *printing = userdata;
    printing->cut_count += node->cut_count;
    printing->cut_samples += node->cut_samples;
    if (node->number == 0) {
        print_heading(printing);
    }
    print_percent(printing, node->total, false);
    print_percent(printing, node->ending, true);
    if (!page_is_narrow(printing->page)) {
        print_percent(printing, node->cut_samples, false);
    }
    print_name(printing, node);
}

static void print_cut(const struct printing *printing)
{
    char amount[MEASURE_WORDS_BYTES];
    struct page_text text;
    if (page_text_begin(&text)) {
        (void)fprintf(text.file, "cut: %" PRIu64 " branches below %g %%, ", printing->cut_count,
                      printing->request->min_percent);
        text_print(text.file,
                   measure_words(&printing->profile->event, printing->cut_samples, amount));
        (void)fputs("; --min 0 shows all\n", text.file);
        page_text_end(&text, printing->page, PAGE_PLAIN);
    }
}

int tree_print_text(const struct page *page, const struct profile *profile,
                    const struct summary *summary, const struct tree_request *request)
{
    struct printing printing = {
        .page = page,
        .profile = profile,
        .summary = summary,
        .request = request,
    };
    int r = tree_walk(profile, request, on_text_node, &printing);
    if (r != 0) {
        return r;
    }
    if (printing.cut_count > 0) {
        print_cut(&printing);
    }
    (void)fputc('\n', page->file);
    return 0;
}

static const char *text_or_null(const struct profile *profile, uint32_t text)
{
    return text == INTERN_NONE ? NULL : profile_text(profile, text);
}

static void print_json_head(struct printing *printing)
{
    const struct tree_request *request = printing->request;
    summary_json_head(&printing->out, printing->profile, printing->summary);
    json_out_string(&printing->out, "by", "function");
    json_out_string(&printing->out, "view", tree_view_name(request->view));
    json_out_string(&printing->out, "function", request->function);
    json_out_double(&printing->out, "min_percent", request->min_percent);
    json_out_begin(&printing->out, "tree", '[');
}

static void on_json_node(const struct tree_node *node, void *userdata)
{
    struct printing *printing = userdata;
    struct json_out *out = &printing->out;
    const struct profile *profile = printing->profile;
    bool is_outward = tree_is_outward(printing->request->view);
    if (node->number == 0) {
        print_json_head(printing);
    }
    json_out_begin(out, NULL, '{');
    json_out_u64(out, "depth", node->depth);
    if (node->depth == 0) {
        json_out_raw(out, "parent", NULL);
    } else {
        json_out_u64(out, "parent", node->parent);
    }
    json_out_string(out, "name", node->depth == 0 ? NULL : node_name(printing, node));
    json_out_string(out, "module", text_or_null(profile, node->module));
    if (node->build_id != INTERN_NONE) {
        json_out_string(out, "build_id", profile_text(profile, node->build_id));
    }
    json_out_u64(out, "total", node->total);
    json_out_u64(out, is_outward ? "root" : "self", node->ending);
    json_out_u64(out, "cut", node->cut_samples);
    json_out_u64(out, "cut_branches", node->cut_count);
    json_out_percent(out, "total_percent", node->total, printing->summary->total);
    if (profile->inlines.is_wanted) {
        json_out_string(out, "file", text_or_null(profile, node->file));
        if (node->line > 0) {
            json_out_u64(out, "line", node->line);
        } else {
            json_out_raw(out, "line", NULL);
        }
    }
    json_out_end(out, '}');
}

int tree_print_json(FILE *file, const struct profile *profile, const struct summary *summary,
                    const struct tree_request *request)
{
    struct printing printing = {
        .profile = profile,
        .summary = summary,
        .request = request,
        .out = {.file = file},
    };
    int r = tree_walk(profile, request, on_json_node, &printing);
    if (r == 0) {
        json_out_end(&printing.out, ']');
        summary_json_foot(&printing.out, profile, summary);
    }
    return r;
}
