/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl dump`: every record of a recording as it stands there, one after the other; nothing is
 * looked up and nothing is held in memory.
 */
#include "dump.h"
#include "load.h"
#include "options.h"
#include "verbs.h"

static const struct option long_options[] = {
    {"json", no_argument, NULL, OPTION_OF_VERB},
    {"help", no_argument, NULL, OPTION_HELP},
    {0},
};

static const struct command_line line = {
    .usage = "profctl dump FILE [--json]",
    .help = "Prints the records of a recording, a line each, in the order of the file. FILE\n"
            "may be compressed with gzip; \"-\" is standard input.\n"
            "\n"
            "      --json   a JSON object a line\n"
            "  -h, --help   this text\n",
    .short_options = ":h",
    .long_options = long_options,
};

static int on_record_text(const struct fxt_record *record, void *userdata)
{
    dump_print_text(userdata, record);
    return 0;
}

static int on_record_json(const struct fxt_record *record, void *userdata)
{
    dump_print_json(userdata, record);
    return 0;
}

int verb_dump(int argc, char **argv)
{
    const char *path = NULL;
    feed_record_fn on_record = on_record_text;
    struct input_summary summary;
    struct fault fault = {0};
    int option = 0;
    while ((option = options_next(&line, argc, argv)) != OPTIONS_END) {
        if (option != OPTION_OF_VERB) {
            return option == OPTIONS_HELP ? EXIT_DONE : EXIT_WRONG_USAGE;
        }
        on_record = on_record_json;
    }
    if (!options_one_operand(&line, argc, argv, "recording", &path)) {
        return EXIT_WRONG_USAGE;
    }
    if (input_read(path, on_record, stdout, &summary, &fault) < 0) {
        (void)fflush(stdout);
        return complain("%s", fault.text);
    }
    return summary.truncated ? complain_truncated(path, &summary) : EXIT_DONE;
}
