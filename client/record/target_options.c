/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes targets of a session config from options. The parser of session configs checks each element
 * at once, so that an error has the parser's words and names the option. The config as a whole
 * bounds their number. User names are looked up here, since the daemon may have other users.
 */
#include "record.h"

#include "cleanup.h"
#include "json.h"
#include "session_config.h"
#include "unit_names.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

void record_request_done(struct record_request *request)
{
    json_freep(&request->targets);
    json_freep(&request->events);
}

/* "-p", or "--comm" without a letter. `into` has room for NAME_BYTES; returns it. */
#define NAME_BYTES ((size_t)32)
static const char *option_name(const struct verb_option *option, char *into)
{
    char letter[] = {(char)option->letter, '\0'};
    (void)snprintf(into, NAME_BYTES, "-%s%s", letter[0] == '\0' ? "-" : letter,
                   letter[0] == '\0' ? option->name : "");
    return into;
}

/* The member of "targets", "pids" of --pid. `into` has room for NAME_BYTES; returns it. */
static const char *member_name(const struct verb_option *option, char *into)
{
    (void)snprintf(into, NAME_BYTES, "%ss", option->name);
    return into;
}

static int complain_of_memory(void)
{
    return complain("targets: there is not enough memory");
}

/* {"targets":{MEMBER:[ELEMENT]}}, as the parser sees it. */
static int judge(const struct command_line *line, const struct verb_option *option,
                 const char *value, const cJSON *element)
{
    struct session_config config;
    struct fault fault = {0};
    char name[NAME_BYTES];
    cleanup_(json_freep) cJSON *tree = cJSON_CreateObject();
    cJSON *array =
        cJSON_AddArrayToObject(cJSON_AddObjectToObject(tree, "targets"), member_name(option, name));
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
        return options_refuse(line, "%s '%s' %s", option_name(option, name), value, fault.text);
    }
    return EXIT_DONE;
}

/* Adds the element (taken) unless it is refused. */
static int add(const struct command_line *line, const struct verb_option *option, const char *value,
               cJSON *element, cJSON **targets)
{
    cleanup_(json_freep) cJSON *owned = element;
    char name[NAME_BYTES];
    if (*targets == NULL) {
        *targets = cJSON_CreateObject();
    }
    cJSON *array = cJSON_GetObjectItemCaseSensitive(*targets, member_name(option, name));
    if (array == NULL) {
        array = cJSON_AddArrayToObject(*targets, member_name(option, name));
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
static int add_id(const struct command_line *line, const struct verb_option *option,
                  const char *value, cJSON **targets)
{
    uint64_t id = 0;
    char name[NAME_BYTES];
    if (options_number(value, UINT32_MAX, &id)) {
        return add(line, option, value, cJSON_CreateNumber((double)id), targets);
    }
    if (option->letter != 'u') {
        return options_refuse(line, "%s '%s' is not a number; separate several by commas",
                              option_name(option, name), value);
    }
    const struct passwd *user = getpwnam(value);
    if (user == NULL) {
        return options_refuse(line, "%s '%s': there is no such user; separate several by commas",
                              option_name(option, name), value);
    }
    return add(line, option, value, cJSON_CreateNumber(user->pw_uid), targets);
}

int target_take_list(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    cleanup_(freep) char *copy = strdup(value);
    char *rest = copy;
    int status = copy == NULL ? complain_of_memory() : EXIT_DONE;
    while (status == EXIT_DONE && rest != NULL) {
        status = add_id(line, option, strsep(&rest, ","), into);
    }
    return status;
}

int target_take_name(const struct command_line *line, const struct verb_option *option,
                     const char *value, void *into)
{
    char glob[UNIT_GLOB_BYTES_MAX + 1];
    char unit[UNIT_GLOB_BYTES_MAX + 1];
    if (option->letter == 'U' && unit_glob_make(value, glob) &&
        unit_names_resolve(UNIT_NAMES_FOLDERS, glob, unit)) {
        value = unit;
    }
    return add(line, option, value, cJSON_CreateString(value), into);
}
