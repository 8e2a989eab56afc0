/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl doctor`: reads the options; doctor/ does the rest.
 */
#include "cleanup.h"
#include "doctor.h"
#include "options.h"
#include "page.h"
#include "verbs.h"

struct doctor_request {
    const char *socket_path; /* NULL: where the daemon usually is */
    bool is_json;
    bool fixes;
};

#define AT(member) offsetof(struct doctor_request, member)

static const struct verb_option options[] = {
    {0, "fix", NULL, "run the commands that need no decision, and look again", options_flag,
     AT(fixes), 0},
    OPTION_JSON(AT(is_json)),
    OPTION_SOCKET(AT(socket_path)),
    {0},
};

static const struct command_line line = {
    .usage = "profctl doctor [--fix] [--json] [--socket PATH]",
    .help = "Says why profiling does not work, or not well, on this machine, and what to do\n"
            "about it: a line for each check (ok, note, warning, wrong), and below it the\n"
            "commands that help. Records a child of its own for a second.\n",
    .more_help = "What --fix does is to start the daemon's units that do not run, where the\n"
                 "socket is enabled or active. It shows each command, and changes no setting, no\n"
                 "group and no file.\n"
                 "Exit status: 0 nothing is wrong, 1 something is.\n",
    .options = options,
};

int verb_doctor(int argc, char **argv)
{
    struct doctor_request request = {0};
    cleanup_(doctor_report_done) struct doctor_report report = {0};
    int status = options_take(&line, argc, argv, &request);
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    doctor_examine(request.socket_path, &report);
    /* The object alone is on standard output. */
    if (request.fixes && doctor_fix(&report, request.is_json ? stderr : stdout) > 0) {
        doctor_report_done(&report);
        doctor_examine(request.socket_path, &report);
    }
    if (request.is_json) {
        doctor_print_json(stdout, &report);
    } else {
        struct page page;
        page_open(false, &page);
        doctor_print(&page, &report);
        page_close(&page);
    }
    return doctor_is_ill(&report) ? EXIT_FAILED : EXIT_DONE;
}
