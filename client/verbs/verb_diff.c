/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl diff`: what grew and what shrank between two recordings, or two sets of them, as a
 * table, as JSON or as a page. Recordings are loaded one after the other; what is compared is left
 * of each, and for a page its profile.
 */
#include "browser.h"
#include "cleanup.h"
#include "diff.h"
#include "diff_page.h"
#include "first_samples.h"
#include "input_paths.h"
#include "load.h"
#include "options.h"
#include "save.h"
#include "select_options.h"
#include "verbs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_DEFAULT   20
#define RATE_DEFAULT   0.05
#define RECORDINGS_MAX ((size_t)256) /* of both sides */
#define NOT_ASKED_FOR  (-1.0)

/* The recordings as they stand on the command line. */
struct operands {
    const char *paths[RECORDINGS_MAX];
    enum diff_side sides[RECORDINGS_MAX];
    double works[RECORDINGS_MAX];
    size_t count;
    enum diff_side side; /* of those that follow */
    bool has_with;
};

/* What is kept of the recordings, beside the comparison. */
struct parts {
    struct first_samples firsts[DIFF_SIDES];
    struct flame *flame;                      /* owned; NULL: there is no page */
    struct profile *profiles[RECORDINGS_MAX]; /* owned; of a page */
};

static void parts_done(struct parts *parts)
{
    flamegraph_freep(&parts->flame);
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        first_samples_done(&parts->firsts[side]);
    }
    for (size_t i = 0; i < RECORDINGS_MAX; i++) {
        (void)profile_free(parts->profiles[i]);
    }
}

struct diff_request {
    struct operands operands;
    struct diff_options options;
    struct selection selection;
    enum profile_names names;
    enum load_detail detail;
    const char *per;         /* borrowed; NULL: not said */
    const char *output_path; /* of the page; NULL: there is none */
    double fail_percent;     /* NOT_ASKED_FOR */
    size_t limit;
    bool is_wide;
    bool is_json;
    bool is_opened;
};

/* "3", "3%", "0.5 %". */
static bool parse_percent(const char *text, double *ret)
{
    const char *end = NULL;
    double percent = options_decimal(text, &end);
    bool is_number = end != text;
    end += strspn(end, " ");
    end += *end == '%';
    *ret = percent;
    return is_number && *end == '\0' && percent >= 0 && percent <= 100;
}

static int take_rate(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    double percent = 0;
    if (!parse_percent(value, &percent) || percent <= 0 || percent >= 100) {
        return options_refuse(line, "--%s %s: give a percentage between 0 and 100", option->name,
                              value);
    }
    *(double *)into = percent / 100;
    return EXIT_DONE;
}

static int take_limit(const struct command_line *line, const struct verb_option *option,
                      const char *value, void *into)
{
    return parse_percent(value, into)
               ? EXIT_DONE
               : options_refuse(line, "--%s %s: give a percentage from 0 to 100", option->name,
                                value);
}

static int take_operand(const struct command_line *line, const struct verb_option *option,
                        const char *value, void *into)
{
    struct operands *operands = into;
    (void)option;
    if (operands->count == RECORDINGS_MAX) {
        return options_refuse(line, "more than %zu recordings are too many", RECORDINGS_MAX);
    }
    operands->sides[operands->count] = operands->side;
    operands->paths[operands->count++] = value;
    return EXIT_DONE;
}

static int take_with(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    struct operands *operands = into;
    (void)option, (void)value;
    if (operands->has_with) {
        return options_refuse(line, "--with stands once, between the two sides");
    }
    operands->has_with = true;
    operands->side = DIFF_AFTER;
    return EXIT_DONE;
}

#define AT(member) offsetof(struct diff_request, member)

static const struct verb_option options[] = {
    {'o', "output", "FILE",
     "a page for a browser instead of the table: the rows,\n"
     "and both sides as a flame graph; behind .html .gz\n"
     "compresses, and \"-\" is standard output",
     options_output, AT(output_path), 0},
    {0, "open", NULL, "show the page in the browser, where there is one", options_flag,
     AT(is_opened), 0},
    {0, "with", NULL, "what follows is the other side, of several recordings", take_with,
     AT(operands), 0},
    {0, "per", "WHAT",
     "what CPU time, or an event, is divided by: time, of\n"
     "all CPUs, by the books, or of an event seconds; cpu,\n"
     "all that is compared; or units of work that were\n"
     "done: N, or N,N of each side, or of each recording\n"
     "(time of a whole machine, else cpu)",
     options_text, AT(per), 0},
    {'n', NULL, "N", "at most N rows, 0 for all (20)", select_take_rows, AT(limit), 0},
    {0, "by", "WHAT",
     "what rows are: function, stack, module, command,\n"
     "thread, unit, container, user (function)",
     options_choice, AT(options.by), 0, diff_by_name},
    {0, "sort", "ORDER", "by self or by total (self)", select_take_sort, AT(options.sorts_total), 0,
     select_sort_name},
    {0, "fdr", "PERCENT", "of what is called sure so much may be false (5)", take_rate,
     AT(options.discovery_rate), 0},
    {0, "fail-above", "PART",
     "end with status 3 if something surely grew by more than\n"
     "PART of the whole: 3%",
     take_limit, AT(fail_percent), 0},
    {0, "force", NULL, "compare recordings that were not made alike", options_flag,
     AT(options.has_force), 0},
    {0, "wide", NULL, "lines as long as they are", options_flag, AT(is_wide), 0},
    {0, "inline", NULL,
     "functions that were inlined are functions of their\n"
     "own; report --help says what that needs",
     options_raise, AT(detail), LOAD_INLINED},
    {0, "no-demangle", NULL, "names of C++ and Rust as compilers write them", options_raise,
     AT(names), PROFILE_NAMES_MANGLED},
    OPTION_ADDRESSES(AT(detail)),
    OPTIONS_SELECT(AT(selection)),
    OPTION_JSON(AT(is_json)),
    {0},
};

static const struct command_line line = {
    .usage = "profctl diff BEFORE... [--with] AFTER... [-o FILE.html] [OPTION...]",
    .help = "Shows what grew and what shrank from one recording to another, and which of that\n"
            "is more than noise. That takes three recordings of each side or more: how much\n"
            "runs of the same program differ is measured between them. With fewer nothing is\n"
            "called sure.\n",
    .more_help =
        "self is of the row itself, total also of what it had called. A change with a *\n"
        "is sure; what is not is grey. seen at: the smallest change of the row that would\n"
        "have been called sure in 4 of 5 cases.\n"
        "within, with fewer than three recordings of a side: the change is known to so\n"
        "much by the noise of sampling within the runs; how they differ is not in it.\n",
    .options = options,
    .operand = "recording",
    .operand_at = AT(operands),
    .take_operand = take_operand,
};

static size_t count_side(const struct operands *operands, enum diff_side side)
{
    size_t count = 0;
    for (size_t i = 0; i < operands->count; i++) {
        count += operands->sides[i] == side;
    }
    return count;
}

/* Sides of recordings that stand without --with. */
static int check_operands(struct operands *operands)
{
    if (operands->has_with) {
        return count_side(operands, DIFF_BEFORE) > 0 && count_side(operands, DIFF_AFTER) > 0
                   ? EXIT_DONE
                   : options_refuse(&line, "--with stands between the recordings of two sides");
    }
    if (operands->count != 2) {
        return options_refuse(&line, "name two recordings, or several of each side: profctl diff "
                                     "a1.fxt a2.fxt --with b1.fxt b2.fxt");
    }
    operands->sides[1] = DIFF_AFTER;
    return EXIT_DONE;
}

/* Lists the paths of a side. Returns how many. */
static size_t list_side(const struct operands *operands, enum diff_side side, const char **ret)
{
    size_t count = 0;
    for (size_t i = 0; i < operands->count; i++) {
        if (operands->sides[i] == side) {
            ret[count++] = operands->paths[i];
        }
    }
    return count;
}

/* A run that stands twice on a side would say that runs do not differ. */
static int check_files(const struct operands *operands)
{
    const char *paths[RECORDINGS_MAX];
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        size_t first = 0;
        size_t second = 0;
        size_t count = list_side(operands, side, paths);
        int r = input_find_same_file(paths, count, &first, &second);
        if (r < 0) {
            return complain("there is not enough memory");
        }
        if (r > 0) {
            return options_refuse(&line,
                                  "%s and %s are the same file, which is one run of the program; "
                                  "name each recording of a side once",
                                  paths[first], paths[second]);
        }
    }
    return EXIT_DONE;
}

/* The same of copies in other files. */
static int check_copies(const struct operands *operands, struct first_samples *firsts)
{
    const char *paths[RECORDINGS_MAX];
    for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
        size_t first = 0;
        size_t second = 0;
        if (first_samples_find_shared(&firsts[side], &first, &second)) {
            (void)list_side(operands, side, paths);
            return complain("%s and %s have the same samples of a session, which is one run of "
                            "the program; name each recording of a side once",
                            paths[first], paths[second]);
        }
    }
    return EXIT_DONE;
}

/* A limit that no change could be above would let everything pass. */
static int check_limit(const struct diff_request *request)
{
    const struct operands *operands = &request->operands;
    size_t needed = diff_recordings_needed(request->options.discovery_rate);
    if (request->fail_percent == NOT_ASKED_FOR || (count_side(operands, DIFF_BEFORE) >= needed &&
                                                   count_side(operands, DIFF_AFTER) >= needed)) {
        return EXIT_DONE;
    }
    return options_refuse(&line,
                          "--fail-above: fewer than %zu recordings of a side cannot tell growth "
                          "from the difference between runs of the same program; record each side "
                          "%zu times: profctl diff before-?.fxt --with after-?.fxt --fail-above "
                          "%.3g%%",
                          needed, needed, request->fail_percent);
}

/* A diff that is printed is written behind none of its recordings. */
static int check_printed(const struct diff_request *request)
{
    const struct operands *operands = &request->operands;
    if (request->is_opened) {
        return options_refuse(&line, "--open needs a page: -o diff.html");
    }
    int status = EXIT_DONE;
    for (size_t i = 0; i < operands->count && status == EXIT_DONE; i++) {
        status = save_refuse_input(&line, operands->paths[i]);
    }
    return status;
}

static int check_page(const struct diff_request *request)
{
    const char *path = request->output_path;
    const struct operands *operands = &request->operands;
    if (path == NULL) {
        return check_printed(request);
    }
    if (!save_is_page(path)) {
        return options_refuse(&line, "-o %s does not end in .html", path);
    }
    if (request->is_json) {
        return options_refuse(&line, "--json and -o: a page has no JSON; ask for one of them");
    }
    if (request->is_opened && !save_can_be_shown(path)) {
        return options_refuse(&line, "--open needs a file that is not compressed: -o diff.html");
    }
    for (size_t i = 0; i < operands->count; i++) {
        if (save_is_input(operands->paths[i], path)) {
            return options_refuse(&line, "-o %s is one of the recordings; name another file", path);
        }
    }
    return EXIT_DONE;
}

/* Reads numbers that commas part. Returns how many; 0: they are none. */
static size_t parse_works(const char *text, double *ret)
{
    size_t count = 0;
    for (;;) {
        const char *end = NULL;
        double number = options_decimal(text, &end);
        if (end == text || !(number > 0) || isinf(number) || count == RECORDINGS_MAX ||
            (*end != ',' && *end != '\0')) {
            return 0;
        }
        ret[count++] = number;
        if (*end == '\0') {
            return count;
        }
        text = end + 1;
    }
}

static int take_per(struct diff_request *request)
{
    struct operands *operands = &request->operands;
    double works[RECORDINGS_MAX];
    if (request->per == NULL) {
        return EXIT_DONE;
    }
    if (strcmp(request->per, "time") == 0 || strcmp(request->per, "cpu") == 0) {
        request->options.per = request->per[0] == 't' ? DIFF_PER_TIME : DIFF_PER_CPU;
        return EXIT_DONE;
    }
    size_t count = parse_works(request->per, works);
    if (count != 1 && count != 2 && count != operands->count) {
        return options_refuse(&line,
                              "--per %s: give time, cpu, or units of work: one number, "
                              "one of each side, or one of each recording",
                              request->per);
    }
    request->options.per = DIFF_PER_WORK;
    for (size_t i = 0; i < operands->count; i++) {
        operands->works[i] = count == operands->count ? works[i]
                             : count == 1             ? works[0]
                                                      : works[operands->sides[i]];
    }
    return EXIT_DONE;
}

/* Loads and adds one recording. `*status` becomes that of a
 * failure; false: there is nothing to compare. */
static bool add_recording(const struct diff_request *request, size_t number, struct diff *diff,
                          struct parts *parts, int *status)
{
    const struct operands *operands = &request->operands;
    const char *path = operands->paths[number];
    cleanup_(profile_freep) struct profile *profile = NULL;
    const struct load_request wanted = {.path = path,
                                        .selection = &request->selection,
                                        .names = request->names,
                                        .detail = request->detail};
    int r = load_recording(&wanted, &profile);
    *status = r == EXIT_DONE ? *status : r;
    if (profile == NULL) {
        return false;
    }
    enum diff_side side = operands->sides[number];
    const struct flame_source source = {profile, input_title(path), false}; /* by the result */
    if (diff_add(diff, side, profile, source.name, operands->works[number]) < 0 ||
        first_samples_add(&parts->firsts[side], &profile->firsts) < 0 ||
        (parts->flame != NULL && flamegraph_add(parts->flame, &source, side) < 0)) {
        *status = complain("%s: there is not enough memory", path);
        return false;
    }
    if (parts->flame != NULL) {
        parts->profiles[number] = take_ptr(profile);
    }
    return true;
}

/* Says why the status is what it is, in a line. */
static int judge_limit(const struct diff_request *request, const struct diff *diff)
{
    double limit = request->fail_percent / 100;
    double part = 0;
    bool is_visible = false;
    const struct diff_row *row = diff_find_above(diff, limit, &part, &is_visible);
    if (row != NULL) {
        (void)complain("%s grew by %.2f %% of the whole, which is above %.3g %%", row->name,
                       100 * part, request->fail_percent);
        return EXIT_ABOVE_LIMIT;
    }
    if (request->per == NULL && diff_hides_growth(diff, limit, &part)) {
        return complain("--fail-above: a recording took %.0f %% more CPU time, and in shares of "
                        "that (--per cpu) what grew as all did has not grown; give --per 1 if both "
                        "did the same work, or --per cpu to judge shares alone",
                        100 * part);
    }
    if (!is_visible) {
        (void)complain("--fail-above: nothing surely grew by more than %.3g %% of the whole, but "
                       "not all such changes would have been seen; record longer, or more often",
                       request->fail_percent);
    }
    return EXIT_DONE;
}

/* Notes whether both sides have samples of one session. */
static int find_shared(struct diff *diff, const struct first_samples *firsts)
{
    cleanup_(first_samples_done) struct first_samples both = {0};
    size_t first = 0;
    size_t second = 0;
    int r = 0;
    for (size_t side = 0; side < DIFF_SIDES && r == 0; side++) {
        r = first_samples_add(&both, &firsts[side]);
    }
    if (r == 0 && first_samples_find_shared(&both, &first, &second)) {
        diff_note_shared(diff);
    }
    return r < 0 ? complain("there is not enough memory") : EXIT_DONE;
}

static int save_page(const struct diff_request *request, const struct diff *diff,
                     const struct flame *flame)
{
    int status = diff_page_save(request->output_path, diff, flame, request->limit);
    return status == EXIT_DONE && request->is_opened ? browser_show(request->output_path) : status;
}

static int print_diff(const struct diff_request *request, const struct diff *diff,
                      const struct flame *flame)
{
    struct page page;
    int r = 0;
    if (request->output_path != NULL) {
        return save_page(request, diff, flame);
    }
    if (request->is_json) {
        r = diff_print_json(stdout, diff, request->limit);
    } else {
        page_open(request->is_wide, &page);
        r = diff_print_table(&page, diff, request->limit);
        page_close(&page);
    }
    return r < 0 ? complain("there is not enough memory") : EXIT_DONE;
}

static int run_diff(struct diff_request *request)
{
    struct fault fault = {0};
    int status = EXIT_DONE;
    cleanup_(diff_freep) struct diff *diff = diff_new(&request->options);
    cleanup_(parts_done) struct parts parts = {
        .flame = request->output_path == NULL ? NULL : flamegraph_new()};
    if (diff == NULL || (request->output_path != NULL && parts.flame == NULL)) {
        return complain("there is not enough memory");
    }
    for (size_t i = 0; i < request->operands.count; i++) {
        if (!add_recording(request, i, diff, &parts, &status)) {
            return status;
        }
    }
    int copies_status = check_copies(&request->operands, parts.firsts);
    copies_status = copies_status == EXIT_DONE ? find_shared(diff, parts.firsts) : copies_status;
    if (copies_status != EXIT_DONE) {
        return copies_status;
    }
    int r = diff_compare(diff, &fault);
    if (r < 0) {
        const char *refusal = diff_refusal(diff);
        return complain("%s", r == -ENOMEM      ? "there is not enough memory"
                              : refusal != NULL ? refusal
                                                : fault.text);
    }
    int print_status = print_diff(request, diff, parts.flame);
    status = print_status == EXIT_DONE ? status : print_status;
    return status == EXIT_DONE && request->fail_percent != NOT_ASKED_FOR
               ? judge_limit(request, diff)
               : status;
}

int verb_diff(int argc, char **argv)
{
    struct diff_request request = {
        .options.discovery_rate = RATE_DEFAULT,
        .fail_percent = NOT_ASKED_FOR,
        .limit = ROWS_DEFAULT,
    };
    int status = options_take(&line, argc, argv, &request);
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    status = check_operands(&request.operands);
    status = status == EXIT_DONE ? check_files(&request.operands) : status;
    status = status == EXIT_DONE ? take_per(&request) : status;
    status = status == EXIT_DONE ? check_limit(&request) : status;
    status = status == EXIT_DONE ? check_page(&request) : status;
    const struct selection *selection = &request.selection;
    request.options.is_part_of_time =
        selection->from.kind != SELECTION_ANY_TIME || selection->to.kind != SELECTION_ANY_TIME;
    request.options.is_part = !selection_is_empty(selection);
    return status == EXIT_DONE ? run_diff(&request) : status;
}
