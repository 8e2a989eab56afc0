/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl report`: where the time of a recording went.
 */
#include "annotation.h"
#include "books_print.h"
#include "cleanup.h"
#include "load.h"
#include "options.h"
#include "process_tree.h"
#include "report.h"
#include "save.h"
#include "select_options.h"
#include "suggest.h"
#include "thread_table.h"
#include "tree_print.h"
#include "verbs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_DEFAULT        20
#define SERIES_MAX          3600
#define SERIES_SHOWN_MAX    20
#define SERIES_NARROW_MAX   10
#define ROWS_UNSAID         SIZE_MAX
#define MIN_PERCENT_DEFAULT 1
#define MIN_PERCENT_UNSAID  (-1.0)

struct report_request {
    const char *path;
    size_t limit;
    enum report_by by;
    enum report_sort sort;
    enum profile_names names;
    enum load_detail detail;
    const char *callers_of; /* borrowed, as the next; NULL: not asked for */
    const char *callees_of;
    const char *annotated;
    const char *ratio_event;
    double min_percent;
    struct selection selection;
    bool has_tree;
    bool has_processes;
    bool has_threads;
    bool is_inverted;
    bool has_books;
    bool has_series;
    bool has_waits;
    bool is_wide;
    bool is_json;
};

static int take_percent(const struct command_line *line, const struct verb_option *option,
                        const char *value, void *into)
{
    const char *end = NULL;
    double percent = options_decimal(value, &end);
    (void)option;
    if (end == value || *end != '\0' || !(percent >= 0 && percent <= 100)) {
        return options_refuse(line, "--min %s: give a percentage from 0 to 100", value);
    }
    *(double *)into = percent;
    return EXIT_DONE;
}

#define AT(member) offsetof(struct report_request, member)

static const struct verb_option options[] = {
    {'n', NULL, "N", "at most N rows, 0 for all (20)", select_take_rows, AT(limit), 0},
    {0, "by", "WHAT",
     "what rows are: function, line, module, process, command,\n"
     "thread, unit, container, user, cpu (function)",
     options_choice, AT(by), 0, report_by_name},
    {0, "sort", "ORDER", "by self or by total (self)", options_choice, AT(sort), 0,
     select_sort_name},
    {0, "tree", NULL, "a tree of functions, from the root of the stacks inward", options_flag,
     AT(has_tree), 0},
    {0, "inverted", NULL, "with --tree: from the leaves of the stacks outward", options_flag,
     AT(is_inverted), 0},
    {0, "callers", "F", "a tree of what called the function F; F may be a glob", options_name,
     AT(callers_of), 0},
    {0, "callees", "F", "a tree of what F called", options_name, AT(callees_of), 0},
    {0, "processes", NULL,
     "a tree of processes, each below the one that made it, with\n"
     "their command lines; those that are alike are one row",
     options_flag, AT(has_processes), 0},
    {0, "threads", NULL,
     "how long each thread was running, ready and blocked, of a\n"
     "recording with waits",
     options_flag, AT(has_threads), 0},
    {0, "annotate", "F",
     "where in F the time went: by lines of its source, or by\n"
     "instructions where that is not on this machine",
     options_name, AT(annotated), 0},
    {0, "min", "PERCENT", "cut branches of a tree with fewer of the samples (1)", take_percent,
     AT(min_percent), 0},
    {0, "ratio", "EVENT",
     "in a list: how many of EVENT for each of a row's own, such\n"
     "as instructions where rows count cycles",
     options_name, AT(ratio_event), 0},
    {0, "per-second", NULL, "when each row of a list had its samples", options_flag, AT(has_series),
     0},
    {0, "waits", NULL,
     "in a list of off-cpu or preempted: how many waits each row\n"
     "had, how long they were on average, and the longest",
     options_flag, AT(has_waits), 0},
    {0, "books", NULL, "where the ticks of each CPU went, as a table", options_flag, AT(has_books),
     0},
    {0, "wide", NULL, "lines as long as they are, not as wide as the terminal", options_flag,
     AT(is_wide), 0},
    OPTIONS_DETAIL(AT(detail), AT(names),
                   "functions that were inlined are functions of their own, as\n"
                   "debugging information says: that of the modules, below\n"
                   "/usr/lib/debug, or from the servers of DEBUGINFOD_URLS",
                   "each line of a function is a row"),
    OPTIONS_SELECT(AT(selection)),
    OPTION_JSON(AT(is_json)),
    {0},
};

/* Of the option with which waits are recorded. */
static const struct option_elsewhere elsewhere[] = {
    {"--wall", "--event off-cpu shows what threads waited for"},
    {"--off-cpu", "--event off-cpu shows what threads waited for"},
    {0},
};

static const struct command_line line = {
    .usage = "profctl report [FILE] [VIEW] [OPTION...]",
    .help = "Shows where the time of a recording went, as a list or a tree. FILE may be\n"
            "compressed with gzip; \"-\" is standard input; without one it is profile.fxt.\n",
    .more_help =
        "VIEW is --tree, --callers F, --callees F, --processes, --threads or --annotate\n"
        "F; without one, a list.\n"
        "self counts the samples that were in the row itself, total also those that it\n"
        "had called, each stack once. In a tree a sample is on one path: the callees of\n"
        "F are those of its outermost call, the callers those of its innermost.\n\n" BOOKS_PRINT_HELP,
    .options = options,
    .operand = "recording",
    .operand_default = "profile.fxt",
    .operand_at = AT(path),
    .elsewhere = elsewhere,
};

/* `other` is of the ratio's event; NULL: there is no ratio. */
static int print_flat(const struct report_request *request, const struct profile *profile,
                      const struct profile *other, const struct summary *summary)
{
    cleanup_(report_done) struct report report = {0};
    size_t limit = request->limit == ROWS_UNSAID ? ROWS_DEFAULT : request->limit;
    struct page page;
    page_describe(stdout, request->is_wide, &page);
    size_t length_max = request->is_json        ? SERIES_MAX
                        : page_is_narrow(&page) ? SERIES_NARROW_MAX
                                                : SERIES_SHOWN_MAX;
    const bool has_waits = request->has_waits || (request->is_json && profile->event.is_wait);
    if (report_build(profile, request->by, request->sort, &report) < 0 ||
        (request->has_series && report_take_series(profile, limit, length_max, &report) < 0) ||
        (has_waits && report_take_waits(profile, &report) < 0) ||
        (other != NULL && report_take_ratio(profile, other, &report) < 0)) {
        return complain("%s: there is not enough memory", request->path);
    }
    if (request->is_json) {
        report_print_json(stdout, profile, summary, &report, limit);
    } else {
        page_open(request->is_wide, &page);
        report_print_table(&page, profile, summary, &report, limit);
        summary_print_foot(&page, profile, summary, request->has_books);
        page_close(&page);
    }
    return EXIT_DONE;
}

static bool is_tree(const struct report_request *request)
{
    return request->has_tree || request->callers_of != NULL || request->callees_of != NULL;
}

/*
 * The names of frames that samples have. The profile also holds frames from before its functions
 * without names were known. Returned: free(). NULL when there is no memory.
 */
static const char **list_names(const struct profile *profile, size_t *ret_count)
{
    size_t frame_count = profile->frames.item_count;
    cleanup_(freep) bool *is_used = calloc(frame_count + 1, sizeof *is_used);
    cleanup_(freep) bool *is_seen = calloc(profile->chains.item_count + 1, sizeof *is_seen);
    const char **names = calloc(frame_count + 1, sizeof *names);
    *ret_count = 0;
    for (size_t i = 0; i < profile->sample_count && is_used != NULL && is_seen != NULL; i++) {
        uint32_t number = profile->samples[i].chain;
        size_t count = 0;
        const uint32_t *chain = profile_chain(profile, number, &count);
        for (size_t at = 0; at < count && !is_seen[number]; at++) {
            is_used[chain[at]] = true;
        }
        is_seen[number] = true;
    }
    for (size_t i = 0; i < frame_count && names != NULL && is_used != NULL; i++) {
        if (is_used[i]) {
            names[(*ret_count)++] =
                profile_text(profile, profile_frame(profile, (uint32_t)i)->name);
        }
    }
    return names;
}

/* The function without a name that has the address of "app+0x1234". False: there is none. */
static bool find_nameless(const struct profile *profile, const char *wanted,
                          const char **ret_module, uint64_t *ret_start)
{
    for (size_t i = 0; i < profile->unnamed.addresses.item_count; i++) {
        const struct unnamed_function *function = &profile->unnamed.functions[i];
        size_t size_bytes = 0;
        const struct inline_address *address =
            intern_bytes(&profile->unnamed.addresses, (uint32_t)i, &size_bytes);
        const char *module = profile_text(profile, profile->modules[address->module].basename);
        if (unnamed_is_name(wanted, module)) {
            uint64_t vaddr = strtoull(wanted + strlen(module) + 1, NULL, 16);
            if (vaddr >= function->start && vaddr < function->end) {
                *ret_module = module;
                *ret_start = function->start;
                return true;
            }
        }
    }
    return false;
}

/* Says which functions have the name in theirs, or one like it. */
static int complain_no_function(const struct report_request *request, const struct profile *profile,
                                const char *function)
{
    size_t count = 0;
    cleanup_(freep) const char **names = list_names(profile, &count);
    const char *longer = NULL;
    const char *module = NULL;
    uint64_t start = 0;
    for (size_t i = 0; i < count && longer == NULL; i++) {
        longer = strstr(names[i], function) != NULL ? names[i] : NULL;
    }
    const char *like = names == NULL ? NULL : suggest_word(function, names, count);
    if (find_nameless(profile, function, &module, &start)) {
        return complain("%s: no stack has a function '%s'; the one with that address is "
                        "%s+0x%" PRIx64,
                        request->path, function, module, start);
    }
    if (longer != NULL) {
        return complain("%s: no stack has a function '%s'; did you mean %s, or '*%s*'?",
                        request->path, function, longer, function);
    }
    if (like != NULL) {
        return complain("%s: no stack has a function '%s'; did you mean %s?", request->path,
                        function, like);
    }
    return complain("%s: no stack has a function '%s'; profctl report -n 0 lists all",
                    request->path, function);
}

static int print_tree(const struct report_request *request, const struct profile *profile,
                      const struct summary *summary)
{
    struct page page;
    struct tree_request tree = {
        .view = request->callers_of != NULL   ? TREE_CALLERS
                : request->callees_of != NULL ? TREE_CALLEES
                : request->is_inverted        ? TREE_FROM_LEAVES
                                              : TREE_FROM_ROOT,
        .function = request->callers_of != NULL ? request->callers_of : request->callees_of,
        .min_percent =
            request->min_percent == MIN_PERCENT_UNSAID ? MIN_PERCENT_DEFAULT : request->min_percent,
    };
    int r = 0;
    if (request->is_json) {
        r = tree_print_json(stdout, profile, summary, &tree);
    } else {
        page_open(request->is_wide, &page);
        r = tree_print_text(&page, profile, summary, &tree);
        if (r == 0) {
            summary_print_foot(&page, profile, summary, request->has_books);
        }
        page_close(&page);
    }
    if (r == TREE_NO_FUNCTION) {
        return complain_no_function(request, profile, tree.function);
    }
    return r < 0 ? complain("%s: there is not enough memory", request->path) : EXIT_DONE;
}

static int print_processes(const struct report_request *request, const struct profile *profile,
                           const struct summary *summary)
{
    struct page page;
    const double min_percent =
        request->min_percent == MIN_PERCENT_UNSAID ? MIN_PERCENT_DEFAULT : request->min_percent;
    int r = 0;
    if (request->is_json) {
        r = process_tree_print_json(stdout, profile, summary, min_percent);
    } else {
        page_open(request->is_wide, &page);
        r = process_tree_print_text(&page, profile, summary, min_percent);
        if (r == 0) {
            summary_print_foot(&page, profile, summary, request->has_books);
        }
        page_close(&page);
    }
    return r < 0 ? complain("%s: there is not enough memory", request->path) : EXIT_DONE;
}

static int print_annotation(const struct report_request *request, const struct profile *profile,
                            const struct summary *summary)
{
    cleanup_(annotation_done) struct annotation annotation = {0};
    struct page page;
    int r = annotation_build(profile, request->annotated, &annotation);
    if (r == ANNOTATION_NO_FUNCTION) {
        return complain_no_function(request, profile, request->annotated);
    }
    if (r < 0) {
        return complain("%s: there is not enough memory", request->path);
    }
    complain_losses(&annotation.code.losses);
    if (request->is_json) {
        annotation_print_json(stdout, profile, summary, &annotation);
        return EXIT_DONE;
    }
    page_open(request->is_wide, &page);
    annotation_print_text(&page, profile, summary, &annotation);
    summary_print_foot(&page, profile, summary, request->has_books);
    page_close(&page);
    return EXIT_DONE;
}

/* Of the whole recording: it has no time of a thread in a part of it. */
static int print_threads(const struct report_request *request)
{
    cleanup_(profile_freep) struct profile *profile = NULL;
    const struct selection everything = {0};
    const struct load_request load = {.path = request->path,
                                      .selection = &everything,
                                      .names = request->names,
                                      .detail = LOAD_ADDRESSES,
                                      .shows_selection = true,
                                      .elsewhere = LOAD_ELSEWHERE_UNSAID};
    const size_t limit = request->limit == ROWS_UNSAID ? ROWS_DEFAULT : request->limit;
    struct summary summary;
    struct page page;
    int status = load_recording(&load, &profile);
    if (profile == NULL) {
        return status;
    }
    if (profile->thread_count == 0) {
        return complain("%s: has no times of threads; profctl record --wall records them",
                        request->path);
    }
    if (selection_apply_to_threads(&request->selection, profile) == 0) {
        return complain("%s: no thread is selected; profctl report --threads -n 0 lists all",
                        request->path);
    }
    int r = summary_take(profile, &summary);
    if (r == 0 && request->is_json) {
        r = thread_table_print_json(stdout, profile, &summary, limit);
    } else if (r == 0) {
        page_open(request->is_wide, &page);
        r = thread_table_print_text(&page, profile, &summary, limit);
        summary_print_foot(&page, profile, &summary, request->has_books);
        page_close(&page);
    }
    return r < 0 ? complain("%s: there is not enough memory", request->path) : status;
}

static int print_report(const struct report_request *request)
{
    cleanup_(profile_freep) struct profile *profile = NULL;
    cleanup_(profile_freep) struct profile *other = NULL;
    struct summary summary;
    const struct load_request load = {.path = request->path,
                                      .selection = &request->selection,
                                      .names = request->names,
                                      .detail = request->detail,
                                      .shows_selection = !request->is_json};
    int status = load_recording(&load, &profile);
    if (profile == NULL) {
        return status;
    }
    if (request->ratio_event != NULL &&
        load_event(&load, request->ratio_event, &other) != EXIT_DONE) {
        return EXIT_FAILED;
    }
    if (summary_take(profile, &summary) < 0) {
        return complain("%s: there is not enough memory", request->path);
    }
    summary.path = strcmp(request->path, "-") == 0 ? NULL : request->path;
    int print_status = request->annotated != NULL ? print_annotation(request, profile, &summary)
                       : request->has_processes   ? print_processes(request, profile, &summary)
                       : is_tree(request)         ? print_tree(request, profile, &summary)
                                                  : print_flat(request, profile, other, &summary);
    return print_status == EXIT_DONE ? status : print_status;
}

static int check_annotation(const struct report_request *request)
{
    if (request->by != REPORT_BY_FUNCTION || request->has_series ||
        request->sort != REPORT_SORT_SELF || request->limit != ROWS_UNSAID ||
        request->min_percent != MIN_PERCENT_UNSAID || request->is_inverted) {
        return options_refuse(&line, "--annotate shows one function whole; leave --by, --sort, "
                                     "--per-second, -n, --min and --inverted out");
    }
    if (request->detail == LOAD_ADDRESSES) {
        return options_refuse(&line, "--annotate is read from files; leave --addresses out");
    }
    return EXIT_DONE;
}

static int check_ratio(const struct report_request *request)
{
    if (is_tree(request) || request->has_processes || request->annotated != NULL) {
        return options_refuse(&line, "--ratio is a column of lists; leave it out");
    }
    return strcmp(request->path, "-") == 0
               ? options_refuse(&line, "--ratio reads the recording twice; give it as a file")
               : EXIT_DONE;
}

static int check_threads(const struct report_request *request)
{
    const struct selection *selection = &request->selection;
    if (request->by != REPORT_BY_FUNCTION || request->has_series || request->ratio_event != NULL ||
        request->sort != REPORT_SORT_SELF || request->min_percent != MIN_PERCENT_UNSAID ||
        request->is_inverted || request->detail != LOAD_FUNCTIONS) {
        return options_refuse(&line, "--threads shows times and no functions; leave --by, --sort, "
                                     "--per-second, --ratio, --min, --inverted, --inline, --lines "
                                     "and --addresses out");
    }
    if (selection->event != NULL || selection->module_count > 0 ||
        selection->from.kind != SELECTION_ANY_TIME || selection->to.kind != SELECTION_ANY_TIME) {
        return options_refuse(&line, "times of threads are of the whole recording; leave --event, "
                                     "--module, --from and --to out");
    }
    return EXIT_DONE;
}

/* Of a list of waits: their numbers stand in the place of `total`. */
static int check_waits(const struct report_request *request)
{
    const char *event = request->selection.event;
    if (event == NULL || (strcmp(event, PROFILE_EVENT_OFF_CPU) != 0 &&
                          strcmp(event, PROFILE_EVENT_PREEMPTED) != 0)) {
        return options_refuse(&line, "--waits counts waits; add --event off-cpu or --event "
                                     "preempted");
    }
    if (is_tree(request) || request->has_processes || request->has_threads ||
        request->annotated != NULL || request->has_series) {
        return options_refuse(&line, "--waits has columns of its own in a list; leave --tree, "
                                     "--callers, --callees, --processes, --threads, --annotate and "
                                     "--per-second out");
    }
    return EXIT_DONE;
}

/* Refuses options that say nothing together. */
static int check_views(const struct report_request *request)
{
    if (request->has_tree + (request->callers_of != NULL) + (request->callees_of != NULL) +
            request->has_processes + request->has_threads + (request->annotated != NULL) >
        1) {
        return options_refuse(&line, "--tree, --callers, --callees, --processes, --threads and "
                                     "--annotate are one view each; leave all but one out");
    }
    if (request->has_waits) {
        int status = check_waits(request);
        if (status != EXIT_DONE) {
            return status;
        }
    }
    if (request->has_threads) {
        return check_threads(request);
    }
    if (request->ratio_event != NULL) {
        int status = check_ratio(request);
        if (status != EXIT_DONE) {
            return status;
        }
    }
    if (request->annotated != NULL) {
        return check_annotation(request);
    }
    if (request->is_inverted && !request->has_tree) {
        return options_refuse(&line, "--inverted turns a tree round; add --tree");
    }
    if (is_tree(request) || request->has_processes) {
        if (request->by != REPORT_BY_FUNCTION) {
            return request->has_processes
                       ? options_refuse(&line, "--by and --processes cannot be combined")
                       : options_refuse(&line, "a tree is one of functions; leave --by out");
        }
        if (request->sort != REPORT_SORT_SELF) {
            return options_refuse(&line, "a tree is by total; leave --sort out");
        }
        if (request->has_series) {
            return options_refuse(&line, "--per-second is for lists; leave it out");
        }
        return request->limit == ROWS_UNSAID
                   ? EXIT_DONE
                   : options_refuse(&line, "a tree has no limit of rows; --min cuts it, not -n");
    }
    return request->min_percent == MIN_PERCENT_UNSAID
               ? EXIT_DONE
               : options_refuse(&line, "--min cuts trees; a list has -n");
}

int verb_report(int argc, char **argv)
{
    struct report_request request = {
        .limit = ROWS_UNSAID,
        .by = REPORT_BY_FUNCTION,
        .min_percent = MIN_PERCENT_UNSAID,
    };
    int status = options_take(&line, argc, argv, &request);
    if ((request.by == REPORT_BY_LINE || request.annotated != NULL) &&
        request.detail != LOAD_ADDRESSES) {
        request.detail = LOAD_LINES;
    }
    if (status == OPTIONS_TAKEN) {
        status = save_refuse_input(&line, request.path);
        status = status == EXIT_DONE ? check_views(&request) : status;
        return status != EXIT_DONE   ? status
               : request.has_threads ? print_threads(&request)
                                     : print_report(&request);
    }
    return status;
}
