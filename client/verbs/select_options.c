/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Takes what selects a part of a recording from the command line. A wrong word is refused with what
 * would be right; how much of a recording is selected, load_recording() finds out.
 */
#include "select_options.h"

#include "cleanup.h"

#include <stdlib.h>
#include <string.h>

static int refuse_many(const struct command_line *line, const struct verb_option *option)
{
    return options_refuse(line, "--%s: more than %d are too many", option->name, SELECTION_MAX);
}

int select_take_time(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    return selection_parse_time(value, into)
               ? EXIT_DONE
               : options_refuse(line,
                                "--%s: %s: is no time; give seconds since the first sample (1.5, "
                                "250ms, 2m), or a time of the day (14:05:09, 2026-01-31 14:05)",
                                option->name, value);
}

static int take_numbers(const struct command_line *line, const struct verb_option *option,
                        const char *value, uint64_t *numbers, size_t *count)
{
    cleanup_(freep) char *copy = strdup(value);
    char *rest = copy;
    if (copy == NULL) {
        return complain("--%s: there is not enough memory", option->name);
    }
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL; (*count)++) {
        if (*count == SELECTION_MAX) {
            return refuse_many(line, option);
        }
        if (!options_number(word, UINT64_MAX, &numbers[*count])) {
            return options_refuse(line,
                                  "--%s: '%s': is not a number; several are separated by commas",
                                  option->name, word);
        }
    }
    return EXIT_DONE;
}

int select_take_pids(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    struct selection *selection = into;
    return take_numbers(line, option, value, selection->pids, &selection->pid_count);
}

int select_take_tids(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    struct selection *selection = into;
    return take_numbers(line, option, value, selection->tids, &selection->tid_count);
}

int select_take_comm(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    struct selection *selection = into;
    if (selection->comm_count == SELECTION_MAX) {
        return refuse_many(line, option);
    }
    selection->comms[selection->comm_count++] = value;
    return EXIT_DONE;
}

int select_take_module(const struct command_line *line, const struct verb_option *option,
                       const char *value, void *into)
{
    struct selection *selection = into;
    if (selection->module_count == SELECTION_MAX) {
        return refuse_many(line, option);
    }
    selection->modules[selection->module_count++] = value;
    return EXIT_DONE;
}
