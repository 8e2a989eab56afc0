/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl read`: reads the options; read/ does the rest.
 */
#include "options.h"
#include "output.h"
#include "read.h"
#include "verbs.h"

#include <string.h>
#include <unistd.h>

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"json", no_argument, NULL, OPTION_OF_VERB},
    {"socket", required_argument, NULL, OPTION_OF_VERB + 1},
    {"help", no_argument, NULL, OPTION_HELP},
    {0},
};

static const struct command_line line = {
    .usage = "profctl read -o FILE [--json] [--socket PATH]",
    .help = "Fetches what the session of profctl start has recorded since the last read.\n"
            "Each read gives what follows, also while the session runs, and each file is a\n"
            "recording of its own. Put together with cat, they are one too.\n"
            "\n"
            "  -o, --output FILE  where to; a name that ends in .gz is compressed, \"-\" is\n"
            "                     standard output\n"
            "      --json         what was read, as one JSON object\n"
            "      --socket PATH  the daemon's socket\n"
            "  -h, --help         this text\n"
            "\n"
            "FILE gets its name when it is whole; until then, it is FILE.partial-..., beside\n"
            "it. A read that is interrupted loses nothing: the same command goes on with that\n"
            "file, which is a recording too. The exit status is 1 when there is nothing new\n"
            "to read, and then FILE stays as it is.\n",
    .short_options = ":ho:",
    .long_options = long_options,
};

int verb_read(int argc, char **argv)
{
    struct read_request request = {0};
    int option = 0;
    while ((option = options_next(&line, argc, argv)) != OPTIONS_END) {
        switch (option) {
        case 'o':
            request.output_path = output_plain_path(optarg);
            break;
        case OPTION_OF_VERB:
            request.attach.is_json = true;
            break;
        case OPTION_OF_VERB + 1:
            request.attach.socket_path = optarg;
            break;
        default:
            return option == OPTIONS_HELP ? EXIT_DONE : EXIT_WRONG_USAGE;
        }
    }
    if (optind < argc) {
        return options_refuse(&line, "%s: read takes no operand; a file goes after -o",
                              argv[optind]);
    }
    if (request.output_path == NULL || request.output_path[0] == '\0') {
        return options_refuse(&line, "-o: is %s; name a file, or - for standard output",
                              request.output_path == NULL ? "missing" : "empty");
    }
    bool is_stdout = strcmp(request.output_path, "-") == 0;
    if (is_stdout && request.attach.is_json) {
        return options_refuse(&line, "--json: standard output is the recording's; name a file");
    }
    if (is_stdout && isatty(STDOUT_FILENO)) {
        return options_refuse(&line, "-o -: standard output is a terminal; name a file, or a pipe");
    }
    return read_run(&request);
}
