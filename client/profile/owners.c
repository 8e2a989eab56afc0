/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Owners of processes. What is equal is one owner, so a sample's owner is a number. A member that a
 * line does not have, or that is no text, is not known.
 */
#include "owners.h"

#include "cleanup.h"
#include "json.h"

#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNKNOWN "[unknown]"

struct lines {
    struct owners *table;
    struct intern *texts;
    uint32_t segment;
};

void owners_done(struct owners *table)
{
    intern_done(&table->owners);
    names_done(&table->of_processes);
    process_lines_done(&table->lines);
    free(table->labels);
    *table = (struct owners){0};
}

static int take_text(const struct lines *lines, const cJSON *line, const char *name, uint32_t *ret)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, name));
    *ret = INTERN_NONE;
    return text == NULL || text[0] == '\0' ? 0 : intern_add(lines->texts, text, strlen(text), ret);
}

/* The arguments of a command line as one text, with spaces between them. */
static int take_command(const struct lines *lines, const cJSON *arguments, uint32_t *ret)
{
    cleanup_(freep) char *text = NULL;
    size_t used = 0;
    *ret = INTERN_NONE;
    if (!cJSON_IsArray(arguments)) {
        return 0;
    }
    const cJSON *argument = NULL;
    cJSON_ArrayForEach(argument, arguments)
    {
        const char *own = cJSON_GetStringValue(argument);
        size_t own_bytes = own == NULL ? 0 : strlen(own);
        char *longer = realloc(text, used + own_bytes + 2);
        if (longer == NULL) {
            return -ENOMEM;
        }
        text = longer;
        if (used > 0) {
            text[used++] = ' ';
        }
        memcpy(text + used, own == NULL ? "" : own, own_bytes);
        used += own_bytes;
    }
    return used == 0 ? 0 : intern_add(lines->texts, text, used, ret);
}

/* What a line says of the process's parent and command line. */
static int take_descent(const struct lines *lines, const cJSON *line, const struct name *said)
{
    struct process_line descent = {
        .pid = said->pid, .segment = lines->segment, .since_ns = said->since_ns};
    const cJSON *parent = cJSON_GetObjectItemCaseSensitive(line, "ppid");
    if (!data_read_u64(parent, &descent.parent_pid)) {
        descent.parent_pid = PROCESS_PARENT_UNKNOWN;
    }
    int r =
        take_command(lines, cJSON_GetObjectItemCaseSensitive(line, "cmdline"), &descent.command);
    return r < 0 ? r : process_lines_add(&lines->table->lines, &descent);
}

static int add_line(const cJSON *line, void *userdata)
{
    const struct lines *lines = userdata;
    struct name said = {.segment = lines->segment, .tid = NAMES_PROCESS};
    struct profile_owner owner = {0};
    int64_t uid = 0;
    const struct {
        const char *name;
        uint32_t *text;
    } members[] = {
        {"cgroup", &owner.cgroup},       {"unit", &owner.unit},
        {"user_unit", &owner.user_unit}, {"container", &owner.container},
        {"runtime", &owner.runtime},     {"pod", &owner.pod},
    };
    if (!data_read_u64(cJSON_GetObjectItemCaseSensitive(line, "pid"), &said.pid) ||
        !data_read_u64(cJSON_GetObjectItemCaseSensitive(line, "boot_ts_ns"), &said.since_ns)) {
        lines->table->malformed_count++;
        return 0;
    }
    int r = 0;
    for (size_t i = 0; i < sizeof members / sizeof members[0] && r == 0; i++) {
        r = take_text(lines, line, members[i].name, members[i].text);
    }
    owner.uid = json_read_integer(cJSON_GetObjectItemCaseSensitive(line, "uid"), 0,
                                  PROFILE_UID_UNKNOWN - 1, &uid)
                    ? (uint32_t)uid
                    : PROFILE_UID_UNKNOWN;
    r = r < 0 ? r : intern_add(&lines->table->owners, &owner, sizeof owner, &said.item);
    r = r < 0 ? r : names_add(&lines->table->of_processes, &said);
    return r < 0 ? r : take_descent(lines, line, &said);
}

int owners_add_lines(struct owners *table, struct intern *texts, uint32_t segment,
                     const struct fxt_data *data)
{
    struct lines lines = {table, texts, segment};
    return data_each_line(data, add_line, &lines);
}

int owners_take_session(struct owners *table, const struct fxt_data *data)
{
    char here[HOST_NAME_MAX + 1] = "";
    cleanup_(freep) char *text = NULL;
    int r = data_take_object(data, &text);
    cleanup_(json_freep) cJSON *session = text == NULL ? NULL : cJSON_Parse(text);
    const char *host = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(session, "host"));
    bool is_ours =
        host != NULL && gethostname(here, sizeof here - 1) == 0 && strcmp(host, here) == 0;
    table->has_session = true;
    table->is_of_others = table->is_of_others || !is_ours;
    return r;
}

static const char *text_or(const struct intern *texts, uint32_t text, const char *otherwise)
{
    return text == INTERN_NONE ? otherwise : intern_text(texts, text);
}

/* Of a user's unit the part of the manager's name that says whose it is, "user@1000"; 0 bytes: it
 * is no user's. */
static int manager_bytes(const char *unit)
{
    return strncmp(unit, "user@", strlen("user@")) == 0 ? (int)strcspn(unit, ".") : 0;
}

/* Whether the container is one that a user has made below his own manager, with whatever id. */
static bool is_users_container(const struct intern *texts, const struct profile_owner *owner)
{
    const char *manager = strstr(text_or(texts, owner->cgroup, ""), "/user@");
    return manager != NULL && strstr(manager, intern_text(texts, owner->container)) != NULL;
}

/* Prints into `*ret`, which the caller frees: "docker:0123...", and whose it is if it is a user's.
 */
static int print_container(const struct intern *texts, const struct profile_owner *owner,
                           char **ret)
{
    const char *runtime = text_or(texts, owner->runtime, "container");
    const char *unit = text_or(texts, owner->unit, "");
    int user_bytes = is_users_container(texts, owner) ? manager_bytes(unit) : 0;
    return asprintf(ret, "%s:%s%s%.*s%s", runtime, intern_text(texts, owner->container),
                    user_bytes > 0 ? " (" : "", user_bytes, unit, user_bytes > 0 ? ")" : "");
}

/* A user's unit is told apart from one of the system, and one in a container from one outside:
 * "sync.service (user@1000)", "nginx.service in docker:0123..." */
static int print_unit(const struct intern *texts, const struct profile_owner *owner, char **ret)
{
    cleanup_(freep) char *container = NULL;
    uint32_t unit = owner->user_unit == INTERN_NONE ? owner->unit : owner->user_unit;
    const char *manager = text_or(texts, owner->unit, "user");
    if (owner->container != INTERN_NONE && print_container(texts, owner, &container) < 0) {
        container = NULL;
        return -1;
    }
    if (unit == INTERN_NONE) {
        return asprintf(ret, "%s",
                        container == NULL ? text_or(texts, owner->cgroup, UNKNOWN) : container);
    }
    if (container != NULL) {
        return asprintf(ret, "%s in %s", intern_text(texts, unit), container);
    }
    return owner->user_unit == INTERN_NONE ? asprintf(ret, "%s", intern_text(texts, unit))
                                           : asprintf(ret, "%s (%.*s)", intern_text(texts, unit),
                                                      (int)strcspn(manager, "."), manager);
}

static int print_user(const struct owners *table, const struct profile_owner *owner, char **ret)
{
    bool is_known = owner->uid != PROFILE_UID_UNKNOWN;
    const struct passwd *user =
        is_known && table->has_session && !table->is_of_others ? getpwuid(owner->uid) : NULL;
    if (!is_known) {
        return asprintf(ret, "%s", UNKNOWN);
    }
    return user == NULL ? asprintf(ret, "uid %" PRIu32, owner->uid)
                        : asprintf(ret, "%s", user->pw_name);
}

static int print_label(const struct owners *table, const struct intern *texts,
                       const struct profile_owner *owner, enum profile_label label, char **ret)
{
    switch (label) {
    case PROFILE_LABEL_UNIT:
        return print_unit(texts, owner, ret);
    case PROFILE_LABEL_CONTAINER:
        return owner->container == INTERN_NONE ? asprintf(ret, "[no known container]")
                                               : print_container(texts, owner, ret);
    case PROFILE_LABEL_USER:
        return print_user(table, owner, ret);
    case PROFILE_LABELS:
        break;
    }
    return asprintf(ret, "%s", UNKNOWN);
}

static int name_owner(const struct owners *table, struct intern *texts,
                      const struct profile_owner *owner, struct owner_labels *ret)
{
    int r = 0;
    for (size_t i = 0; i < PROFILE_LABELS && r == 0; i++) {
        cleanup_(freep) char *text = NULL;
        if (print_label(table, texts, owner, (enum profile_label)i, &text) < 0) {
            text = NULL;
            return -ENOMEM;
        }
        r = intern_add(texts, text, strlen(text), &ret->texts[i]);
    }
    return r;
}

int owners_seal(struct owners *table, struct intern *texts)
{
    size_t count = table->owners.item_count;
    uint32_t unknown = 0;
    names_seal(&table->of_processes);
    process_lines_seal(&table->lines);
    free(table->labels);
    table->labels = calloc(count + 1, sizeof *table->labels);
    int r = table->labels == NULL ? -ENOMEM : intern_add(texts, UNKNOWN, strlen(UNKNOWN), &unknown);
    for (size_t i = 0; i < count && r == 0; i++) {
        r = name_owner(table, texts, owners_get(table, (uint32_t)i), &table->labels[i]);
    }
    for (size_t i = 0; i < PROFILE_LABELS && r == 0; i++) {
        table->labels[count].texts[i] = unknown;
    }
    return r;
}

const struct profile_owner *owners_get(const struct owners *table, uint32_t item)
{
    static const struct profile_owner unknown = {INTERN_NONE,        INTERN_NONE, INTERN_NONE,
                                                 INTERN_NONE,        INTERN_NONE, INTERN_NONE,
                                                 PROFILE_UID_UNKNOWN};
    size_t size_bytes = 0;
    return item == INTERN_NONE ? &unknown : intern_bytes(&table->owners, item, &size_bytes);
}

uint32_t owners_label(const struct owners *table, uint32_t item, enum profile_label label)
{
    return table->labels[item == INTERN_NONE ? table->owners.item_count : item].texts[label];
}

uint32_t owners_find(const struct owners *table, uint32_t segment, uint64_t pid, uint64_t time_ns,
                     struct names_span *ret_span)
{
    return names_find_span(&table->of_processes, segment, pid, NAMES_PROCESS, time_ns, ret_span);
}
