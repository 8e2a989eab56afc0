/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether units that -U names are there: a mistyped one would be waited for in silence.
 */

#include "unit_glob.h"

#include <stdbool.h>
#include <stddef.h>

/* Where systemd keeps what it starts; an alias is a link there. */
#define UNIT_NAMES_CGROUPS "/sys/fs/cgroup"
#define UNIT_NAMES_FOLDERS                                                                         \
    ((const char *const[]){"/etc/systemd/system", "/run/systemd/system",                           \
                           "/usr/lib/systemd/system", "/lib/systemd/system", NULL})

/* The unit that `glob` (of unit_glob_make()) is another name of, by the links in `folders`, up to
 * NULL. False: it is none. */
bool unit_names_resolve(const char *const *folders, const char *glob,
                        char ret[UNIT_GLOB_BYTES_MAX + 1]);

/* Says that no control group below `folder` is of such a unit, and which have a name like it.
 * Returned: free(). NULL: there is one, or there are no control groups to be seen. */
char *unit_names_describe_missing(const char *folder, const char *glob);
