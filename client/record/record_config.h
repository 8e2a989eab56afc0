/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fault.h"
#include "record.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The session config of a recording: the members of `base` (JSON, borrowed; NULL: none), then what
 * the options say over them. `child` is the command's pid, 0: there is none. Returned: free().
 * Returns 0, -EINVAL when `base` is not a JSON object or names targets beside a command, or
 * -ENOMEM. The members are the daemon's to check.
 */
int record_config_build(const char *base, const struct record_request *request, pid_t child,
                        char **ret, struct fault *reterr);

/* The pids that are targets of a config. Returns how many, at most `capacity`. */
size_t record_config_pids(const char *config, int32_t *ret_pids, size_t capacity);
