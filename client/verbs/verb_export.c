/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl export`: a recording for another program. A new format is a file in export/ and a line
 * of the table below.
 */
#include "cleanup.h"
#include "folded.h"
#include "load.h"
#include "options.h"
#include "output.h"
#include "verbs.h"

#include <string.h>

static const struct {
    const char *name;
    int (*print)(FILE *file, const struct profile *profile);
} formats[] = {
    {"folded", folded_print},
};

#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

static const struct option long_options[] = {
    {"format", required_argument, NULL, OPTION_OF_VERB},
    {"inline", no_argument, NULL, OPTION_OF_VERB + 1},
    {"lines", no_argument, NULL, OPTION_OF_VERB + 2},
    {"no-demangle", no_argument, NULL, OPTION_OF_VERB + 3},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, OPTION_HELP},
    {0},
};

static const struct command_line line = {
    .usage = "profctl export FILE --format FORMAT [-o FILE] [OPTION...]",
    .help = "Converts a recording. FILE may be compressed with gzip; \"-\" is standard input.\n"
            "\n"
            "      --format FORMAT  folded: a line a stack, as flame graph programs read them\n"
            "      --inline         functions that were inlined are frames too; report --help\n"
            "                       says what that needs\n"
            "      --lines          the same, and frames have \":FILE:LINE\" behind their names\n"
            "      --no-demangle    names of C++ and Rust as compilers write them\n"
            "  -o, --output FILE    where to; a name that ends in .gz is compressed, \"-\" is\n"
            "                       standard output (-)\n"
            "  -h, --help           this text\n",
    .short_options = ":ho:",
    .long_options = long_options,
};

/* The file gets its name only when all of it is there. */
static int export_file(const struct profile *profile, size_t format, const char *path)
{
    cleanup_(output_freep) struct output *output = NULL;
    struct fault fault = {0};
    if (output_open(path, &output, &fault) < 0) {
        return complain("%s", fault.text);
    }
    FILE *file = output_stream(output);
    if (file == NULL || formats[format].print(file, profile) < 0) {
        return complain("%s: there is not enough memory", path);
    }
    if (output_finish(output, &fault) < 0) {
        return complain("%s", fault.text);
    }
    return EXIT_DONE;
}

static int export_profile(const char *path, enum profile_names names, size_t format,
                          enum load_detail detail, const char *output_path)
{
    cleanup_(profile_freep) struct profile *profile = NULL;
    int status = load_profile(path, names, &profile);
    if (profile == NULL) {
        return status;
    }
    if (load_detail(path, detail, profile) != EXIT_DONE) {
        return EXIT_FAILED;
    }
    int export_status = export_file(profile, format, output_path);
    return export_status == EXIT_DONE ? status : export_status;
}

int verb_export(int argc, char **argv)
{
    const char *path = NULL;
    const char *output_path = "-";
    size_t format = FORMAT_COUNT;
    enum profile_names names = PROFILE_NAMES_READABLE;
    enum load_detail detail = LOAD_FUNCTIONS;
    int option = 0;
    while ((option = options_next(&line, argc, argv)) != OPTIONS_END) {
        switch (option) {
        case 'o':
            if (optarg[0] == '\0') {
                return options_refuse(&line, "-o: is empty; name a file");
            }
            output_path = output_plain_path(optarg);
            break;
        case OPTION_OF_VERB:
            for (format = 0; format < FORMAT_COUNT && strcmp(optarg, formats[format].name) != 0;) {
                format++;
            }
            if (format == FORMAT_COUNT) {
                return options_refuse(&line, "--format: %s: is not a format; see --help", optarg);
            }
            break;
        case OPTION_OF_VERB + 1:
            detail = detail == LOAD_LINES ? LOAD_LINES : LOAD_INLINED;
            break;
        case OPTION_OF_VERB + 2:
            detail = LOAD_LINES;
            break;
        case OPTION_OF_VERB + 3:
            names = PROFILE_NAMES_MANGLED;
            break;
        default:
            return option == OPTIONS_HELP ? EXIT_DONE : EXIT_WRONG_USAGE;
        }
    }
    if (format == FORMAT_COUNT) {
        return options_refuse(&line, "--format: is missing; see --help for the formats");
    }
    if (!options_one_operand(&line, argc, argv, "recording", &path)) {
        return EXIT_WRONG_USAGE;
    }
    return export_profile(path, names, format, detail, output_path);
}
