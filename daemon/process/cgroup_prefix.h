/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a process is in a control group or below it. Pure: texts are compared, none is a path
 * that is opened.
 */

#include <stdbool.h>

/*
 * `lines` is the text of /proc/PID/cgroup, "ID:CONTROLLERS:PATH" a line. The prefix matches a path,
 * of whichever hierarchy, that it equals or that goes on after it with a '/'. One that begins with
 * /sys/fs/cgroup is taken as the folder that it is there: of the one hierarchy, or, where the next
 * component is a controller of a version 1 hierarchy, of that one.
 */
bool cgroup_has_prefix(const char *lines, const char *prefix);
