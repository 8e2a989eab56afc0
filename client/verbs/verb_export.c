/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl export`: a recording for another program. A new format is a file in export/ and a line
 * of the table there.
 */
#include "cleanup.h"
#include "export.h"
#include "load.h"
#include "options.h"
#include "save.h"
#include "select_options.h"
#include "verbs.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT_HELP_BYTES ((size_t)2048)
#define UNSAID            UINT_MAX

struct export_request {
    const char *path;
    const char *output_path;
    unsigned format; /* of export_formats; UNSAID: none was named */
    unsigned root;   /* an enum export_root, or UNSAID */
    struct export_options options;
    struct selection selection;
    enum profile_names names;
    enum load_detail detail;
};

/* Appends to a text of `used` bytes, as far as `capacity` goes. Returns its bytes then. */
static size_t append(char *into, size_t used, size_t capacity, const char *first,
                     const char *second)
{
    int bytes = snprintf(into + used, capacity - used, "%s%s", first, second);
    return (size_t)bytes < capacity - used ? used + (size_t)bytes : used;
}

/* What --help says of them. `into` has FORMAT_HELP_BYTES; returns it. */
static const char *format_help(char *into)
{
    size_t used = append(into, 0, FORMAT_HELP_BYTES, "Formats:\n", "");
    for (const struct export_format *format = export_formats; format->name != NULL; format++) {
        char name[32];
        (void)snprintf(name, sizeof name, "  %-12s ", format->name);
        used = append(into, used, FORMAT_HELP_BYTES, name, format->help);
        used = append(into, used, FORMAT_HELP_BYTES, "\n", "");
    }
    return into;
}

static const char *format_name(size_t number)
{
    return export_formats[number].name;
}

/* The words are those of `report --by`. */
static const char *root_name(size_t root)
{
    static const char *const names[] = {[EXPORT_ROOT_COMMAND] = "command",
                                        [EXPORT_ROOT_PROCESS] = "process",
                                        [EXPORT_ROOT_THREAD] = "thread",
                                        NULL};
    return names[root];
}

#define AT(member) offsetof(struct export_request, member)

static const struct verb_option options[] = {
    {0, "format", "FORMAT", "which of the formats below", options_choice, AT(format), 0,
     format_name},
    {0, "by", "WHAT",
     "folded: what the first frame names: command, process\n(NAME-PID), thread (NAME-PID/TID) "
     "(command)",
     options_choice, AT(root), 0, root_name},
    OPTIONS_DETAIL(AT(detail), AT(names), INLINE_FRAMES,
                   "frames have \":FILE:LINE\" behind their names"),
    {0, "lost-frame", NULL,
     "a stack of the one frame [lost] stands for the ticks that\n"
     "the books miss",
     options_flag, AT(options.has_lost_frame), 0},
    OPTIONS_SELECT(AT(selection)),
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

/* Whether what reads the output cannot seek in it: a pipe, or a device. */
static bool is_piped(const char *path)
{
    struct stat status;
    int r = strcmp(path, "-") == 0 ? fstat(STDOUT_FILENO, &status) : stat(path, &status);
    return r == 0 && !S_ISREG(status.st_mode);
}

/* What is printed, as save_file() has it. */
struct printing {
    const struct profile *profile;
    const struct export_format *format;
    struct export_options options;
};

static int print_export(FILE *file, void *userdata)
{
    const struct printing *printing = userdata;
    return printing->format->print(file, printing->profile, &printing->options);
}

static int export_file(const struct profile *profile, const struct export_request *request)
{
    struct printing printing = {profile, &export_formats[request->format], request->options};
    printing.options.root = request->root == UNSAID ? EXPORT_ROOT_COMMAND : request->root;
    printing.options.is_piped = is_piped(request->output_path);
    return save_file(request->output_path, printing.format->is_gzip, print_export, &printing);
}

/* Refuses what the options ask for together. Returns an exit status, or OPTIONS_TAKEN. */
static int check_request(const struct command_line *command, const struct export_request *request)
{
    char names[OPTIONS_CHOICES_BYTES];
    if (request->format == UNSAID) {
        return options_refuse(command, "name a format with --format, one of %s",
                              options_list_choices(format_name, names));
    }
    const struct export_format *format = &export_formats[request->format];
    if (request->root != UNSAID && !format->has_roots) {
        return options_refuse(
            command, "%s has processes and threads of its own; --by is for folded", format->name);
    }
    if (request->options.has_lost_frame && format->has_no_frame) {
        return options_refuse(command,
                              "--lost-frame: a stack cannot stand for all that was lost in %s; "
                              "docs/export.md says what it has of that",
                              format->name);
    }
    if (request->options.has_lost_frame && !selection_is_empty(&request->selection)) {
        return options_refuse(command, "--lost-frame: what is lost is known of the whole recording "
                                       "only; leave out what selects a part of it");
    }
    if (request->options.has_lost_frame && request->selection.event != NULL) {
        return options_refuse(command, "--lost-frame stands for ticks of the clock; leave --event "
                                       "out");
    }
    if (save_is_input(request->path, request->output_path)) {
        return options_refuse(command, "-o %s is the recording itself; name another file",
                              request->output_path);
    }
    if (format->is_binary && strcmp(request->output_path, "-") == 0 && isatty(STDOUT_FILENO)) {
        return options_refuse(command,
                              "-o -: standard output is a terminal; name a file, or a pipe");
    }
    return OPTIONS_TAKEN;
}

int verb_export(int argc, char **argv)
{
    struct export_request request = {.format = UNSAID, .root = UNSAID, .output_path = "-"};
    cleanup_(profile_freep) struct profile *profile = NULL;
    struct command_line command = line;
    char help[FORMAT_HELP_BYTES];
    command.more_help = format_help(help);
    int status = options_take(&command, argc, argv, &request);
    status = status == OPTIONS_TAKEN ? check_request(&command, &request) : status;
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    const struct load_request load = {.path = request.path,
                                      .selection = &request.selection,
                                      .names = request.names,
                                      .detail = request.detail};
    status = load_recording(&load, &profile);
    if (profile == NULL) {
        return status;
    }
    if (export_formats[request.format].has_no_value && profile->values != NULL) {
        return complain("%s has samples of %s that stand for different amounts, which %s cannot "
                        "hold; another format can",
                        request.path, profile->event.name, export_formats[request.format].name);
    }
    int export_status = export_file(profile, &request);
    return export_status == EXIT_DONE ? status : export_status;
}
