/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes the targets of a session config as the options that name them.
 */
#include "record_targets.h"

#include "record.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

/* A member of a config's targets, and the option that adds to it. */
static const struct {
    const char *member;
    const char *option;
} options[] = {
    {"pids", "-p"},      {"tids", "-t"},    {"uids", "-u"},
    {"comms", "--comm"}, {"cgroups", "-G"}, {"units", "-U"},
};

const char *record_target_option(const cJSON *targets)
{
    size_t i = 0;
    while (i < sizeof options / sizeof options[0] - 1 &&
           cJSON_GetObjectItemCaseSensitive(targets, options[i].member) == NULL) {
        i++;
    }
    return options[i].option;
}

const char *record_targets_describe(const cJSON *targets, char *into)
{
    size_t used = 0;
    into[0] = '\0';
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const cJSON *item = NULL;
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(targets, options[i].member))
        {
            const char *space = used == 0 ? "" : " ";
            int length = cJSON_IsString(item)
                             ? snprintf(into + used, RECORD_TARGETS_BYTES - used, "%s%s '%s'",
                                        space, options[i].option, item->valuestring)
                             : snprintf(into + used, RECORD_TARGETS_BYTES - used, "%s%s %.0f",
                                        space, options[i].option, item->valuedouble);
            if (length < 0 || (size_t)length >= RECORD_TARGETS_BYTES - used) {
                memcpy(into + RECORD_TARGETS_BYTES - 4, "...", 4);
                return into;
            }
            used += (size_t)length;
        }
    }
    return into;
}
