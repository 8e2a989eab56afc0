/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The options that name what is recorded, the same for each verb that makes a session. What they
 * hold becomes the member "targets" of its config.
 */

#include "options.h"

#include <cjson/cJSON.h>

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
