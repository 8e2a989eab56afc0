/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

struct cJSON;

/* The targets as they were typed, "-p 7 --comm 'zzz'". `into` has room for RECORD_TARGETS_BYTES;
 * returns it. */
#define RECORD_TARGETS_BYTES ((size_t)200)
const char *record_targets_describe(const struct cJSON *targets, char *into);
