/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replaces members of a JSON object. The rate has two spellings, of which a config may have one, so
 * an option for it removes both.
 */
#include "record_config.h"

#include "attach.h"
#include "cleanup.h"
#include "doctor.h"
#include "json.h"
#include "options.h"
#include "session_config.h"
#include "target_check.h"
#include "text_file.h"

#include <string.h>

#define DEPTH_MAX     8
#define KERNEL_STACKS "kernel_stacks"
#define MAX_DURATION  "max_duration_s"

static int parse_base(const char *base, cJSON **ret, struct fault *reterr)
{
    cleanup_(json_freep) cJSON *tree = NULL;
    const char *text = base == NULL ? "{}" : base;
    int r = json_parse(text, strlen(text), DEPTH_MAX, &tree, reterr);
    if (r == 0 && !cJSON_IsObject(tree)) {
        r = fault_set(reterr, EINVAL, "is not a JSON object");
    }
    if (r == 0) {
        *ret = take_ptr(tree);
    }
    return r;
}

/* {"pids":[child]} */
static bool add_child_target(cJSON *tree, pid_t child)
{
    cJSON *targets = cJSON_AddObjectToObject(tree, "targets");
    cJSON *pids = cJSON_CreateIntArray(&child, 1);
    if (!cJSON_AddItemToObject(targets, "pids", pids)) {
        cJSON_Delete(pids);
        return false;
    }
    return true;
}

static bool add_copy(cJSON *tree, const char *member, const cJSON *value)
{
    cJSON *copy = cJSON_Duplicate(value, true);
    if (!cJSON_AddItemToObject(tree, member, copy)) {
        cJSON_Delete(copy);
        return false;
    }
    return true;
}

/* --wall keeps what a config has of waits; --min-wait replaces its `min_wait_us`. */
static bool apply_waits(cJSON *tree, const struct record_request *request)
{
    cJSON *waits = cJSON_GetObjectItemCaseSensitive(tree, "off_cpu");
    if (!request->has_waits && request->min_wait_us == 0) {
        return true;
    }
    if (!cJSON_IsObject(waits)) {
        cJSON_DeleteItemFromObjectCaseSensitive(tree, "off_cpu");
        waits = cJSON_AddObjectToObject(tree, "off_cpu");
    }
    if (waits != NULL && request->min_wait_us > 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(waits, "min_wait_us");
        return cJSON_AddNumberToObject(waits, "min_wait_us", (double)request->min_wait_us) != NULL;
    }
    return waits != NULL;
}

static bool apply_options(cJSON *tree, const struct record_request *request, pid_t child)
{
    if (request->frequency_hz > 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(tree, "frequency_hz");
        cJSON_DeleteItemFromObjectCaseSensitive(tree, "sample_period_ns");
        if (cJSON_AddNumberToObject(tree, "frequency_hz", (double)request->frequency_hz) == NULL) {
            return false;
        }
    }
    if (request->max_duration_s > 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(tree, MAX_DURATION);
        if (cJSON_AddNumberToObject(tree, MAX_DURATION, (double)request->max_duration_s) == NULL) {
            return false;
        }
    }
    if (request->kernel_stacks || request->no_kernel_stacks) {
        cJSON_DeleteItemFromObjectCaseSensitive(tree, KERNEL_STACKS);
        if (cJSON_AddBoolToObject(tree, KERNEL_STACKS, request->kernel_stacks) == NULL) {
            return false;
        }
    }
    if (!apply_waits(tree, request)) {
        return false;
    }
    if (request->events != NULL) {
        cJSON_DeleteItemFromObjectCaseSensitive(tree, "events");
        if (!add_copy(tree, "events", request->events)) {
            return false;
        }
    }
    if (request->whole_machine || child > 0 || request->targets != NULL) {
        cJSON_DeleteItemFromObjectCaseSensitive(tree, "targets");
    }
    if (request->targets != NULL) {
        return add_copy(tree, "targets", request->targets);
    }
    return request->whole_machine || child <= 0 || add_child_target(tree, child);
}

int record_config_build(const char *base, const struct record_request *request, pid_t child,
                        char **ret, struct fault *reterr)
{
    cleanup_(json_freep) cJSON *tree = NULL;
    int r = parse_base(base, &tree, reterr);
    if (r < 0) {
        return r;
    }
    if (child > 0 && !request->whole_machine &&
        cJSON_GetObjectItemCaseSensitive(tree, "targets") != NULL) {
        return fault_set(reterr, EINVAL,
                         "targets: cannot be combined with a command, which alone is recorded; "
                         "leave one of the two out, or take -a for the whole machine");
    }
    char *text = apply_options(tree, request, child) ? cJSON_PrintUnformatted(tree) : NULL;
    if (text == NULL) {
        return fault_set(reterr, ENOMEM, "there is not enough memory");
    }
    *ret = text;
    return 0;
}

/* The option that was given for the member of the config that a text begins with, and how long that
 * is; NULL: none was. */
static const char *find_option(const struct record_request *request, const char *text,
                               size_t *ret_bytes)
{
    const struct {
        const char *member;
        const char *option;
        bool is_given;
    } options[] = {
        {"frequency_hz", "-F", request->frequency_hz > 0},
        {MAX_DURATION, "-d", request->max_duration_s > 0},
        {KERNEL_STACKS, "--kernel", request->kernel_stacks},
        {"events", "-e", request->events != NULL},
        {"off_cpu", request->has_waits ? "--wall" : "--min-wait",
         request->has_waits || request->min_wait_us > 0},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        size_t bytes = strlen(options[i].member);
        if (options[i].is_given && strncmp(text, options[i].member, bytes) == 0 &&
            strspn(text + bytes, ":[.") > 0) {
            *ret_bytes = strcspn(text, ":");
            return options[i].option;
        }
    }
    return NULL;
}

void record_name_option(const struct record_request *request, struct profctl_fault *fault)
{
    struct profctl_fault named = *fault;
    size_t bytes = 0;
    const char *option = find_option(request, fault->text, &bytes);
    if (option != NULL) {
        (void)snprintf(named.text, sizeof named.text, "%s%s", option, fault->text + bytes);
        *fault = named;
    }
}

int record_config_load(const struct record_request *request, pid_t child, char **ret)
{
    const char *path = request->config_path;
    cleanup_(freep) char *base = NULL;
    cleanup_(freep) char *built = NULL;
    size_t base_bytes = 0;
    struct session_config config;
    struct fault fault = {0};
    if (path != NULL) {
        if (text_file_read(path, SESSION_CONFIG_BYTES_MAX, &base, &base_bytes, &fault) < 0) {
            return complain("%s", fault.text);
        }
        /* The daemon would say the same, but not of which file. */
        if (session_config_parse(base, base_bytes, false, &config, &fault) < 0) {
            return complain("%s: %s: %s", path, fault.member, fault.text);
        }
    }
    if (record_config_build(base, request, child, &built, &fault) < 0) {
        return complain("%s: %s", path == NULL ? "config" : path, fault.text);
    }
    /* Options that are too many together. */
    if (built != NULL && session_config_parse(built, strlen(built), false, &config, &fault) < 0) {
        struct profctl_fault wrong = {0};
        (void)snprintf(wrong.text, sizeof wrong.text, "%s: %s", fault.member, fault.text);
        record_name_option(request, &wrong);
        return complain("%s", wrong.text);
    }
    bool from_options = request->targets != NULL;
    int status = target_check(&config.targets, from_options ? NULL : path, from_options);
    if (status != EXIT_DONE) {
        return status;
    }
    *ret = take_ptr(built);
    return EXIT_DONE;
}

/* The config with kernel stacks, where it says nothing about them; NULL where it does. Returned:
 * free(). */
static char *add_kernel_stacks(const char *config)
{
    cleanup_(json_freep) cJSON *tree = NULL;
    if (parse_base(config, &tree, NULL) < 0 ||
        cJSON_GetObjectItemCaseSensitive(tree, KERNEL_STACKS) != NULL ||
        cJSON_AddTrueToObject(tree, KERNEL_STACKS) == NULL) {
        return NULL;
    }
    return cJSON_PrintUnformatted(tree);
}

int record_session_try(struct profctl *conn, const char *config, bool is_detached,
                       bool *ret_lacks_kernel, struct profctl_fault *fault)
{
    cleanup_(freep) char *with_kernel = add_kernel_stacks(config);
    *ret_lacks_kernel = false;
    if (with_kernel != NULL) {
        int r = profctl_create(conn, with_kernel, is_detached, fault);
        if (r == 0 || strncmp(fault->text, KERNEL_STACKS ":", strlen(KERNEL_STACKS ":")) != 0) {
            return r;
        }
        *ret_lacks_kernel = true;
    }
    return profctl_create(conn, config, is_detached, fault);
}

/* The config with that limit, where it has none; NULL where it has one, or is to have none.
 * Returned: free(). */
static char *add_limit(const char *config, uint64_t limit_s)
{
    cleanup_(json_freep) cJSON *tree = NULL;
    if (limit_s == 0 || limit_s > SESSION_DURATION_S_MAX || parse_base(config, &tree, NULL) < 0 ||
        cJSON_HasObjectItem(tree, MAX_DURATION) ||
        cJSON_AddNumberToObject(tree, MAX_DURATION, (double)limit_s) == NULL) {
        return NULL;
    }
    return cJSON_PrintUnformatted(tree);
}

int record_session_create(struct profctl *conn, const struct record_request *request,
                          const char *config, bool is_detached, uint64_t limit_s,
                          bool *ret_is_limited)
{
    struct profctl_fault fault = {0};
    bool lacks_kernel = false;
    cleanup_(freep) char *limited = add_limit(config, limit_s);
    int r = record_session_try(conn, limited == NULL ? config : limited, is_detached, &lacks_kernel,
                               &fault);
    if (ret_is_limited != NULL) {
        *ret_is_limited = r == 0 && limited != NULL;
    }
    /* The administrator's own limit is shorter, and holds without being asked for. */
    if (r < 0 && limited != NULL &&
        strncmp(fault.text, MAX_DURATION ":", strlen(MAX_DURATION ":")) == 0) {
        r = record_session_try(conn, config, is_detached, &lacks_kernel, &fault);
    }
    if (lacks_kernel) {
        (void)complain("note: " RECORD_LACKS_KERNEL "; --no-kernel asks for none");
    }
    if (r < 0) {
        record_name_option(request, &fault);
        return doctor_complain_create(conn, &fault);
    }
    return EXIT_DONE;
}

int record_config_rate(const char *config, uint64_t frequency_hz, char **ret)
{
    const struct record_request request = {.frequency_hz = frequency_hz};
    return record_config_build(config, &request, 0, ret, NULL);
}

size_t record_config_pids(const char *config, int32_t *ret_pids, size_t capacity)
{
    cleanup_(json_freep) cJSON *tree = NULL;
    const cJSON *item = NULL;
    size_t count = 0;
    if (parse_base(config, &tree, NULL) < 0) {
        return 0;
    }
    const cJSON *targets = cJSON_GetObjectItemCaseSensitive(tree, "targets");
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(targets, "pids"))
    {
        int64_t pid = 0;
        if (count < capacity && json_read_integer(item, 1, INT32_MAX, &pid)) {
            ret_pids[count++] = (int32_t)pid;
        }
    }
    return count;
}
