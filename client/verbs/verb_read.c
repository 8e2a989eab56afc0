/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl read`: reads the options; read/ does the rest.
 */
#include "books_print.h"
#include "options.h"
#include "read.h"
#include "verbs.h"

#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(struct read_request, member)

static const struct verb_option options[] = {
    {'o', "output", "FILE",
     "where to; a name that ends in .gz is compressed, \"-\" is\nstandard output", options_output,
     AT(output_path), 0},
    {0, "append", NULL, "add to the recording that FILE holds", options_flag, AT(appends), 0},
    {0, "force", NULL, "replace that recording; it stays as FILE.old", options_flag, AT(replaces),
     0},
    {0, "native", NULL, "without the packets that Perfetto shows samples by", options_flag,
     AT(is_native), 0},
    {0, "books", NULL, "what became of the ticks of each CPU", options_flag, AT(shows_books), 0},
    {0, "json", NULL, "what was read, as one JSON object", options_flag, AT(attach.is_json), 0},
    OPTION_SOCKET(AT(attach.socket_path)),
    {0},
};

static const struct command_line line = {
    .usage = "profctl read -o FILE [--append | --force] [OPTION...] [--socket PATH]",
    .help = "Fetches what the session of profctl start has recorded since the last read.\n"
            "Each read gives what follows, also while the session runs, and each file is a\n"
            "recording of its own. Put together with cat, they are one too.\n",
    .more_help =
        "FILE gets its name when it is whole; until then, it is FILE.partial-..., beside\n"
        "it. A read that is interrupted loses nothing: the same command goes on with that\n"
        "file, which is a recording too. The exit status is 1 when there is nothing new\n"
        "to read, and then FILE stays as it is.\n"
        "A FILE that holds a recording already is only touched with --append or --force.\n\n" BOOKS_PRINT_HELP,
    .options = options,
    .instead = "; a file goes after -o",
};

int verb_read(int argc, char **argv)
{
    struct read_request request = {0};
    int status = options_take(&line, argc, argv, &request);
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    if (request.output_path == NULL) {
        return options_refuse(&line, "name a file with -o FILE, or standard output with -o -");
    }
    if (request.appends && request.replaces) {
        return options_refuse(&line, "--append and --force cannot be combined");
    }
    bool is_stdout = strcmp(request.output_path, "-") == 0;
    if (is_stdout && request.attach.is_json) {
        return options_refuse(&line,
                              "--json and -o - cannot be combined, since both write to standard "
                              "output; name a file");
    }
    if (is_stdout && isatty(STDOUT_FILENO)) {
        return options_refuse(&line, "-o -: standard output is a terminal; name a file or a pipe");
    }
    return read_run(&request);
}
