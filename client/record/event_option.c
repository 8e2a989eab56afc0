/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes the events of a session config from -e, as perf takes it: NAME, NAME:PERIOD or NAME@HZ,
 * several separated by commas, but for those between the slashes of a device's terms. Behind each
 * come its followers, as +NAME: no name of an event has a '+'. The parser of session configs judges
 * each, so that an error has the parser's words.
 */
#include "record.h"

#include "cleanup.h"
#include "json.h"
#include "session_config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Ends the first event of `rest` with NUL. Returns what comes behind it; NULL: nothing. */
static char *split_events(char *rest)
{
    bool in_terms = false;
    for (char *at = rest; *at != '\0'; at++) {
        in_terms ^= *at == '/';
        if (*at == ',' && !in_terms) {
            *at = '\0';
            return at + 1;
        }
    }
    return NULL;
}

/* Cuts ":PERIOD" or "@HZ" off; without either, `*ret_member` is NULL. False where no number stands
 * there. */
static bool cut_rate(char *name, const char **ret_member, uint64_t *ret_value)
{
    char *mark = strrchr(name, '@');
    bool is_frequency = mark != NULL;
    if (!is_frequency) {
        mark = strrchr(name, ':');
        mark = mark != NULL && isdigit((unsigned char)mark[1]) ? mark : NULL;
    }
    *ret_member = NULL;
    if (mark == NULL) {
        return true;
    }
    *mark = '\0';
    *ret_member = is_frequency ? "frequency_hz" : "period";
    return is_frequency ? options_rate(mark + 1, UINT64_C(1) << 53, ret_value)
                        : options_number(mark + 1, UINT64_C(1) << 53, ret_value);
}

/* The element of an event; NULL when memory is out. Returned: json_freep(). */
static cJSON *make_event(const char *name, const char *member, uint64_t value)
{
    cleanup_(json_freep) cJSON *event = cJSON_CreateObject();
    bool good = cJSON_AddStringToObject(event, "event", name) != NULL &&
                (member == NULL || cJSON_AddNumberToObject(event, member, (double)value) != NULL);
    return good ? take_ptr(event) : NULL;
}

/* Adds the names that `rest` (NULL: none) has, each behind a '+', as the followers of the event. */
static bool add_followers(cJSON *event, char *rest)
{
    char *end = NULL;
    cJSON *array = rest == NULL ? NULL : cJSON_AddArrayToObject(event, "followers");
    for (char *name = rest; name != NULL && array != NULL; name = end) {
        end = strchr(name, '+');
        if (end != NULL) {
            *end++ = '\0';
        }
        if (!cJSON_AddItemToArray(array, cJSON_CreateString(name))) {
            return false;
        }
    }
    return rest == NULL || array != NULL;
}

/* {"events":[...]} with what was asked for so far, as the parser sees it. */
static int judge(const struct command_line *line, const char *value, const cJSON *events)
{
    struct session_config config;
    struct fault fault = {0};
    cleanup_(json_freep) cJSON *tree = cJSON_CreateObject();
    cJSON *copy = cJSON_Duplicate(events, true);
    if (!cJSON_AddItemToObject(tree, "events", copy)) {
        cJSON_Delete(copy);
        return complain("events: there is not enough memory");
    }
    cleanup_(freep) char *text = cJSON_PrintUnformatted(tree);
    if (text == NULL) {
        return complain("events: there is not enough memory");
    }
    if (session_config_parse(text, strlen(text), false, &config, &fault) >= 0) {
        return EXIT_DONE;
    }
    /* "'faults' is no event" names it. */
    return fault.text[0] == '\'' ? options_refuse(line, "-e %s", fault.text)
                                 : options_refuse(line, "-e '%s' %s", value, fault.text);
}

/* By the events of waits, or by the states of threads, which are none. */
static bool is_of_waits(const char *name)
{
    static const char *const names[] = {"off-cpu", "preempted", "blocked", "ready"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* As perf names them: a group, and a name that has letters which are no modifiers. */
static bool is_tracepoint(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon != NULL && strchr(name, '/') == NULL && strchr(colon, '_') != NULL;
}

static int add_event(const struct command_line *line, char *name, cJSON **events)
{
    const char *member = NULL;
    uint64_t value = 0;
    char whole[2 * EVENT_NAME_BYTES];
    (void)snprintf(whole, sizeof whole, "%s", name);
    char *followers = strchr(name, '+');
    if (followers != NULL) {
        *followers++ = '\0';
    }
    if (is_tracepoint(name)) {
        return options_refuse(line,
                              "-e %s: tracepoints are not recorded; --wall records what threads "
                              "wait for, and profctl events lists what is",
                              whole);
    }
    if (!cut_rate(name, &member, &value)) {
        return options_refuse(
            line, "-e '%s': a whole number stands behind ':' (a period) or '@' (Hz)", whole);
    }
    if (is_of_waits(name)) {
        return options_refuse(line, "-e %s: --wall records what threads wait for", name);
    }
    if (*events == NULL) {
        *events = cJSON_CreateArray();
    }
    cJSON *event = make_event(name, member, value);
    if (!add_followers(event, followers) || !cJSON_AddItemToArray(*events, event)) {
        cJSON_Delete(event);
        return complain("events: there is not enough memory");
    }
    return judge(line, whole, *events);
}

int event_take_list(const struct command_line *line, const struct verb_option *option,
                    const char *value, void *into)
{
    (void)option;
    cJSON **events = into;
    cleanup_(freep) char *copy = strdup(value);
    int status = copy == NULL ? complain("events: there is not enough memory") : EXIT_DONE;
    char *name = copy;
    while (status == EXIT_DONE && name != NULL) {
        char *rest = split_events(name);
        status = add_event(line, name, events);
        name = rest;
    }
    return status;
}
