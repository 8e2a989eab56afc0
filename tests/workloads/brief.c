/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process that is gone before anybody can look at it: 20 ms of CPU time in brief_spin().
 *
 * A profiler must see: its few samples (80 at 4000 Hz) named brief_spin, though nothing of the
 * process is left when the recording ends. Prints `brief_spin nanoseconds`.
 */
#include "workload.h"

static WORKLOAD_NOINLINE void brief_spin(uint64_t end_cpu_ns)
{
    while (workload_cpu_ns() < end_cpu_ns) {
        (void)workload_spin(100000);
    }
}

int main(int argc, char **argv)
{
    struct workload_options options = workload_options(argc, argv, 0.02);
    uint64_t began_ns = workload_cpu_ns();
    brief_spin(began_ns + (uint64_t)(options.seconds * 1e9));
    workload_tell("brief_spin", workload_cpu_ns() - began_ns);
    return 0;
}
