/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the parts that all configs have in common: the JSON text, strictly; the names of members,
 * of which none may be unknown or occur twice; values of each simple type. An unknown name is
 * refused, never ignored, so that a typing error does not change what was asked for.
 */
#include "config_members.h"

#include "cleanup.h"
#include "json.h"
#include "suggest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_DEPTH_MAX 8

struct shown_name config_show_name(const char *name)
{
    struct shown_name shown = {""};
    size_t bytes = 0;
    while (name[bytes] != '\0' && bytes < sizeof shown.text - 1) {
        shown.text[bytes] = name[bytes] >= ' ' && name[bytes] <= '~' ? name[bytes] : '?';
        bytes++;
    }
    if (bytes == 0) {
        memcpy(shown.text, "\"\"", 2);
    }
    return shown;
}

static int refuse_unknown(const char *name, const char *const *names, size_t count,
                          struct fault *reterr)
{
    struct shown_name shown = config_show_name(name);
    const char *suggestion = suggest_word(name, names, count);
    if (suggestion != NULL) {
        return fault_set_member(reterr, shown.text,
                                "is not a member of the config; did you mean '%s'?", suggestion);
    }
    char list[256] = "";
    size_t bytes = 0;
    for (size_t i = 0; i < count && bytes < sizeof list; i++) {
        bytes += (size_t)snprintf(list + bytes, sizeof list - bytes, "%s%s", i == 0 ? "" : ", ",
                                  names[i]);
    }
    return fault_set_member(reterr, shown.text, "is not a member of the config; allowed are %s",
                            list);
}

int config_read_integer(const cJSON *item, const char *name, int64_t minimum, int64_t maximum,
                        int64_t *value, struct fault *reterr)
{
    if (item == NULL || json_read_integer(item, minimum, maximum, value)) {
        return 0;
    }
    return fault_set_member(reterr, name, "%s; an integer from %lld to %lld is allowed",
                            json_is_integer(item) ? "is out of range" : "is not an integer",
                            (long long)minimum, (long long)maximum);
}

int config_read_bool(const cJSON *item, const char *name, bool *value, struct fault *reterr)
{
    if (item == NULL) {
        return 0;
    }
    if (!cJSON_IsBool(item)) {
        return fault_set_member(reterr, name, "is not a boolean; true and false are allowed");
    }
    *value = cJSON_IsTrue(item);
    return 0;
}

int config_parse_object(const char *text, size_t text_bytes, cJSON **ret, struct fault *reterr)
{
    if (text_bytes > CONFIG_BYTES_MAX) {
        return fault_set_member(reterr, "config", "has %zu bytes; at most %zu are allowed",
                                text_bytes, CONFIG_BYTES_MAX);
    }
    struct fault fault = {0};
    int r = json_parse(text, text_bytes, CONFIG_DEPTH_MAX, ret, &fault);
    if (r == -EINVAL) {
        return fault_set_member(reterr, "config", "%s", fault.text);
    }
    if (r < 0) {
        return fault_set(reterr, -r, "%s", fault.text);
    }
    return cJSON_IsObject(*ret)
               ? 0
               : fault_set_member(reterr, "config", "is not an object; an object is allowed");
}

int config_take_members(const cJSON *object, const char *const *names, size_t count,
                        const cJSON **ret_items, struct fault *reterr)
{
    const char *offender = "";
    int r = json_take_members(object, names, count, ret_items, &offender);
    if (r == -EEXIST) {
        return fault_set_member(reterr, offender, "is there twice; once is allowed");
    }
    return r < 0 ? refuse_unknown(offender, names, count, reterr) : 0;
}
