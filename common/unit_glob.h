/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names of systemd units as a user gives them: "nginx.service", "nginx", which is the same, or with
 * '*' (any text) and '?' (any character). Pure.
 */

#include <stdbool.h>
#include <stddef.h>

#define UNIT_GLOB_BYTES_MAX 96

/* The name with ".service" where it has no point and does not end with a star. False: it is empty,
 * too long, or has what no unit has. */
bool unit_glob_make(const char *text, char ret[UNIT_GLOB_BYTES_MAX + 1]);

/* `name` is of `name_bytes`. Takes as many steps as the product of both lengths, at most. */
bool unit_glob_matches(const char *glob, const char *name, size_t name_bytes);

/* Whether a control group of that name is a unit's: by its end, as ".service" or ".slice". */
bool unit_glob_is_unit(const char *name);
