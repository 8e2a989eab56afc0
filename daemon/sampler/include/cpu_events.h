/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kernel's own word that a CPU came or went: its uevents, over netlink. They say when to look,
 * not what there is to see, so one that is lost, forged or of something else does no harm.
 */

#include <stdbool.h>
#include <stddef.h>

/* Returns a descriptor (returned: close()), readable when there is an event, or -errno: a sandbox
 * may have no netlink. */
int cpu_events_open(void);

/* Takes events off, some at a time. True: one was of a CPU, or some were lost. */
bool cpu_events_take(int fd);

/* Whether a uevent is of a CPU. Pure. */
bool cpu_events_concern(const char *bytes, size_t size_bytes);
