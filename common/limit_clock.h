/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "clock.h"

/* For time limits only: CLOCK_MONOTONIC, so that nothing runs out while the machine sleeps. */
static inline uint64_t limit_clock_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}
