/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An event that the kernel counts, in the numbers of struct perf_event_attr, which are its ABI. */

#include <stdbool.h>
#include <stdint.h>

/* The kernel's PERF_TYPE_*. */
enum event_type {
    EVENT_HARDWARE = 0,
    EVENT_SOFTWARE = 1,
    EVENT_CACHE = 3,
    EVENT_RAW = 4,
    EVENT_OF_PMU = -1, /* its device says the numbers: perf_pmu.h */
};

struct event_code {
    int64_t type; /* an event_type, or the number of a device */
    uint64_t config;
    uint64_t config1;
    uint64_t config2;
    uint8_t precise; /* precise_ip: 0 to 3 */
    bool exclude_user;
    bool exclude_kernel;
};
