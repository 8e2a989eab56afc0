/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The member "off_cpu" of a session config: whether and how waits of threads are recorded. */

#include <stdbool.h>
#include <stdint.h>

#define SESSION_MIN_WAIT_US_MAX          10000000
#define SESSION_MAX_COST_PERCENT         3 /* by default */
#define SESSION_MAX_COST_PERCENT_HIGHEST 100

/* The two events that waits become. */
#define SESSION_WAIT_EVENTS 2
extern const char *const session_wait_events[SESSION_WAIT_EVENTS];
#define SESSION_WAIT_UNIT "ns"

struct session_off_cpu {
    bool is_on;
    uint32_t min_wait_us;      /* shorter waits are summed alone; 0 */
    uint32_t max_cost_percent; /* of a CPU; 1-100; 3 */
};
