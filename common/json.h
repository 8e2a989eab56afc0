/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cJSON for foreign texts. cJSON is lenient (control characters in strings, "01",
 * a NUL by \u0000, any nesting); what comes in through here is JSON to the letter, valid UTF-8, and
 * as deep as the caller allows.
 */

#include "fault.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest integer that a JSON number carries exactly in every implementation. */
#define JSON_INTEGER_MAX ((int64_t)1 << 53)

/*
 * Parses one JSON text that must fill `text_bytes` but for white space. `depth_max` counts objects
 * and arrays. Returned: release with json_freep() or cJSON_Delete(). Returns 0, or
 *   -EINVAL  not such a text; the fault's text says what and where
 *   -ENOMEM
 */
int json_parse(const char *text, size_t text_bytes, unsigned depth_max, cJSON **ret,
               struct fault *reterr);

void json_freep(cJSON **tree);

/*
 * Finds the members of `object` by name: `ret_items[i]` (borrowed from the object) is the one
 * called `names[i]`, or NULL. Returns 0, or -ENOENT for a member that no name matches and -EEXIST
 * for one that is there twice; `*ret_offender` (borrowed) is its name then.
 */
int json_take_members(const cJSON *object, const char *const *names, size_t count,
                      const cJSON **ret_items, const char **ret_offender);

/* Whether `item` (which may be NULL) is a number without a fraction. */
bool json_is_integer(const cJSON *item);
/* Whether it is one from `minimum` to `maximum`, which are within +-JSON_INTEGER_MAX. */
bool json_read_integer(const cJSON *item, int64_t minimum, int64_t maximum, int64_t *ret);
