/* SPDX-License-Identifier: Apache-2.0 */

/* The library of dlopener: its time must bear this library's name and late_spin(). */
#include "workload.h"

void late_spin(uint64_t deadline_ns);

WORKLOAD_NOINLINE void late_spin(uint64_t deadline_ns)
{
    while (!workload_time_is_up(deadline_ns)) {
        (void)workload_spin(100000);
    }
}
