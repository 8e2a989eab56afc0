/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "session_targets.h"

#include <stdbool.h>

/*
 * Complains about the first target that is not there: a process, a thread or, with
 * `checks_cgroups`, a control group. `file` is the config that named the processes; NULL: options
 * did. Returns EXIT_DONE, or EXIT_FAILED.
 */
int target_check(const struct session_targets *targets, const char *file, bool checks_cgroups);
