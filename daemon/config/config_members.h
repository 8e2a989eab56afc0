/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the readers of members share; for the files of this folder alone. A reader returns 0, or
 * -EINVAL with a fault that names the member.
 */

#include "fault.h"
#include "session_targets.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* A name that somebody else wrote, fit to be shown: printable ASCII, cut, and not empty. */
struct shown_name {
    char text[40];
};
struct shown_name config_show_name(const char *name);

/* Leaves `*value` alone where `item` is NULL. */
int config_read_integer(const cJSON *item, const char *name, int64_t minimum, int64_t maximum,
                        int64_t *value, struct fault *reterr);

/* `targets` may be NULL. */
int session_targets_read(const cJSON *targets, struct session_targets *ret, struct fault *reterr);

/* Adds the member "targets" unless everything is one. Returns false when there is no memory. */
bool session_targets_print(cJSON *config, const struct session_targets *targets);
