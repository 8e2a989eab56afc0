/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl dump`: prints each record of a recording in the order of the file, without look-ups and
 * without keeping records in memory.
 */
#include "dump.h"
#include "load.h"
#include "options.h"
#include "save.h"
#include "verbs.h"

struct dump_request {
    const char *path;
    bool is_json;
};

static const struct verb_option options[] = {
    {0, "json", NULL, "a JSON object a line", options_flag, offsetof(struct dump_request, is_json),
     0},
    {0},
};

static const struct command_line line = {
    .usage = "profctl dump FILE [--json]",
    .help = "Prints the records of a recording, a line each, in the order of the file. FILE\n"
            "may be compressed with gzip; \"-\" is standard input.\n",
    .options = options,
    .operand = "recording",
    .operand_at = offsetof(struct dump_request, path),
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
    struct dump_request request = {0};
    struct input_summary summary;
    struct fault fault = {0};
    int status = options_take(&line, argc, argv, &request);
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    status = save_refuse_input(&line, request.path);
    if (status != EXIT_DONE) {
        return status;
    }
    if (input_read(request.path, request.is_json ? on_record_json : on_record_text, stdout,
                   &summary, &fault) < 0) {
        (void)fflush(stdout);
        return complain("%s", fault.text);
    }
    return summary.truncated || summary.damaged ? complain_truncated(request.path, &summary)
                                                : EXIT_DONE;
}
