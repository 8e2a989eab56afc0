/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the readers of configs share; for the files of this folder alone. A config is one JSON
 * object, taken whole or not at all. A reader returns 0, or -EINVAL with a fault that names the
 * member.
 */

#include "fault.h"
#include "session_events.h"
#include "session_off_cpu.h"
#include "session_targets.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_BYTES_MAX ((size_t)65536)

/* A foreign name, fit to be shown: printable ASCII, cut, and not empty. */
struct shown_name {
    char text[40];
};
struct shown_name config_show_name(const char *name);

/*
 * Parses a text that must be an object, or the member "config" is at fault. Returned: json_freep().
 * The other result is -ENOMEM.
 */
int config_parse_object(const char *text, size_t text_bytes, cJSON **ret, struct fault *reterr);

/*
 * Finds the members of an object: `ret_items[i]` (borrowed from it) is the one called `names[i]`,
 * or NULL. A name that is none of them is refused with the one that may have been meant, or with
 * all of them. `within` is where the object stands, as "events[1]"; "": it is the config itself.
 */
int config_take_members(const cJSON *object, const char *within, const char *const *names,
                        size_t count, const cJSON **ret_items, struct fault *reterr);

/* Leave `*value` alone where `item` is NULL. */
int config_read_integer(const cJSON *item, const char *name, int64_t minimum, int64_t maximum,
                        int64_t *value, struct fault *reterr);
int config_read_bool(const cJSON *item, const char *name, bool *value, struct fault *reterr);

/* `targets` may be NULL. */
int session_targets_read(const cJSON *targets, struct session_targets *ret, struct fault *reterr);

/* Adds the member "targets" unless everything is one. Returns false when there is no memory. */
bool session_targets_print(cJSON *config, const struct session_targets *targets);

/* `array` may be NULL. The clock's element has the rate or period that it asks for, which the
 * caller takes out. */
int session_events_read(const cJSON *array, struct session_events *ret, struct fault *reterr);

/* Adds the member "events" where there is one. Returns false when there is no memory. */
bool session_events_print(cJSON *config, const struct session_events *events);

/* `item` may be NULL. */
int session_off_cpu_read(const cJSON *item, struct session_off_cpu *ret, struct fault *reterr);

/* Adds the member "off_cpu" where it is on. Returns false when there is no memory. */
bool session_off_cpu_print(cJSON *config, const struct session_off_cpu *off_cpu);
