/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parses the targets of a session config. Each kind is an array of its own with a bound on its
 * count and on each element; a fault names the element ("targets.comms[3]"). A target that cannot
 * match anything is refused, since a user would notice only after a recording without samples.
 */
#include "config_members.h"

#include "json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MEMBER_BYTES sizeof((struct fault){0}.member)

enum kind {
    PIDS,
    TIDS,
    UIDS,
    COMMS,
    CGROUPS,
    UNITS,
    KIND_COUNT,
};

static const char *const kind_names[KIND_COUNT] = {
    [PIDS] = "pids",   [TIDS] = "tids",       [UIDS] = "uids",
    [COMMS] = "comms", [CGROUPS] = "cgroups", [UNITS] = "units",
};

static const struct {
    int count_max;
    const char *elements;
} kinds[KIND_COUNT] = {
    [PIDS] = {SESSION_PIDS_MAX, "integers"},      [TIDS] = {SESSION_TIDS_MAX, "integers"},
    [UIDS] = {SESSION_UIDS_MAX, "integers"},      [COMMS] = {SESSION_COMMS_MAX, "strings"},
    [CGROUPS] = {SESSION_CGROUPS_MAX, "strings"}, [UNITS] = {SESSION_UNITS_MAX, "strings"},
};

/* "targets.comms[3]" */
struct element_name {
    char text[MEMBER_BYTES];
};

static struct element_name name_element(enum kind kind, size_t index)
{
    struct element_name name;
    (void)snprintf(name.text, sizeof name.text, "targets.%s[%zu]", kind_names[kind], index);
    return name;
}

static int read_id(const cJSON *item, enum kind kind, size_t index, int64_t *ret,
                   struct fault *reterr)
{
    struct element_name name = name_element(kind, index);
    return kind == UIDS ? config_read_integer(item, name.text, 0, SESSION_UID_MAX, ret, reterr)
                        : config_read_integer(item, name.text, 1, SESSION_PID_LIMIT, ret, reterr);
}

/* What keeps a text from being copied, or NULL. The same for both kinds of text. */
static const char *find_text_fault(const cJSON *item, size_t bytes_max)
{
    if (!cJSON_IsString(item)) {
        return "is not a string";
    }
    if (item->valuestring[0] == '\0') {
        return "is empty";
    }
    for (const char *at = item->valuestring; *at != '\0'; at++) {
        if ((*at > '\0' && *at < ' ') || *at == '\x7f') {
            return "has a control character";
        }
    }
    return strlen(item->valuestring) > bytes_max ? "is too long" : NULL;
}

static int read_comm(const cJSON *item, size_t index, char *ret, struct fault *reterr)
{
    struct element_name name = name_element(COMMS, index);
    const char *fault = find_text_fault(item, SESSION_COMM_BYTES_MAX);
    if (fault != NULL) {
        return fault_set_member(reterr, name.text, "%s; a glob of 1 to %d bytes is allowed", fault,
                                SESSION_COMM_BYTES_MAX);
    }
    if (strcspn(item->valuestring, "*?[\\") > SESSION_NAME_BYTES) {
        return fault_set_member(reterr, name.text,
                                "matches no name, since the kernel keeps %d bytes of each; at most "
                                "%d bytes before the first '*', '?' or '[' are allowed",
                                SESSION_NAME_BYTES, SESSION_NAME_BYTES);
    }
    memcpy(ret, item->valuestring, strlen(item->valuestring) + 1);
    return 0;
}

static int read_cgroup(const cJSON *item, size_t index, char *ret, struct fault *reterr)
{
    struct element_name name = name_element(CGROUPS, index);
    const char *fault = find_text_fault(item, SESSION_CGROUP_BYTES_MAX);
    if (fault == NULL && item->valuestring[0] != '/') {
        fault = "does not begin with '/'";
    }
    if (fault != NULL) {
        return fault_set_member(reterr, name.text,
                                "%s; a path of 1 to %d bytes that begins with '/' is allowed",
                                fault, SESSION_CGROUP_BYTES_MAX);
    }
    memcpy(ret, item->valuestring, strlen(item->valuestring) + 1);
    return 0;
}

static int read_unit(const cJSON *item, size_t index, char *ret, struct fault *reterr)
{
    struct element_name name = name_element(UNITS, index);
    if (!cJSON_IsString(item) || !unit_glob_make(item->valuestring, ret)) {
        return fault_set_member(reterr, name.text,
                                "%s; the name of a systemd unit of 1 to %d bytes is allowed, with "
                                "'*' and '?' for any text and any character",
                                cJSON_IsString(item) ? "is no such name" : "is not a string",
                                UNIT_GLOB_BYTES_MAX);
    }
    return 0;
}

/* Reads one element into its place, and counts it. */
static int read_element(const cJSON *item, enum kind kind, struct session_targets *targets,
                        struct fault *reterr)
{
    int64_t id = 0;
    int r = -EINVAL;
    switch (kind) {
    case PIDS:
        r = read_id(item, kind, targets->pid_count, &id, reterr);
        targets->pids[targets->pid_count++] = (int32_t)id;
        break;
    case TIDS:
        r = read_id(item, kind, targets->tid_count, &id, reterr);
        targets->tids[targets->tid_count++] = (int32_t)id;
        break;
    case UIDS:
        r = read_id(item, kind, targets->uid_count, &id, reterr);
        targets->uids[targets->uid_count++] = (uint32_t)id;
        break;
    case COMMS:
        r = read_comm(item, targets->comm_count, targets->comms[targets->comm_count], reterr);
        targets->comm_count++;
        break;
    case CGROUPS:
        r = read_cgroup(item, targets->cgroup_count, targets->cgroups[targets->cgroup_count],
                        reterr);
        targets->cgroup_count++;
        break;
    case UNITS:
        r = read_unit(item, targets->unit_count, targets->units[targets->unit_count], reterr);
        targets->unit_count++;
        break;
    case KIND_COUNT:
        break;
    }
    return r;
}

static int read_kind(const cJSON *array, enum kind kind, struct session_targets *targets,
                     struct fault *reterr)
{
    const cJSON *item = NULL;
    int count = cJSON_GetArraySize(array);
    if (!cJSON_IsArray(array) || count < 1 || count > kinds[kind].count_max) {
        char member[MEMBER_BYTES];
        (void)snprintf(member, sizeof member, "targets.%s", kind_names[kind]);
        return fault_set_member(reterr, member, "%s; an array of 1 to %d %s is allowed",
                                !cJSON_IsArray(array) ? "is not an array"
                                : count < 1           ? "is empty"
                                                      : "is too long",
                                kinds[kind].count_max, kinds[kind].elements);
    }
    cJSON_ArrayForEach(item, array)
    {
        int r = read_element(item, kind, targets, reterr);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int session_targets_read(const cJSON *targets, struct session_targets *ret, struct fault *reterr)
{
    const cJSON *arrays[KIND_COUNT];
    const char *offender = NULL;
    int r = 0;
    if (targets == NULL) {
        return 0;
    }
    if (!cJSON_IsObject(targets)) {
        return fault_set_member(reterr, "targets",
                                "is not an object; one with pids, tids, uids, comms, cgroups and "
                                "units is allowed");
    }
    if ((r = json_take_members(targets, kind_names, KIND_COUNT, arrays, &offender)) < 0) {
        char member[MEMBER_BYTES];
        (void)snprintf(member, sizeof member, "targets.%s", config_show_name(offender).text);
        return r == -EEXIST
                   ? fault_set_member(reterr, member, "is there twice; once is allowed")
                   : fault_set_member(reterr, member,
                                      "is not a member of targets; pids, tids, uids, comms, "
                                      "cgroups and units are allowed");
    }
    for (enum kind kind = 0; kind < KIND_COUNT && r == 0; kind++) {
        if (arrays[kind] != NULL) {
            r = read_kind(arrays[kind], kind, ret, reterr);
        }
    }
    return r;
}

static size_t count_elements(const struct session_targets *targets, enum kind kind)
{
    switch (kind) {
    case PIDS:
        return targets->pid_count;
    case TIDS:
        return targets->tid_count;
    case UIDS:
        return targets->uid_count;
    case COMMS:
        return targets->comm_count;
    case CGROUPS:
        return targets->cgroup_count;
    case UNITS:
        return targets->unit_count;
    case KIND_COUNT:
        break;
    }
    return 0;
}

static cJSON *print_element(const struct session_targets *targets, enum kind kind, size_t index)
{
    switch (kind) {
    case PIDS:
        return cJSON_CreateNumber(targets->pids[index]);
    case TIDS:
        return cJSON_CreateNumber(targets->tids[index]);
    case UIDS:
        return cJSON_CreateNumber(targets->uids[index]);
    case COMMS:
        return cJSON_CreateString(targets->comms[index]);
    case CGROUPS:
        return cJSON_CreateString(targets->cgroups[index]);
    case UNITS:
        return cJSON_CreateString(targets->units[index]);
    case KIND_COUNT:
        break;
    }
    return NULL;
}

static bool print_kind(cJSON *object, const struct session_targets *targets, enum kind kind)
{
    size_t count = count_elements(targets, kind);
    cJSON *array = count == 0 ? NULL : cJSON_AddArrayToObject(object, kind_names[kind]);
    for (size_t i = 0; i < count; i++) {
        cJSON *element = print_element(targets, kind, i);
        if (!cJSON_AddItemToArray(array, element)) {
            cJSON_Delete(element);
            return false;
        }
    }
    return true;
}

bool session_targets_print(cJSON *config, const struct session_targets *targets)
{
    if (session_targets_empty(targets)) {
        return true;
    }
    cJSON *object = cJSON_AddObjectToObject(config, "targets");
    bool good = object != NULL;
    for (enum kind kind = 0; kind < KIND_COUNT && good; kind++) {
        good = print_kind(object, targets, kind);
    }
    return good;
}

bool session_targets_empty(const struct session_targets *targets)
{
    for (enum kind kind = 0; kind < KIND_COUNT; kind++) {
        if (count_elements(targets, kind) > 0) {
            return false;
        }
    }
    return true;
}
