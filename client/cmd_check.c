/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl check`: what the daemon would say to a session config, without a daemon: the same parser
 * reads it here.
 */
#include "cleanup.h"
#include "json.h"
#include "options.h"
#include "read_text.h"
#include "session_config.h"
#include "text_out.h"
#include "verbs.h"

#include <stdio.h>
#include <string.h>

static const struct option long_options[] = {
    {"help", no_argument, NULL, OPTION_HELP},
    {0},
};

static const struct command_line line = {
    .usage = "profctl check CONFIG",
    .help = "Checks a session config, as `profctl record --config` takes it, and shows the values\n"
            "that a session would have. \"-\" is standard input. Needs no daemon.\n\n"
            "  -h, --help   this text\n",
    .short_options = ":h",
    .long_options = long_options,
};

/* The values, defaults included, a line each. */
static int print_values(const char *path, const struct session_config *config)
{
    cleanup_(freep) char *text = session_config_print(config);
    cleanup_(json_freep) cJSON *values = cJSON_Parse(text);
    const cJSON *value = NULL;
    if (values == NULL) {
        return complain("%s: there is not enough memory", path);
    }
    text_print(stdout, path);
    (void)fputs(": ok\n", stdout);
    cJSON_ArrayForEach(value, values)
    {
        cleanup_(freep) char *printed = cJSON_PrintUnformatted(value);
        (void)printf("  %-20s %s\n", value->string, printed == NULL ? "" : printed);
    }
    return EXIT_DONE;
}

/* The limit is the daemon's machine's, which may be another, so this is no fault of the config. */
static void hint_depth(const char *path, const struct session_config *config)
{
    cleanup_(freep) char *text = session_config_print(config);
    cleanup_(json_freep) cJSON *values = cJSON_Parse(text);
    const cJSON *unwind = cJSON_GetObjectItemCaseSensitive(values, "unwind");
    cleanup_(freep) char *limit_text = NULL;
    size_t limit_bytes = 0;
    if (!cJSON_IsString(unwind) || strcmp(unwind->valuestring, "fp") != 0 ||
        read_text("/proc/sys/kernel/perf_event_max_stack", 32, &limit_text, &limit_bytes, NULL) <
            0) {
        return;
    }
    long limit = strtol(limit_text, NULL, 10);
    if (limit > 0 && config->max_stack_depth > limit) {
        (void)complain("%s: max_stack_depth: %u is more than this machine's "
                       "kernel.perf_event_max_stack, %ld, so a daemon here refuses it; raise that "
                       "with sysctl, or ask for less",
                       path, config->max_stack_depth, limit);
    }
}

int cmd_check(int argc, char **argv)
{
    cleanup_(freep) char *text = NULL;
    size_t text_bytes = 0;
    const char *path = NULL;
    struct session_config config;
    struct fault fault = {0};
    int option = options_next(&line, argc, argv);
    if (option != OPTIONS_END) {
        return option == OPTIONS_HELP ? EXIT_DONE : EXIT_WRONG_USAGE;
    }
    if (!options_one_operand(&line, argc, argv, "config", &path)) {
        return EXIT_WRONG_USAGE;
    }
    if (read_text(path, SESSION_CONFIG_BYTES_MAX, &text, &text_bytes, &fault) < 0) {
        return complain("%s", fault.text);
    }
    if (session_config_parse(text, text_bytes, false, &config, &fault) < 0) {
        return complain("%s: %s: %s", path, fault.member, fault.text);
    }
    int status = print_values(path, &config);
    hint_depth(path, &config);
    return status;
}
