/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl record`: reads the options; record/ does the rest.
 */
#include "books_print.h"
#include "cleanup.h"
#include "clock.h"
#include "duration.h"
#include "open_recording.h"
#include "options.h"
#include "record.h"
#include "verbs.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define DURATION_S_MAX UINT64_C(1000000000)

static int take_duration(const struct command_line *line, const struct verb_option *option,
                         const char *value, void *into)
{
    uint64_t *ret_ns = into;
    (void)option;
    return duration_parse(value, DURATION_S_MAX * NS_PER_S, ret_ns) && *ret_ns > 0
               ? EXIT_DONE
               : options_refuse(
                     line, "-d %s: give a time above 0, at most %" PRIu64 " s, " DURATION_FORMS,
                     value, DURATION_S_MAX);
}

static const struct verb_option options[] = {
    OPTION_FREQUENCY,
    {'d', "duration", "TIME", "how long: 5, 0.5, 250ms, 2m; CMD goes on after it", take_duration,
     RECORD_AT(duration_ns), 0},
    {'o', "output", "FILE",
     "where to (profile.fxt); a name that ends in .gz is\ncompressed, \"-\" is standard output",
     options_output, RECORD_AT(output_path), 0},
    {'a', NULL, NULL, "the whole machine, in spite of CMD", options_flag, RECORD_AT(whole_machine),
     0},
    OPTION_KERNEL,
    OPTION_NO_KERNEL,
    OPTION_EVENTS,
    OPTION_WALL,
    OPTION_MIN_WAIT,
    {0, "names", NULL,
     "have Java and .NET that run write maps of the code\nthat they make, and CMD's runtimes from "
     "their start",
     options_flag, RECORD_AT(names_code), 0},
    OPTION_CONFIG,
    {0, "ignore-status", NULL, "end with 0 whatever status CMD ends with", options_flag,
     RECORD_AT(ignores_status), 0},
    {0, "native", NULL, "without the packets that Perfetto shows samples by", options_flag,
     RECORD_AT(is_native), 0},
    {0, "books", NULL, "what became of the ticks of each CPU", options_flag, RECORD_AT(shows_books),
     0},
    {0, "json", NULL, "the result as one JSON object", options_flag, RECORD_AT(is_json), 0},
    {0, "open", NULL, "show it as a flame graph in the browser", options_flag, RECORD_AT(is_opened),
     0},
    OPTION_SOCKET(RECORD_AT(socket_path)),
    TARGET_OPTIONS,
    {0},
};

static const struct command_line line = {
    .usage = "profctl record [-F HZ] [-d TIME] [-o FILE] [OPTION...] [-- CMD...]",
    .help = "Records what the CPUs do, until -d is over, Ctrl-C, or the end of CMD, or of all\n"
            "that -p and -t name. With CMD, only it and its children are recorded; it runs as\n"
            "you, here and now.\n",
    .more_help =
        "What is slow though no CPU is busy, waits: profctl record --wall -- CMD, then\n"
        "profctl report --event off-cpu profile.fxt.\n\n"
        "Another Ctrl-C, a second later or more, ends profctl without the daemon.\n"
        "An existing FILE is kept as FILE.old. Without a sample FILE is not touched, and\n"
        "the exit status is 4. Otherwise it is that of CMD: 128 + N when signal N ended\n"
        "it, 127 when it is not found, 126 when it cannot be executed.\n\n" BOOKS_PRINT_HELP,
    .options = options,
    .elsewhere = record_perf_options,
    .has_command = true,
    .operand_at = RECORD_AT(command),
};

int verb_record(int argc, char **argv)
{
    cleanup_(record_request_done) struct record_request request = {.output_path = "profile.fxt"};
    int status = options_take(&line, argc, argv, &request);
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    if (request.targets != NULL && request.command != NULL) {
        return options_refuse(&line, "%s and a command cannot be combined",
                              record_target_option(request.targets));
    }
    if (request.targets != NULL && request.whole_machine) {
        return options_refuse(&line, "-a and %s cannot be combined",
                              record_target_option(request.targets));
    }
    if (request.kernel_stacks && request.no_kernel_stacks) {
        return options_refuse(&line, "--kernel and --no-kernel cannot be combined");
    }
    bool is_stdout = strcmp(request.output_path, "-") == 0;
    if (is_stdout && request.command != NULL) {
        return options_refuse(&line,
                              "-o - and a command cannot be combined, since both would write to "
                              "standard output; name a file");
    }
    if (is_stdout && isatty(STDOUT_FILENO)) {
        return options_refuse(&line, "-o -: standard output is a terminal; name a file or a pipe");
    }
    if (is_stdout && request.is_opened) {
        return options_refuse(&line, "-o - and --open cannot be combined; name a file");
    }
    bool is_saved = false;
    status = record_run(&request, &is_saved);
    int open_status =
        is_saved && request.is_opened ? open_recording(request.output_path) : EXIT_DONE;
    return status == EXIT_DONE ? open_status : status;
}
