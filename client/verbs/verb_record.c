/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl record`: reads the options; record/ does the rest.
 */
#include "cleanup.h"
#include "json.h"
#include "options.h"
#include "output.h"
#include "record.h"
#include "verbs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DURATION_S_MAX 1e9

static const struct option long_options[] = {
    {"frequency", required_argument, NULL, 'F'},
    {"duration", required_argument, NULL, 'd'},
    {"output", required_argument, NULL, 'o'},
    {"config", required_argument, NULL, OPTION_OF_VERB},
    {"socket", required_argument, NULL, OPTION_OF_VERB + 1},
    {"kernel", no_argument, NULL, OPTION_OF_VERB + 2},
    TARGET_LONG_OPTIONS,
    {"help", no_argument, NULL, OPTION_HELP},
    {0},
};

static const struct command_line line = {
    .usage = "profctl record [-F HZ] [-d SECONDS] [-o FILE] [OPTION...] [-- CMD...]",
    .help = "Records what the CPUs do, until -d is over, Ctrl-C, or the end of CMD. With CMD,\n"
            "only it and its children are recorded; it runs as you, here and now.\n"
            "\n"
            "  -F, --frequency HZ      samples a second on each CPU, 1 to 100000 (999)\n"
            "  -d, --duration SECONDS  how long; fractions are fine\n"
            "  -o, --output FILE       where to (profile.fxt); a name that ends in .gz is\n"
            "                          compressed, \"-\" is standard output\n"
            "  -a                      the whole machine, in spite of CMD\n"
            "      --kernel            stacks of the kernel too\n"
            "      --config FILE       a session config, JSON; options go over it\n"
            "      --socket PATH       the daemon's socket\n"
            "  -h, --help              this text\n"
            "\n" TARGET_OPTIONS_HELP "\n"
            "A second Ctrl-C ends profctl without waiting for the daemon.\n"
            "The exit status is 127 when CMD is not found, and 126 when it cannot be executed\n"
            "for another reason. The status that CMD itself ends with is printed, not\n"
            "returned.\n",
    .short_options = "+:hF:d:o:a" TARGET_SHORT_OPTIONS,
    .long_options = long_options,
};

/* Seconds, with or without a fraction. */
static bool parse_duration(const char *text, uint64_t *ret_ns)
{
    char *end = NULL;
    if (text[0] == '\0' || strspn(text, "0123456789.") != strlen(text)) {
        return false;
    }
    double seconds = strtod(text, &end);
    if (*end != '\0' || !(seconds > 0 && seconds <= DURATION_S_MAX)) {
        return false;
    }
    *ret_ns = (uint64_t)ceil(seconds * 1e9);
    return true;
}

/* Takes one option. Returns EXIT_DONE, or EXIT_WRONG_USAGE after a complaint. */
static int take_option(int option, struct record_request *request, cJSON **targets)
{
    switch (option) {
    case 'F':
        return options_frequency(&line, optarg, &request->frequency_hz) ? EXIT_DONE
                                                                        : EXIT_WRONG_USAGE;
    case 'd':
        if (!parse_duration(optarg, &request->duration_ns)) {
            return options_refuse(&line, "-d: %s: is not a number of seconds above 0, at most %.0f",
                                  optarg, DURATION_S_MAX);
        }
        return EXIT_DONE;
    case 'o':
        if (optarg[0] == '\0') {
            return options_refuse(&line, "-o: is empty; name a file");
        }
        request->output_path = output_plain_path(optarg);
        return EXIT_DONE;
    case 'a':
        request->whole_machine = true;
        return EXIT_DONE;
    case OPTION_OF_VERB:
        request->config_path = optarg;
        return EXIT_DONE;
    case OPTION_OF_VERB + 1:
        return options_socket(&line, optarg, &request->socket_path) ? EXIT_DONE : EXIT_WRONG_USAGE;
    case OPTION_OF_VERB + 2:
        request->kernel_stacks = true;
        return EXIT_DONE;
    default:
        return target_option_is(option) ? target_option_take(&line, option, optarg, targets)
                                        : EXIT_WRONG_USAGE;
    }
}

/* Takes what follows the options; `has_dashes`: it was "--" that ended them. */
static int take_command(int argc, char **argv, bool has_dashes, struct record_request *request)
{
    if (optind < argc && !has_dashes) {
        return options_refuse(&line, "%s: is not an option; a command goes after --", argv[optind]);
    }
    if (optind == argc && has_dashes) {
        return options_refuse(&line, "--: a command must follow '--'");
    }
    if (optind < argc) {
        request->command = argv + optind;
    }
    return EXIT_DONE;
}

int verb_record(int argc, char **argv)
{
    struct record_request request = {.output_path = "profile.fxt"};
    cleanup_(json_freep) cJSON *targets = NULL;
    int option = 0;
    int status = EXIT_DONE;
    int taken = optind; /* the arguments that options are made of */
    while ((option = options_next(&line, argc, argv)) != OPTIONS_END) {
        if (option == OPTIONS_HELP) {
            return EXIT_DONE;
        }
        status = take_option(option, &request, &targets);
        if (status != EXIT_DONE) {
            return status;
        }
        taken = optind;
    }
    if (take_command(argc, argv, optind > taken, &request) != EXIT_DONE) {
        return EXIT_WRONG_USAGE;
    }
    request.targets = targets;
    if (targets != NULL && request.command != NULL) {
        return options_refuse(&line,
                              "%s: is recorded alone, and -p, -t, -u, -G and --comm name something "
                              "else; leave one of the two out",
                              request.command[0]);
    }
    if (targets != NULL && request.whole_machine) {
        return options_refuse(&line, "-a: is the whole machine, and -p, -t, -u, -G and --comm name "
                                     "a part; leave one of the two out");
    }
    bool is_stdout = strcmp(request.output_path, "-") == 0;
    if (is_stdout && request.command != NULL) {
        return options_refuse(&line, "-o -: standard output is the command's; name a file");
    }
    if (is_stdout && isatty(STDOUT_FILENO)) {
        return options_refuse(&line, "-o -: standard output is a terminal; name a file, or a pipe");
    }
    return record_run(&request);
}
