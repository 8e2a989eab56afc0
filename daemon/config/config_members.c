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
#define NAMES_BYTES      256

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

/* All of some names: "min_wait_us, max_cost_percent". */
static void print_names(const char *const *names, size_t count, char into[NAMES_BYTES])
{
    size_t bytes = 0;
    into[0] = '\0';
    for (size_t i = 0; i < count && bytes < NAMES_BYTES; i++) {
        bytes += (size_t)snprintf(into + bytes, NAMES_BYTES - bytes, "%s%s", i == 0 ? "" : ", ",
                                  names[i]);
    }
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

int config_take_members(const cJSON *object, const char *within, const char *const *names,
                        size_t count, const cJSON **ret_items, struct fault *reterr)
{
    char member[sizeof reterr->member];
    char list[NAMES_BYTES];
    const char *offender = "";
    int r = json_take_members(object, names, count, ret_items, &offender);
    if (r >= 0) {
        return 0;
    }
    (void)snprintf(member, sizeof member, "%s%s%s", within, within[0] == '\0' ? "" : ".",
                   config_show_name(offender).text);
    if (r == -EEXIST) {
        return fault_set_member(reterr, member, "is there twice; once is allowed");
    }
    const char *object_name = within[0] == '\0' ? "the config" : within;
    const char *suggestion = suggest_word(offender, names, count);
    if (suggestion != NULL) {
        return fault_set_member(reterr, member, "is not a member of %s; did you mean '%s'?",
                                object_name, suggestion);
    }
    print_names(names, count, list);
    return fault_set_member(reterr, member, "is not a member of %s; allowed are %s", object_name,
                            list);
}
