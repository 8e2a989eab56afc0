/* SPDX-License-Identifier: Apache-2.0 */

/* Parses and prints the member "off_cpu": false, or an object whose members have defaults. */
#include "session_off_cpu.h"

#include "config_members.h"

#include <errno.h>

enum member {
    MIN_WAIT_US,
    MAX_COST_PERCENT,
    MEMBER_COUNT,
};

static const char *const member_names[MEMBER_COUNT] = {
    [MIN_WAIT_US] = "min_wait_us",
    [MAX_COST_PERCENT] = "max_cost_percent",
};

const char *const session_wait_events[SESSION_WAIT_EVENTS] = {"off-cpu", "preempted"};

int session_off_cpu_read(const cJSON *item, struct session_off_cpu *ret, struct fault *reterr)
{
    const cJSON *items[MEMBER_COUNT];
    int64_t min_wait_us = 0;
    int64_t max_cost_percent = SESSION_MAX_COST_PERCENT;
    *ret = (struct session_off_cpu){.is_on = false};
    if (item == NULL || cJSON_IsFalse(item)) {
        return 0;
    }
    if (!cJSON_IsObject(item)) {
        return fault_set_member(reterr, "off_cpu",
                                "is neither false nor an object; {} is one that is allowed, and "
                                "so is {\"min_wait_us\": 100}");
    }
    int r = config_take_members(item, "off_cpu", member_names, MEMBER_COUNT, items, reterr);
    if (r >= 0) {
        r = config_read_integer(items[MIN_WAIT_US], "off_cpu.min_wait_us", 0,
                                SESSION_MIN_WAIT_US_MAX, &min_wait_us, reterr);
    }
    if (r >= 0) {
        r = config_read_integer(items[MAX_COST_PERCENT], "off_cpu.max_cost_percent", 1,
                                SESSION_MAX_COST_PERCENT_HIGHEST, &max_cost_percent, reterr);
    }
    if (r >= 0) {
        *ret = (struct session_off_cpu){
            .is_on = true,
            .min_wait_us = (uint32_t)min_wait_us,
            .max_cost_percent = (uint32_t)max_cost_percent,
        };
    }
    return r;
}

bool session_off_cpu_print(cJSON *config, const struct session_off_cpu *off_cpu)
{
    if (!off_cpu->is_on) {
        return true;
    }
    cJSON *object = cJSON_AddObjectToObject(config, "off_cpu");
    return cJSON_AddNumberToObject(object, member_names[MIN_WAIT_US], off_cpu->min_wait_us) !=
               NULL &&
           cJSON_AddNumberToObject(object, member_names[MAX_COST_PERCENT],
                                   off_cpu->max_cost_percent) != NULL;
}
