/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads objects of sessions, which may come from any user's file: what is of another type than it
 * should be counts as not there. Of several sessions, what all have in common is kept as of one,
 * and hosts and parts of machines are put together.
 */
#include "session_facts.h"

#include "cleanup.h"
#include "json.h"
#include "lineage.h"
#include "text_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 16
#define NAMED_MAX 3 /* elements of a target */
#define UNKNOWN   "[unknown]"
#define SOME_MAX  3
/* Of a command line: more would hide what stands behind it. */
#define COMMAND_WIDTH_MAX ((size_t)60)

void session_facts_done(struct session_facts *facts)
{
    free(facts->host);
    free(facts->kernel);
    free(facts->targets);
    free(facts->command);
    free(facts->cpus);
    intern_done(&facts->hosts);
    intern_done(&facts->parts);
    *facts = (struct session_facts){0};
}

/* A copy of a text, or NULL. Returned: free(). */
static char *copy_text(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return text == NULL ? NULL : strdup(text);
}

static const struct {
    const char *member;
    const char *of_one; /* of a number, or of a text with its quotes */
    const char *of_many;
} targets[] = {
    {"pids", "process", "processes"}, {"tids", "thread", "threads"},    {"uids", "user", "users"},
    {"comms", "command", "commands"}, {"cgroups", "cgroup", "cgroups"}, {"units", "unit", "units"},
};

static void print_element(FILE *file, const cJSON *element)
{
    int64_t number = 0;
    if (cJSON_IsString(element)) {
        text_print(file, element->valuestring);
    } else if (json_read_integer(element, 0, JSON_INTEGER_MAX, &number)) {
        (void)fprintf(file, "%" PRId64, number);
    } else {
        (void)fputs("?", file);
    }
}

static void print_target(FILE *file, const cJSON *elements, size_t which)
{
    int count = cJSON_GetArraySize(elements);
    int named = 0;
    const cJSON *element = NULL;
    (void)fprintf(file, "%s ", count == 1 ? targets[which].of_one : targets[which].of_many);
    cJSON_ArrayForEach(element, elements)
    {
        if (named == NAMED_MAX) {
            (void)fprintf(file, " and %d more", count - named);
            break;
        }
        (void)fputs(named == 0 ? "" : ", ", file);
        print_element(file, element);
        named++;
    }
    if (strcmp(targets[which].member, "pids") == 0) {
        (void)fputs(count == 1 ? " with its children" : " with their children", file);
    }
}

/* Returned: free(). NULL when there is no memory. */
static char *describe_targets(const cJSON *config, bool *ret_is_whole)
{
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(config, "targets");
    char *text = NULL;
    size_t text_bytes = 0;
    bool is_first = true;
    FILE *file = open_memstream(&text, &text_bytes);
    if (file == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const cJSON *elements = cJSON_GetObjectItemCaseSensitive(object, targets[i].member);
        if (cJSON_IsArray(elements) && cJSON_GetArraySize(elements) > 0) {
            (void)fputs(is_first ? "" : " and ", file);
            print_target(file, elements, i);
            is_first = false;
        }
    }
    if (is_first) {
        (void)fputs("the whole machine", file);
    }
    (void)fclose(file);
    *ret_is_whole = is_first;
    return text;
}

/* The wall clock's time of a sample that is at `time_ns`. */
static int64_t find_realtime_ns(const struct profile *profile, uint64_t time_ns)
{
    int64_t offset_ns = 0;
    int64_t realtime_ns = 0;
    bool is_time = profile->sample_count > 0 && profile_wall_offset_ns(profile, &offset_ns) &&
                   !__builtin_add_overflow(time_ns, offset_ns, &realtime_ns) && realtime_ns > 0;
    return is_time ? realtime_ns : 0;
}

void session_facts_take_one(const char *session_json, struct session_facts *ret)
{
    cleanup_(json_freep) cJSON *session = NULL;
    *ret = (struct session_facts){0};
    if (session_json == NULL ||
        json_parse(session_json, strlen(session_json), DEPTH_MAX, &session, NULL) < 0) {
        return;
    }
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(session, "config");
    ret->session_count = 1;
    ret->host = copy_text(session, "host");
    ret->kernel = copy_text(session, "kernel");
    ret->cpus = copy_text(config, "cpus");
    ret->targets = describe_targets(config, &ret->is_whole);
    ret->has_kernel_stacks =
        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(config, "kernel_stacks"));
}

/* Adds a text to those that differ; without memory it is left out. */
static void add_text(struct intern *texts, const char *text)
{
    uint32_t item = 0;
    (void)intern_add(texts, text, strlen(text), &item);
}

static void add_part(struct intern *parts, const struct session_facts *one)
{
    cleanup_(freep) char *part = NULL;
    const char *target = one->targets == NULL ? UNKNOWN : one->targets;
    if (one->cpus == NULL) {
        add_text(parts, target);
    } else if (asprintf(&part, "%s on CPUs %s", target, one->cpus) >= 0) {
        add_text(parts, part);
    } else {
        part = NULL;
    }
}

/* Leaves `*common` only if the other has it too. */
static void keep_common(char **common, const char *other)
{
    if (*common != NULL && (other == NULL || strcmp(*common, other) != 0)) {
        free(*common);
        *common = NULL;
    }
}

static void take_all(const struct profile *profile, struct session_facts *ret)
{
    session_facts_take_one(profile->session_jsons[0], ret);
    for (size_t i = 0; i < profile->session_count; i++) {
        struct session_facts one;
        session_facts_take_one(profile->session_jsons[i], &one);
        add_text(&ret->hosts, one.host == NULL ? UNKNOWN : one.host);
        add_part(&ret->parts, &one);
        keep_common(&ret->host, one.host);
        keep_common(&ret->kernel, one.kernel);
        keep_common(&ret->targets, one.targets);
        keep_common(&ret->cpus, one.cpus);
        ret->is_whole = ret->is_whole && one.is_whole;
        ret->has_kernel_stacks = ret->has_kernel_stacks && one.has_kernel_stacks;
        session_facts_done(&one);
    }
    ret->session_count = profile->session_count;
}

/* The only process that a session has as its target; 0: there are others, or none. */
static uint64_t find_process(const char *session_json)
{
    cleanup_(json_freep) cJSON *session = NULL;
    int64_t pid = 0;
    if (session_json == NULL ||
        json_parse(session_json, strlen(session_json), DEPTH_MAX, &session, NULL) < 0) {
        return 0;
    }
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(session, "config"), "targets");
    const cJSON *pids = cJSON_GetObjectItemCaseSensitive(object, "pids");
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        const cJSON *elements = cJSON_GetObjectItemCaseSensitive(object, targets[i].member);
        if (cJSON_GetArraySize(elements) != (elements == pids && pids != NULL)) {
            return 0;
        }
    }
    return json_read_integer(cJSON_GetArrayItem(pids, 0), 1, INT32_MAX, &pid) ? (uint64_t)pid : 0;
}

/* Returned: free(). NULL: it is not known. */
static char *find_command(const struct profile *profile)
{
    uint64_t pid = find_process(profile->session_json);
    uint32_t command = pid == 0 ? INTERN_NONE : lineage_command(profile, pid);
    return command == INTERN_NONE ? NULL : strdup(profile_text(profile, command));
}

void session_facts_take(const struct profile *profile, struct session_facts *ret)
{
    if (profile->session_count > 1) {
        take_all(profile, ret);
    } else {
        session_facts_take_one(profile->session_json, ret);
        ret->command = find_command(profile);
    }
    if (profile->session_json != NULL) {
        ret->realtime_ns = find_realtime_ns(profile, profile_span(profile).begin_ns);
        ret->last_realtime_ns = find_realtime_ns(profile, profile->last_ns);
    }
}

/* The first of some texts, and how many more there are. */
static void write_some(FILE *file, const struct intern *texts, const char *before,
                       const char *between)
{
    size_t count = texts->item_count;
    size_t shown = count > SOME_MAX ? SOME_MAX : count;
    for (size_t i = 0; i < shown; i++) {
        (void)fputs(i == 0 ? before : between, file);
        text_print(file, intern_text(texts, (uint32_t)i));
    }
    if (count > shown) {
        (void)fprintf(file, " and %zu more", count - shown);
    }
}

void session_facts_write_host(FILE *file, const struct session_facts *facts)
{
    if (facts->hosts.item_count > 1) {
        (void)fprintf(file, "%zu hosts", facts->hosts.item_count);
        write_some(file, &facts->hosts, ": ", ", ");
        return;
    }
    text_print(file, facts->host == NULL ? "A machine" : facts->host);
    if (facts->kernel != NULL) {
        (void)fputs(" (Linux ", file);
        text_print(file, facts->kernel);
        (void)fputc(')', file);
    }
}

void session_facts_write_targets(FILE *file, const struct session_facts *facts)
{
    if (facts->session_count > 1) {
        (void)fprintf(file, "%zu sessions", facts->session_count);
        write_some(file, &facts->parts, facts->parts.item_count > 1 ? ", of " : " of ", ", of ");
        return;
    }
    if (facts->command != NULL) {
        text_print_fitted(file, facts->command, COMMAND_WIDTH_MAX, false);
        (void)fprintf(file, " (%s)", facts->targets);
    } else {
        (void)fputs(facts->targets == NULL ? "a recording" : facts->targets, file);
    }
    if (facts->cpus != NULL) {
        (void)fputs(" on CPUs ", file);
        text_print(file, facts->cpus);
    }
}

bool session_facts_are_of_part(const struct profile *profile)
{
    struct session_facts facts;
    session_facts_take(profile, &facts);
    const bool is_whole = facts.is_whole;
    session_facts_done(&facts);
    return !is_whole || profile->has_chosen_threads || profile->unselected_count > 0;
}
