/* SPDX-License-Identifier: Apache-2.0 */

/* libping.so and libpong.so: the same function under two names, in libraries of the same size. */
#include "workload.h"

void library_spin(uint64_t end_ns);

WORKLOAD_NOINLINE void library_spin(uint64_t end_ns)
{
    while (workload_clock_ns(CLOCK_BOOTTIME) < end_ns) {
        (void)workload_spin(500);
    }
}
