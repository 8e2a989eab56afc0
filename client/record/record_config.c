/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replaces members of a JSON object. The rate has two spellings, of which a config may have one, so
 * an option for it removes both.
 */
#include "record_config.h"

#include "cleanup.h"
#include "json.h"

#include <string.h>

#define DEPTH_MAX 8

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

static bool apply_options(cJSON *tree, const struct record_request *request, pid_t child)
{
    if (request->frequency_hz > 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(tree, "frequency_hz");
        cJSON_DeleteItemFromObjectCaseSensitive(tree, "sample_period_ns");
        if (cJSON_AddNumberToObject(tree, "frequency_hz", (double)request->frequency_hz) == NULL) {
            return false;
        }
    }
    if (request->kernel_stacks) {
        cJSON_DeleteItemFromObjectCaseSensitive(tree, "kernel_stacks");
        if (cJSON_AddTrueToObject(tree, "kernel_stacks") == NULL) {
            return false;
        }
    }
    if (request->whole_machine || child > 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(tree, "targets");
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
    char *text = apply_options(tree, request, child) ? cJSON_PrintUnformatted(tree) : NULL;
    if (text == NULL) {
        return fault_set(reterr, ENOMEM, "there is not enough memory");
    }
    *ret = text;
    return 0;
}
