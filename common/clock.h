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

/* A moment of a clock, as calls that wait until then take it. */
static inline struct timespec clock_timespec(uint64_t time_ns)
{
    return (struct timespec){
        .tv_sec = (time_t)(time_ns / NS_PER_S),
        .tv_nsec = (long)(time_ns % NS_PER_S),
    };
}
