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
#include <sys/stat.h>

static const struct {
    const char *name;
    int (*print)(FILE *file, const struct profile *profile);
} formats[] = {
    {"folded", folded_print},
};

#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

struct export_request {
    const char *path;
    const char *output_path;
    size_t format; /* FORMAT_COUNT: none was named */
    enum profile_names names;
    enum load_detail detail;
};

static int take_format(const struct command_line *line, const struct verb_option *option,
                       const char *value, void *into)
{
    (void)option;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (strcmp(value, formats[i].name) == 0) {
            *(size_t *)into = i;
            return EXIT_DONE;
        }
    }
    return options_refuse(line, "--format: %s: is not a format; see --help", value);
}

#define AT(member) offsetof(struct export_request, member)

static const struct verb_option options[] = {
    {0, "format", "FORMAT", "folded: a line a stack, as flame graph programs read them",
     take_format, AT(format), 0},
    {0, "inline", NULL,
     "functions that were inlined are frames too; report --help\nsays what that needs",
     options_raise, AT(detail), LOAD_INLINED},
    {0, "lines", NULL, "the same, and frames have \":FILE:LINE\" behind their names", options_raise,
     AT(detail), LOAD_LINES},
    {0, "no-demangle", NULL, "names of C++ and Rust as compilers write them", options_raise,
     AT(names), PROFILE_NAMES_MANGLED},
    {'o', "output", "FILE",
     "where to; a name that ends in .gz is compressed, \"-\" is\nstandard output (-)",
     options_output, AT(output_path), 0},
    {0},
};

static const struct command_line line = {
    .usage = "profctl export FILE --format FORMAT [-o FILE] [OPTION...]",
    .help = "Converts a recording. FILE may be compressed with gzip; \"-\" is standard input.\n",
    .options = options,
    .operand = "recording",
    .operand_at = AT(path),
};

/* The file gets its name only when all of it is there. */
static int export_file(const struct profile *profile, const struct export_request *request)
{
    cleanup_(output_freep) struct output *output = NULL;
    struct fault fault = {0};
    if (output_open(request->output_path, &output, &fault) < 0) {
        return complain("%s", fault.text);
    }
    FILE *file = output_stream(output);
    if (file == NULL || formats[request->format].print(file, profile) < 0) {
        return complain("%s: there is not enough memory", request->output_path);
    }
    return output_finish(output, &fault) < 0 ? complain("%s", fault.text) : EXIT_DONE;
}

/* Whether the output would take the place of the recording. */
static bool is_input(const struct export_request *request)
{
    struct stat input;
    struct stat output;
    return strcmp(request->path, "-") != 0 && strcmp(request->output_path, "-") != 0 &&
           stat(request->path, &input) == 0 && stat(request->output_path, &output) == 0 &&
           S_ISREG(input.st_mode) && input.st_dev == output.st_dev && input.st_ino == output.st_ino;
}

int verb_export(int argc, char **argv)
{
    struct export_request request = {.output_path = "-", .format = FORMAT_COUNT};
    cleanup_(profile_freep) struct profile *profile = NULL;
    int status = options_take(&line, argc, argv, &request);
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    if (request.format == FORMAT_COUNT) {
        return options_refuse(&line, "--format: is missing; see --help for the formats");
    }
    if (is_input(&request)) {
        return options_refuse(&line, "-o: %s: is the recording itself; name another file",
                              request.output_path);
    }
    status = load_profile(request.path, request.names, &profile);
    if (profile == NULL) {
        return status;
    }
    if (load_detail(request.path, request.detail, profile) != EXIT_DONE) {
        return EXIT_FAILED;
    }
    int export_status = export_file(profile, &request);
    return export_status == EXIT_DONE ? status : export_status;
}
