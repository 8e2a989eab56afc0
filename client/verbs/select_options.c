/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Takes what selects a part of a recording from the command line. A wrong word is refused with what
 * would be right; how much of a recording is selected, load_recording() finds out.
 */
#include "select_options.h"

#include "cleanup.h"

#include <pwd.h>
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
                                "--%s %s: give seconds since the first sample (1.5, "
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

static int take_text(const struct command_line *line, const struct verb_option *option,
                     const char *value, const char **texts, size_t *count)
{
    if (*count == SELECTION_MAX) {
        return refuse_many(line, option);
    }
    texts[(*count)++] = value;
    return EXIT_DONE;
}

int select_take_comm(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    struct selection *selection = into;
    return take_text(line, option, value, selection->comms, &selection->comm_count);
}

int select_take_unit(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    struct selection *selection = into;
    if (selection->unit_count == SELECTION_MAX) {
        return refuse_many(line, option);
    }
    return unit_glob_make(value, selection->units[selection->unit_count++])
               ? EXIT_DONE
               : options_refuse(
                     line,
                     "--%s: '%s': is no name of a unit; of 1 to %d bytes, with '*' and '?', it may be",
                     option->name, value, UNIT_GLOB_BYTES_MAX);
}

/* What follows a folder, if a path is in it. */
static const char *skip_folder(const char *path, const char *folder)
{
    size_t bytes = strlen(folder);
    bool is_inside =
        strncmp(path, folder, bytes) == 0 && (path[bytes] == '/' || path[bytes] == '\0');
    return is_inside ? path + bytes : path;
}

int select_take_cgroup(const struct command_line *line, const struct verb_option *option,
                       const char *value, void *into)
{
    struct selection *selection = into;
    const char *path = skip_folder(value, "/sys/fs/cgroup");
    path = path == value ? path : skip_folder(path, "/unified");
    path = path != value && path[0] == '\0' ? "/" : path;
    return path[0] == '/'
               ? take_text(line, option, path, selection->cgroups, &selection->cgroup_count)
               : options_refuse(line, "--%s: '%s': does not begin with a slash", option->name,
                                value);
}

static int take_user(const struct command_line *line, const struct verb_option *option,
                     const char *word, struct selection *selection)
{
    uint64_t uid = 0;
    const struct passwd *user = NULL;
    if (selection->uid_count == SELECTION_MAX) {
        return refuse_many(line, option);
    }
    if (!options_number(word, UINT32_MAX - 1, &uid)) {
        user = getpwnam(word);
        if (user == NULL) {
            return options_refuse(line, "--%s: '%s': there is no such user here; give the number",
                                  option->name, word);
        }
        uid = user->pw_uid;
    }
    selection->uids[selection->uid_count++] = (uint32_t)uid;
    return EXIT_DONE;
}

int select_take_module(const struct command_line *line, const struct verb_option *option,
                       const char *value, void *into)
{
    struct selection *selection = into;
    return take_text(line, option, value, selection->modules, &selection->module_count);
}

int select_take_users(const struct command_line *line, const struct verb_option *option,
                      const char *value, void *into)
{
    cleanup_(freep) char *copy = strdup(value);
    char *rest = copy;
    int status =
        copy == NULL ? complain("--%s: there is not enough memory", option->name) : EXIT_DONE;
    while (status == EXIT_DONE && rest != NULL) {
        status = take_user(line, option, strsep(&rest, ","), into);
    }
    return status;
}

const char *select_sort_name(size_t sort)
{
    static const char *const names[] = {"self", "total", NULL};
    return names[sort];
}

int select_take_sort(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    unsigned sort = 0;
    int status = options_choice(line, option, value, &sort);
    *(bool *)into = sort == 1;
    return status;
}

int select_take_rows(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    uint64_t rows = 0;
    (void)option;
    if (!options_number(value, UINT32_MAX, &rows)) {
        return options_refuse(line, "-n %s: give a number of rows; 0 shows all", value);
    }
    *(size_t *)into = (size_t)rows;
    return EXIT_DONE;
}
