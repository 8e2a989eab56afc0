/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl report`: where the time of a recording went.
 */
#include "cleanup.h"
#include "load.h"
#include "options.h"
#include "report.h"
#include "verbs.h"

#define ROWS_DEFAULT 20

struct report_request {
    const char *path;
    size_t limit;
    enum report_by by;
    enum profile_names names;
    enum load_detail detail;
    bool is_json;
};

static int take_rows(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    uint64_t rows = 0;
    (void)option;
    if (!options_number(value, UINT32_MAX, &rows)) {
        return options_refuse(line, "-n: %s: is not a number of rows; 0 shows all", value);
    }
    *(size_t *)into = (size_t)rows;
    return EXIT_DONE;
}

static int take_by(const struct command_line *line, const struct verb_option *option,
                   const char *value, void *into)
{
    (void)option;
    return report_by_parse(value, into)
               ? EXIT_DONE
               : options_refuse(line, "--by: %s: is not one of function, module, process, thread",
                                value);
}

#define AT(member) offsetof(struct report_request, member)

static const struct verb_option options[] = {
    {'n', NULL, "N", "at most N rows, 0 for all (20)", take_rows, AT(limit), 0},
    {0, "by", "WHAT", "what rows are: function, module, process, thread (function)", take_by,
     AT(by), 0},
    {0, "inline", NULL,
     "functions that were inlined are functions of their own, as\n"
     "debugging information says: that of the modules, below\n"
     "/usr/lib/debug, or from the servers of DEBUGINFOD_URLS",
     options_raise, AT(detail), LOAD_INLINED},
    {0, "lines", NULL, "the same, and each line of a function is a row", options_raise, AT(detail),
     LOAD_LINES},
    {0, "no-demangle", NULL, "names of C++ and Rust as compilers write them", options_raise,
     AT(names), PROFILE_NAMES_MANGLED},
    OPTION_JSON(AT(is_json)),
    {0},
};

static const struct command_line line = {
    .usage = "profctl report FILE [-n N] [--by WHAT] [--inline | --lines] [OPTION...]",
    .help = "Shows where the time of a recording went. FILE may be compressed with gzip; \"-\"\n"
            "is standard input.\n",
    .more_help = "self counts the samples that were in the row itself, total also those that it\n"
                 "had called, each stack once.\n",
    .options = options,
    .operand = "recording",
    .operand_at = AT(path),
};

static int print_report(const struct report_request *request)
{
    cleanup_(profile_freep) struct profile *profile = NULL;
    cleanup_(report_done) struct report report = {0};
    int status = load_profile(request->path, request->names, &profile);
    if (profile == NULL) {
        return status;
    }
    if (load_detail(request->path, request->detail, profile) != EXIT_DONE) {
        return EXIT_FAILED;
    }
    if (report_build(profile, request->by, &report) < 0) {
        return complain("%s: there is not enough memory", request->path);
    }
    if (request->is_json) {
        report_print_json(stdout, profile, &report, request->limit);
    } else {
        report_print_table(stdout, profile, &report, request->limit);
    }
    return status;
}

int verb_report(int argc, char **argv)
{
    struct report_request request = {.limit = ROWS_DEFAULT, .by = REPORT_BY_FUNCTION};
    int status = options_take(&line, argc, argv, &request);
    return status == OPTIONS_TAKEN ? print_report(&request) : status;
}
