/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Events of a device that counts, by the files in which the kernel describes it:
 * /sys/bus/event_source/devices/NAME/{type,format/,events/}. Such an event is "NAME/TERMS/", and a
 * term "event=0x3c", "umask=1", "edge" or the name of an event that the device has.
 */

#include "event_code.h"
#include "fault.h"

#include <stddef.h>

#define PERF_PMU_ROOT "/sys/bus/event_source/devices"

/*
 * Fills in type, config, config1 and config2 by the files below `root`. Returns 0, or -EINVAL with
 * a fault whose member is "events": there is no such device, or no such term of it, or it is none
 * of a processor.
 */
int perf_pmu_find(const char *root, const char *name, struct event_code *code,
                  struct fault *reterr);

#define PERF_PMU_NAME_BYTES 64

/* The names of events that the processor's devices below `root` have, as "cpu/mem-loads/", sorted.
 * Fills at most `capacity` of them. Returns how many. */
size_t perf_pmu_list(const char *root, char (*names)[PERF_PMU_NAME_BYTES], size_t capacity);
