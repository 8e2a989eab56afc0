/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One recording, from opening its file to the summary. verb_record.c reads the options.
 */

#include "options.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct record_request {
    uint64_t frequency_hz; /* 0: as the config says */
    uint64_t duration_ns;  /* 0: until something else ends it */
    const char *output_path;
    const char *config_path; /* NULL: none */
    const char *socket_path; /* NULL: where the daemon usually is */
    const cJSON *targets;    /* what options name; NULL: as the config says */
    bool whole_machine;
    bool kernel_stacks;
    char **command; /* NULL: none; ends with NULL */
};

/* Returns an exit status: that of profctl, or 126 and 127 for a command that cannot be run. */
int record_run(const struct record_request *request);

/* The session config of a request, its config file's members and what the options say over them
 * (`child`: the command's pid, 0: there is none), with a complaint where that fails. `*ret` is
 * returned: free(). Returns an exit status. */
int record_config_load(const struct record_request *request, pid_t child, char **ret);

/*
 * The options that name what is recorded, the same for each verb that makes a session. What they
 * hold becomes the member "targets" of its config.
 */

#define TARGET_SHORT_OPTIONS "p:t:u:G:"
#define OPTION_COMM          0x200
#define TARGET_LONG_OPTIONS                                                                        \
    {"pid", required_argument, NULL, 'p'}, {"tid", required_argument, NULL, 't'},                  \
        {"uid", required_argument, NULL, 'u'}, {"comm", required_argument, NULL, OPTION_COMM},     \
    {                                                                                              \
        "cgroup", required_argument, NULL, 'G'                                                     \
    }
#define TARGET_OPTIONS_HELP                                                                        \
    "Only a part of the machine; each may be repeated, and what matches one of them\n"             \
    "is recorded:\n"                                                                               \
    "  -p, --pid PID[,PID]     processes, and the children that they start later\n"                \
    "  -t, --tid TID[,TID]     single threads\n"                                                   \
    "  -u, --uid USER[,USER]   processes of these users, by name or number\n"                      \
    "      --comm GLOB         threads, and processes with all their threads, by\n"                \
    "                          name: \"cc1*\"\n"                                                   \
    "  -G, --cgroup PATH       processes in a control group or below it:\n"                        \
    "                          /system.slice/nginx.service\n"

bool target_option_is(int option);

/*
 * Adds an option's value to `*targets`, which is NULL or a cJSON object, and made when it is needed
 * (released with json_freep()). Returns EXIT_DONE, EXIT_WRONG_USAGE after a complaint about a value
 * that the daemon would refuse, or EXIT_FAILED after one about something else.
 */
int target_option_take(const struct command_line *line, int option, const char *value,
                       cJSON **targets);
