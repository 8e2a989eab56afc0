/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* One moment by two clocks: CLOCK_BOOTTIME goes on while the machine is suspended, CLOCK_MONOTONIC
 * stops. */
struct clock_moment {
    uint64_t boottime_ns;
    uint64_t monotonic_ns;
};

/* In this order: an interruption between the two must not look like a suspend. */
static inline struct clock_moment clock_moment(void)
{
    uint64_t boottime_ns = clock_ns(CLOCK_BOOTTIME);
    uint64_t monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    return (struct clock_moment){.boottime_ns = boottime_ns, .monotonic_ns = monotonic_ns};
}

/* A moment of a clock, as calls that wait until then take it. */
static inline struct timespec clock_timespec(uint64_t time_ns)
{
    return (struct timespec){
        .tv_sec = (time_t)(time_ns / NS_PER_S),
        .tv_nsec = (long)(time_ns % NS_PER_S),
    };
}
