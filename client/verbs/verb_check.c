/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `profctl check`: what the daemon would say to a session config of the caller, without a daemon:
 * the same parser reads it here, within the limits of this machine's daemon.json. Where these are
 * not known, the last line says so. What depends on the machine that a session will run on, which
 * may be another one, is only warned of.
 */
#include "cleanup.h"
#include "daemon_config.h"
#include "json.h"
#include "json_out.h"
#include "options.h"
#include "session_config.h"
#include "text_file.h"
#include "text_out.h"
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define UNCHECKED_BYTES 512

#define KERNEL_STACKS  "kernel_stacks"
#define MAX_STACK_PATH "/proc/sys/kernel/perf_event_max_stack"

struct check_request {
    const char *path;
    bool is_json;
};

static const struct verb_option options[] = {
    {0, "json", NULL,
     "one JSON object: file, ok, and config, warnings and\nlimits_checked, or error", options_flag,
     offsetof(struct check_request, is_json), 0},
    {0},
};

static const struct command_line line = {
    .usage = "profctl check [--json] CONFIG",
    .help = "Checks a session config, as `profctl record --config` takes it, and shows the\n"
            "values that a session would have. \"-\" is standard input. Needs no daemon; the\n"
            "limits are those that " DAEMON_CONFIG_PATH " has for you.\n",
    .options = options,
    .operand = "config",
    .operand_example = "web.json",
    .operand_at = offsetof(struct check_request, path),
};

/* Adds a note when this machine's kernel would not do what is asked for. */
static void warn_of_machine(const struct session_config *config, struct session_notes *notes)
{
    cleanup_(freep) char *text = NULL;
    size_t text_bytes = 0;
    if (config->unwind != SESSION_UNWIND_FP ||
        text_file_read(MAX_STACK_PATH, 64, &text, &text_bytes, NULL) < 0) {
        return;
    }
    unsigned long frames = strtoul(text, NULL, 10);
    if (config->max_stack_depth > frames) {
        session_notes_add(notes, "max_stack_depth",
                          "%u frames are more than this machine's kernel records with \"unwind\": "
                          "\"fp\" (kernel.perf_event_max_stack is %lu)",
                          config->max_stack_depth, frames);
    }
}

/* A value that is no member is one that a config cannot spell. */
static void print_value(const char *member, const char *value)
{
    text_print_member(stdout, member, value);
}

/* A value, or what a session has where the config does not say and it depends on the verb. */
static void print_known(const cJSON *value, bool says_kernel)
{
    if (strcmp(value->string, KERNEL_STACKS) == 0 && !says_kernel) {
        print_value(KERNEL_STACKS, "true of record and start, where it is allowed; else false");
        return;
    }
    cleanup_(freep) char *printed = cJSON_PrintUnformatted(value);
    print_value(value->string, printed == NULL ? "" : printed);
}

static bool says_kernel_stacks(const char *config_text)
{
    cleanup_(json_freep) cJSON *tree = cJSON_Parse(config_text);
    return cJSON_GetObjectItemCaseSensitive(tree, KERNEL_STACKS) != NULL;
}

/* The values, defaults included, a line each; `text` has them in JSON. */
static int print_values(const char *path, const struct session_config *config, const char *text,
                        bool says_kernel)
{
    cleanup_(json_freep) cJSON *values = cJSON_Parse(text);
    const cJSON *value = NULL;
    if (values == NULL) {
        return complain("%s: there is not enough memory", path);
    }
    text_print(stdout, path);
    (void)fputs(": ok\n", stdout);
    cJSON_ArrayForEach(value, values)
    {
        print_known(value, says_kernel);
    }
    if (config->cpus[0] == '\0') {
        print_value("cpus", "all");
    }
    if (session_targets_empty(&config->targets)) {
        print_value("targets", "everything");
    }
    if (config->max_duration_s == 0) {
        print_value("max_duration_s", "none; 600 for a detached session");
    }
    return EXIT_DONE;
}

static void print_fault(struct json_out *out, const char *name, const char *member,
                        const char *text)
{
    json_out_begin(out, name, '{');
    json_out_string(out, "member", member);
    json_out_string(out, "text", text);
    json_out_end(out, '}');
}

/* `config_text` is NULL when the config is refused with `fault`; else `notes` are the warnings, and
 * `limits_checked` says whether the daemon's limits for users are among what was checked. */
static void print_json(const char *path, const char *config_text, const struct fault *fault,
                       const struct session_notes *notes, bool limits_checked)
{
    struct json_out out = {.file = stdout};
    json_out_begin(&out, NULL, '{');
    json_out_string(&out, "file", path);
    json_out_raw(&out, "ok", config_text == NULL ? "false" : "true");
    if (config_text == NULL) {
        print_fault(&out, "error", fault->member, fault->text);
    } else {
        json_out_raw(&out, "config", config_text);
        json_out_begin(&out, "warnings", '[');
        for (size_t i = 0; i < notes->count; i++) {
            print_fault(&out, NULL, notes->notes[i].member, notes->notes[i].text);
        }
        json_out_end(&out, ']');
        json_out_raw(&out, "limits_checked", limits_checked ? "true" : "false");
    }
    json_out_end(&out, '}');
    (void)fputc('\n', stdout);
}

static int refuse(const char *path, bool json, const struct fault *fault)
{
    if (json) {
        print_json(path, NULL, fault, NULL, false);
        return EXIT_FAILED;
    }
    return complain("%s: %s: %s", path, fault->member, fault->text);
}

/*
 * The limits of the daemon for a session of the caller. `unchecked` has room for UNCHECKED_BYTES
 * and gets a sentence about limits that were not checked; "": all were.
 */
static struct session_limits find_limits(char *unchecked)
{
    struct daemon_config config;
    struct fault fault = {0};
    unchecked[0] = '\0';
    int r = daemon_config_load(DAEMON_CONFIG_PATH, &config, &fault);
    if (r < 0 && r != -ENOENT) {
        (void)snprintf(unchecked, UNCHECKED_BYTES,
                       "the daemon's limits for users were not checked: %s: %s%s%s",
                       DAEMON_CONFIG_PATH, fault.member, fault.member[0] == '\0' ? "" : ": ",
                       fault.text);
        return session_no_limits;
    }
    if (r < 0) {
        daemon_config_init(&config, DAEMON_CONFIG_PATH);
    }
    if (geteuid() == 0) {
        (void)snprintf(unchecked, UNCHECKED_BYTES, "%s",
                       "the daemon's limits for users other than root were not checked");
    }
    return daemon_config_limits(&config, geteuid());
}

static int accept_config(const char *path, bool json, const struct session_config *config,
                         const char *config_text, const char *unchecked)
{
    cleanup_(freep) char *text = session_config_print(config);
    struct session_notes notes = config->notes;
    warn_of_machine(config, &notes);
    if (text == NULL) {
        return complain("%s: there is not enough memory", path);
    }
    if (json) {
        print_json(path, text, NULL, &notes, unchecked[0] == '\0');
        return EXIT_DONE;
    }
    int status = print_values(path, config, text, says_kernel_stacks(config_text));
    if (unchecked[0] != '\0') {
        text_print(stdout, unchecked);
        (void)fputc('\n', stdout);
    }
    for (size_t i = 0; i < notes.count; i++) {
        (void)complain("%s: %s: warning: %s", path, notes.notes[i].member, notes.notes[i].text);
    }
    return status;
}

int verb_check(int argc, char **argv)
{
    cleanup_(freep) char *text = NULL;
    size_t text_bytes = 0;
    struct check_request request = {0};
    struct session_config config;
    struct fault fault = {0};
    char unchecked[UNCHECKED_BYTES];
    int status = options_take(&line, argc, argv, &request);
    if (status != OPTIONS_TAKEN) {
        return status;
    }
    if (text_file_read(request.path, SESSION_CONFIG_BYTES_MAX, &text, &text_bytes, &fault) < 0) {
        return complain("%s", fault.text);
    }
    const struct session_limits limits = find_limits(unchecked);
    return session_config_parse_within(text, text_bytes, false, &limits, &config, &fault) < 0
               ? refuse(request.path, request.is_json, &fault)
               : accept_config(request.path, request.is_json, &config, text, unchecked);
}
