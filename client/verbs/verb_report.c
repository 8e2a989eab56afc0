/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl report`: where the time of a recording went.
 */
#include "cleanup.h"
#include "load.h"
#include "options.h"
#include "report.h"
#include "verbs.h"

#include <string.h>

#define ROWS_DEFAULT 20

static const struct option long_options[] = {
    {"by", required_argument, NULL, OPTION_OF_VERB},
    {"json", no_argument, NULL, OPTION_OF_VERB + 1},
    {"inline", no_argument, NULL, OPTION_OF_VERB + 2},
    {"lines", no_argument, NULL, OPTION_OF_VERB + 3},
    {"no-demangle", no_argument, NULL, OPTION_OF_VERB + 4},
    {"help", no_argument, NULL, OPTION_HELP},
    {0},
};

static const struct command_line line = {
    .usage = "profctl report FILE [-n N] [--by WHAT] [--inline | --lines] [OPTION...]",
    .help = "Shows where the time of a recording went. FILE may be compressed with gzip; \"-\"\n"
            "is standard input.\n"
            "\n"
            "  -n N               at most N rows, 0 for all (20)\n"
            "      --by WHAT      what rows are: function, module, process, thread (function)\n"
            "      --inline       functions that were inlined are functions of their own, as\n"
            "                     debugging information says: that of the modules, below\n"
            "                     /usr/lib/debug, or from the servers of DEBUGINFOD_URLS\n"
            "      --lines        the same, and each line of a function is a row\n"
            "      --no-demangle  names of C++ and Rust as compilers write them\n"
            "      --json         one JSON object\n"
            "  -h, --help         this text\n"
            "\n"
            "self counts the samples that were in the row itself, total also those that it\n"
            "had called, each stack once.\n",
    .short_options = ":hn:",
    .long_options = long_options,
};

struct report_request {
    const char *path;
    size_t limit;
    enum report_by by;
    enum profile_names names;
    enum load_detail detail;
    bool is_json;
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
    int option = 0;
    while ((option = options_next(&line, argc, argv)) != OPTIONS_END) {
        uint64_t number = 0;
        switch (option) {
        case 'n':
            if (!options_number(optarg, UINT32_MAX, &number)) {
                return options_refuse(&line, "-n: %s: is not a number of rows; 0 shows all",
                                      optarg);
            }
            request.limit = (size_t)number;
            break;
        case OPTION_OF_VERB:
            if (!report_by_parse(optarg, &request.by)) {
                return options_refuse(
                    &line, "--by: %s: is not one of function, module, process, thread", optarg);
            }
            break;
        case OPTION_OF_VERB + 1:
            request.is_json = true;
            break;
        case OPTION_OF_VERB + 2:
            request.detail = request.detail == LOAD_LINES ? LOAD_LINES : LOAD_INLINED;
            break;
        case OPTION_OF_VERB + 3:
            request.detail = LOAD_LINES;
            break;
        case OPTION_OF_VERB + 4:
            request.names = PROFILE_NAMES_MANGLED;
            break;
        default:
            return option == OPTIONS_HELP ? EXIT_DONE : EXIT_WRONG_USAGE;
        }
    }
    if (!options_one_operand(&line, argc, argv, "recording", &request.path)) {
        return EXIT_WRONG_USAGE;
    }
    return print_report(&request);
}
