/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each element is shown to the parser of session configs as soon as it is read, so that what is
 * wrong with it is said in the parser's words and of the option. How many there may be is for the
 * config as a whole. User names are looked up here, where they mean what the caller means.
 */
#include "record.h"

#include "cleanup.h"
#include "json.h"
#include "session_config.h"

#include <pwd.h>
#include <string.h>

struct target_option {
    int option;
    bool is_list;       /* of numbers, separated by commas */
    const char *name;   /* as it is complained of */
    const char *member; /* of "targets" */
};

static const struct target_option target_options[] = {
    {'p', true, "-p", "pids"},     {'t', true, "-t", "tids"},
    {'u', true, "-u", "uids"},     {OPTION_COMM, false, "--comm", "comms"},
    {'G', false, "-G", "cgroups"},
};

static const struct target_option *find_option(int option)
{
    for (size_t i = 0; i < sizeof target_options / sizeof target_options[0]; i++) {
        if (target_options[i].option == option) {
            return &target_options[i];
        }
    }
    return NULL;
}

bool target_option_is(int option)
{
    return find_option(option) != NULL;
}

static int complain_of_memory(void)
{
    return complain("targets: there is not enough memory");
}

/* {"targets":{MEMBER:[ELEMENT]}}, as the parser sees it. */
static int judge(const struct command_line *line, const struct target_option *option,
                 const char *value, const cJSON *element)
{
    struct session_config config;
    struct fault fault = {0};
    cleanup_(json_freep) cJSON *tree = cJSON_CreateObject();
    cJSON *array = cJSON_AddArrayToObject(cJSON_AddObjectToObject(tree, "targets"), option->member);
    cJSON *copy = cJSON_Duplicate(element, true);
    if (!cJSON_AddItemToArray(array, copy)) {
        cJSON_Delete(copy);
        return complain_of_memory();
    }
    cleanup_(freep) char *text = cJSON_PrintUnformatted(tree);
    if (text == NULL) {
        return complain_of_memory();
    }
    if (session_config_parse(text, strlen(text), false, &config, &fault) < 0) {
        return options_refuse(line, "%s: %s: %s", option->name, value, fault.text);
    }
    return EXIT_DONE;
}

/* Adds the element (taken) unless it is refused. */
static int add(const struct command_line *line, const struct target_option *option,
               const char *value, cJSON *element, cJSON **targets)
{
    cleanup_(json_freep) cJSON *owned = element;
    if (*targets == NULL) {
        *targets = cJSON_CreateObject();
    }
    cJSON *array = cJSON_GetObjectItemCaseSensitive(*targets, option->member);
    if (array == NULL) {
        array = cJSON_AddArrayToObject(*targets, option->member);
    }
    if (owned == NULL || array == NULL) {
        return complain_of_memory();
    }
    int status = judge(line, option, value, owned);
    if (status == EXIT_DONE && !cJSON_AddItemToArray(array, take_ptr(owned))) {
        return complain_of_memory();
    }
    return status;
}

/* A number or, of users, a name. */
static int add_id(const struct command_line *line, const struct target_option *option,
                  const char *value, cJSON **targets)
{
    uint64_t id = 0;
    if (options_number(value, UINT32_MAX, &id)) {
        return add(line, option, value, cJSON_CreateNumber((double)id), targets);
    }
    if (option->option != 'u') {
        return options_refuse(line, "%s: '%s': is not a number; several are separated by commas",
                              option->name, value);
    }
    const struct passwd *user = getpwnam(value);
    if (user == NULL) {
        return options_refuse(line,
                              "%s: '%s': there is no such user; several are separated by "
                              "commas",
                              option->name, value);
    }
    return add(line, option, value, cJSON_CreateNumber(user->pw_uid), targets);
}

static int add_list(const struct command_line *line, const struct target_option *option,
                    const char *value, cJSON **targets)
{
    cleanup_(freep) char *copy = strdup(value);
    char *rest = copy;
    int status = copy == NULL ? complain_of_memory() : EXIT_DONE;
    while (status == EXIT_DONE && rest != NULL) {
        status = add_id(line, option, strsep(&rest, ","), targets);
    }
    return status;
}

int target_option_take(const struct command_line *line, int option, const char *value,
                       cJSON **targets)
{
    const struct target_option *found = find_option(option);
    if (found == NULL) {
        return EXIT_WRONG_USAGE;
    }
    return found->is_list ? add_list(line, found, value, targets)
                          : add(line, found, value, cJSON_CreateString(value), targets);
}
